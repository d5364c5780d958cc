# SPDX-License-Identifier: MIT OR Unlicense
"""second_seal.py - sealed packets (section 13.2 of tests/wire/wire.md) for clients of the second implementation.

The cipher is that of examples/secure.c, XChaCha20-Poly1305 (RFC 8439 and draft-irtf-cfrg-xchacha), slow and not safe
against who measures time: it is for tests.
"""
import struct

from second import ACCEPT, CLOSE, CLOSED, COOKIE, CONFIRM, CONFIRMED, DATA, NOT_HERE, REJECT, REQUEST, RESET, Link, fail, \
    nearest

SEALED = 2              # of the header's flags
FROM_SERVER = 0x80      # of the type in a nonce
TAG_BYTES = 16
CLEAR_BYTES = {REQUEST: 64, ACCEPT: 40, REJECT: 32, CONFIRM: 24, CONFIRMED: 24, DATA: 24, CLOSE: 24, CLOSED: 24}


# ---- the cipher -----------------------------------------------------------------------------------------------------

def rounds(state):
    x = list(state)
    for _ in range(10):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            for first, second, third, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[first] = x[first] + x[second] & 0xFFFFFFFF
                x[third] ^= x[first]
                x[third] = (x[third] << turn | x[third] >> 32 - turn) & 0xFFFFFFFF
    return x


CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")


def block(key, counter, nonce):
    state = CONSTANTS + struct.unpack("<8I", key) + (counter,) + struct.unpack("<3I", nonce)
    return struct.pack("<16I", *(a + b & 0xFFFFFFFF for a, b in zip(rounds(state), state)))


def subkey(key, nonce):
    x = rounds(CONSTANTS + struct.unpack("<8I", key) + struct.unpack("<4I", nonce))
    return struct.pack("<8I", *(x[:4] + x[12:]))


def encrypt(key, nonce, data):
    stream = b"".join(block(key, 1 + i, nonce) for i in range((len(data) + 63) // 64))
    return bytes(a ^ b for a, b in zip(data, stream))


def tag_of(key, nonce, head, data):
    pair = block(key, 0, nonce)
    r = int.from_bytes(pair[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    text = head + bytes(-len(head) % 16) + data + bytes(-len(data) % 16) + struct.pack("<QQ", len(head), len(data))
    total = 0
    for at in range(0, len(text), 16):
        total = (total + int.from_bytes(text[at:at + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return (total + int.from_bytes(pair[16:32], "little") & (1 << 128) - 1).to_bytes(16, "little")


def seal(key, nonce, head, data):
    key, nonce = subkey(key, nonce[:16]), bytes(4) + nonce[16:]
    data = encrypt(key, nonce, data)
    return head + data + tag_of(key, nonce, head, data)


def unseal(key, nonce, head, data):
    """What was sealed, or None."""
    key, nonce, data, tag = subkey(key, nonce[:16]), bytes(4) + nonce[16:], data[:-TAG_BYTES], data[-TAG_BYTES:]
    return encrypt(key, nonce, data) if tag_of(key, nonce, head, data) == tag else None


# ---- packets --------------------------------------------------------------------------------------------------------

class SealedLink(Link):
    """Seals what one client's connection sends, and hands on what opens, in the form of packets that are not sealed."""
    more_flags = SEALED

    def __init__(self, loss, crc, key, key_id=0):
        Link.__init__(self, loss, crc)
        self.key, self.key_id, self.secret = key, key_id, b"a secret"
        self.count = 0         # handshake packets sent
        self.token = self.peer_token = 0
        self.number = 0        # of the DATA packet that was sent last
        self.top = 0           # one more than the largest number of a DATA packet that has opened
        self.peer_secret = None

    def send(self, packet, address):
        kind, number = packet[1], self.count
        packet = packet[:3] + bytes([packet[3] | SEALED | self.crc]) + packet[4:]
        if kind == REQUEST:
            self.token, cookie = struct.unpack_from("<QQ", packet, 8)
            packet = packet[:48] + struct.pack("<QII", self.key_id, number, 0) + self.secret + packet[48:]
            peer = cookie
        else:
            peer = self.peer_token
        if kind == DATA:
            number = self.number = nearest(struct.unpack_from("<I", packet, 20)[0], self.number)
        else:
            self.count += 1
        if kind not in (REQUEST, DATA):
            packet = packet[:20] + struct.pack("<I", number)
        clear = CLEAR_BYTES[kind]
        nonce = struct.pack("<QQQ", self.token, peer, number | kind << 56)
        Link.send(self, seal(self.key, nonce, packet[:clear], packet[clear:]), address)

    def receive(self, seconds):
        got = Link.receive(self, seconds)
        if not got or got[0][1] in (COOKIE, NOT_HERE):
            return got
        packet, address = got
        kind, low = packet[1], struct.unpack_from("<I", packet, 20)[0]
        if kind == RESET:
            return got if self.peer_secret and packet[24:32] == self.peer_secret else None
        if not packet[3] & SEALED or kind not in CLEAR_BYTES or len(packet) < CLEAR_BYTES[kind] + TAG_BYTES:
            return None
        clear, peer = CLEAR_BYTES[kind], self.peer_token
        if kind in (ACCEPT, REJECT):
            peer = struct.unpack_from("<Q", packet, clear - (16 if kind == ACCEPT else 8))[0]
        number = nearest(low, self.top) if kind == DATA else low
        nonce = struct.pack("<QQQ", peer, self.token, number | (kind | FROM_SERVER) << 56)
        data = unseal(self.key, nonce, packet[:clear], packet[clear:])
        if data is None:
            return None
        if kind == ACCEPT:
            self.peer_token, self.peer_secret, data = peer, data[:8], data[8:]
        if kind == DATA:
            self.top = max(self.top, number + 1)
        return packet[:clear] + data, address


def key_from(path):
    with open(path, encoding="ascii") as file:
        key = bytes.fromhex(file.read().strip())
    if len(key) != 32:
        fail("no key")
    return key
