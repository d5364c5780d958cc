#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""second.py - a second implementation of the datagram protocol over UDP, written from tests/wire/wire.md alone.

It proves that the document is enough to write one: numbers of sections are given where they are followed. It speaks
reliable-ordered connections alone, takes requests in one piece only, keeps a small fixed window in the place of
congestion control, and as a server follows no peer whose address changes. tests/wire/second_run.py lets it talk.
"""
import random
import select
import socket
import struct
import sys
import time

VERSION = 0xC1
REQUEST, COOKIE, ACCEPT, REJECT, CONFIRM, CONFIRMED, DATA, RESET = range(1, 9)
CLOSE, CLOSED, BUSY, NOT_HERE = range(10, 14)
PAD, MESSAGE, FRAGMENT, BULK, SKIP, VOID, ACK, NACK, PING, TAKEN = range(10)
READ, SEGMENT, DENIED, ATOMIC, CHALLENGE, RESPONSE, MARKS, ADDRESSES, HEARD = 16, 17, 18, 19, 32, 33, 34, 35, 36
SIZE_OF = {MESSAGE: 8, FRAGMENT: 16, BULK: 48, SKIP: 8, VOID: 16, ACK: 16, NACK: 8, PING: 8, TAKEN: 8,
           READ: 48, SEGMENT: 16, DENIED: 8, ATOMIC: 48, CHALLENGE: 16, RESPONSE: 16, MARKS: 16, ADDRESSES: 8, HEARD: 8}
ELICITING = (MESSAGE, FRAGMENT, BULK, SKIP, VOID, PING)
BASE_MTU = 1200         # section 8: what every path carries
UNDER_WAY = 24          # packets that may be unacknowledged
READ_BYTES = 1024       # of a segment
NAMED = 4               # of a REQUEST's flags


def fail(text):
    sys.exit("second implementation: " + text)


def nearest(low, top):
    """The number nearest to top with these low 32 bits (4.2)."""
    return top + ((low - top + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def unguessable():
    return random.SystemRandom().randrange(1, 1 << 64)


def padded(frame):
    return frame + bytes(-len(frame) % 8)


def head(kind, index, token, sender_index=0, number=0):
    return struct.pack("<BBBBIQII", VERSION, kind, 0, 0, index, token, sender_index, number & 0xFFFFFFFF)


# ---- the link -------------------------------------------------------------------------------------------------------

CRC_TABLE = []
for value in range(256):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)  # 0x1EDC6F41 reflected (13.1)
    CRC_TABLE.append(value)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


class Link:
    more_flags = 0  # that packets may have
    marks = False   # codepoints of ECN are sent and looked at (6.7)
    came_with = 0   # that of the last packet

    def __init__(self, loss, crc):
        self.loss, self.crc, self.chance = loss, crc, random.Random(1)
        self.bind()

    def bind(self, port=0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("127.0.0.1", port))

    def mark(self, codepoint):
        """Packets leave with it from now on."""
        if self.marks:
            self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, codepoint)

    def send(self, packet, address):
        if self.crc:
            packet = packet[:3] + bytes([packet[3] | 1]) + packet[4:]
            packet += crc32c(packet)
        if self.chance.randrange(1000) >= self.loss:
            self.socket.sendto(packet, address)

    def receive(self, seconds):
        """The next packet that has a header to be looked at, and where it came from; None when there was nothing."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return None
        packet, told, _, address = self.socket.recvmsg(65536, 64)
        self.came_with = told[0][2][0] & 3 if told else 0
        if self.chance.randrange(1000) < self.loss or len(packet) < 24 or packet[0] != VERSION:
            return None
        if packet[3] & ~(self.more_flags | NAMED * (packet[1] == REQUEST)) != self.crc:
            return None
        if self.crc:
            if crc32c(packet[:-4]) != packet[-4:]:
                return None
            packet = packet[:-4]
        return packet, address


# ---- frames (3) -----------------------------------------------------------------------------------------------------

class Unsound(Exception):
    """The whole packet is dropped."""


def frames_of(packet):
    """All frames of a packet, each as long as it says it is."""
    frames, at = [], 24
    while at < len(packet) and packet[at] != PAD:
        kind, left = packet[at], len(packet) - at
        size = SIZE_OF.get(kind, left + 1)
        if size <= left and kind in (MESSAGE, FRAGMENT, BULK, SKIP, SEGMENT):
            size += struct.unpack_from("<H", packet, at + 2)[0]
        elif size <= left and kind == ADDRESSES:
            size += 24 * packet[at + 1]
        elif size <= left and kind in (ACK, TAKEN):
            size += 4 * packet[at + 1]
        if size > left:
            if kind >= 16:
                break  # what came before it counts
            raise Unsound
        frames.append(packet[at:at + size])
        at += size + -size % 8
    return frames


class Filling:
    """What arrives in pieces, in any order and overlap."""

    def __init__(self, memory):
        self.memory, self.missing, self.mask = memory, len(memory), bytearray(len(memory))

    def place(self, offset, data):
        end = offset + len(data)
        if end > len(self.memory):
            raise Unsound
        self.memory[offset:end] = data
        self.missing -= self.mask[offset:end].count(0)
        self.mask[offset:end] = b"\1" * len(data)
        return self.missing == 0


# ---- a connection ---------------------------------------------------------------------------------------------------

class Connection:
    """One side of an open connection, RO."""

    def __init__(self, link, address, token, peer_index, peer_token, max_send_size, window):
        self.link, self.address, self.index, self.token = link, address, 0, token
        self.peer_index, self.peer_token, self.max_send_size = peer_index, peer_token, max_send_size
        self.under_way = max(2, min(UNDER_WAY, max(window, 4096) // 8 // BASE_MTU))  # 6.6
        self.next_number = self.next_sequence = 0
        self.waiting = []      # frames to be sent
        self.sent = {}         # number of a packet: when it was sent, its frame
        self.tries = 0         # probe timers in a row
        self.top = 0           # one more than the largest number of a packet that has come
        self.floor, self.taken = 0, set()  # all numbers below the floor count as taken, and these
        self.expected = 0      # sequence number
        self.done = {}         # what came early, by its sequence number: a message, or None
        self.filling = {}      # messages and writes of which there are pieces
        self.messages = []     # delivered
        self.memory, self.key, self.region = None, unguessable(), 0
        self.atomics = {}  # of the peer: reason to refuse, what was there
        self.chunks = {}       # reads: name of a chunk: [offset, length, missing, when asked]
        self.read_into = None
        self.next_atomic = 0
        self.atomics_asked = {}  # of ours: number: [frame, when asked, answers that are taken for lost]
        self.atomic_results = {}  # number: reason to refuse, what was there
        self.moved = 0
        self.came = [0, 0, 0, 0]  # packets, by codepoint
        self.reports, self.reported = 0, 0  # MARKS that came; packets that the newest counts

    # sending

    def packet(self, frames):
        number = self.next_number
        self.next_number += 1
        self.link.mark(2)
        self.link.send(head(DATA, self.peer_index, self.peer_token, self.index, number) + frames, self.address)
        self.link.mark(0)
        return number

    def confirm(self, kind):
        self.link.send(head(kind, self.peer_index, self.peer_token, self.index), self.address)

    def sequence(self):
        self.next_sequence += 1
        return self.next_sequence - 1

    def send(self, message, wake=False):
        """A message: whole, or in fragments, perhaps for a program that sleeps until it comes (7.1)."""
        sequence, room = self.sequence(), BASE_MTU - 24 - 16
        if len(message) <= room:
            self.waiting.append(struct.pack("<BBHI", MESSAGE, 4 * wake, len(message), sequence) + message)
            return
        for offset in range(0, len(message), room):
            piece = message[offset:offset + room]
            self.waiting.append(struct.pack("<BBHIII", FRAGMENT, 4 * wake, len(piece), sequence, offset, len(message)) +
                                piece)

    def write(self, handle, remote_offset, data):
        """A remote write, in pieces."""
        key, region = struct.unpack_from("<QQ", handle)
        sequence, room = self.sequence(), BASE_MTU - 24 - 48
        for offset in range(0, len(data), room):
            piece = data[offset:offset + room]
            self.waiting.append(struct.pack("<BBHIQIIQQQ", BULK, 0, len(piece), sequence, key, region, 0, remote_offset,
                                            offset, len(data)) + piece)

    def flush(self, now):
        """What the window allows; and the oldest packet again, when the probe timer is over (6.4)."""
        if self.sent:
            number = min(self.sent)
            if now - self.sent[number][0] > min(1, 0.1 * 2 ** self.tries):
                self.waiting.insert(0, self.sent.pop(number)[1])
                self.tries += 1
        while self.waiting and len(self.sent) < self.under_way:
            frame = self.waiting.pop(0)
            self.sent[self.packet(padded(frame))] = (now, frame)

    def idle(self):
        return not self.waiting and not self.sent and not self.chunks and not self.atomics_asked

    # acknowledgements (6.1)

    def is_new(self, number):
        return number >= self.floor and number not in self.taken

    def take_number(self, number):
        self.taken.add(number)
        self.top = max(self.top, number + 1)
        if len(self.taken) > 400:  # forgotten: all lower ones count as taken (4.2)
            self.floor = sorted(self.taken)[200]
            self.taken = {n for n in self.taken if n >= self.floor}

    def acknowledgement(self):
        ranges = []  # [first, last], the highest first
        for n in sorted(self.taken, reverse=True):
            if ranges and ranges[-1][0] == n + 1:
                ranges[-1][0] = n
            else:
                ranges.append([n, n])
        (below, largest), more = ranges[0], b""
        first = largest - below + 1
        for low, high in ranges[1:15]:
            if below - high > 65536:
                break
            more += struct.pack("<HH", below - high - 1, high - low + 1)
            below = low
        return padded(struct.pack("<BBHIII", ACK, len(more) // 4, 0, largest & 0xFFFFFFFF, first,
                                  self.expected & 0xFFFFFFFF) + more)

    def counts(self):
        """MARKS at each fourth packet: more often than need be (6.7)."""
        _, ect1, ect0, ce = self.came
        return struct.pack("<B3xIII", MARKS, ect0, ect1, ce) if ect0 % 4 == 3 or ect1 or ce else b""

    def on_marks(self, frame):
        ect0, ect1, ce = struct.unpack_from("<III", frame, 4)
        if ect1 or ce or not self.reported <= ect0 <= self.next_number:
            fail("MARKS of what was not sent: %d %d %d" % (ect0, ect1, ce))
        self.reports, self.reported = self.reports + 1, ect0

    def on_ack(self, frame, now):
        more, _, largest, first = struct.unpack_from("<BHII", frame, 1)
        high = nearest(largest, self.next_number)
        if high >= self.next_number or first == 0:
            raise Unsound
        named, low = [(high - first + 1, high)], high - first + 1
        for i in range(more):
            gap, length = struct.unpack_from("<HH", frame, 16 + 4 * i)
            named.append((low - gap - length, low - gap - 1))
            low -= gap + length
        if low < 0:
            raise Unsound
        for number in list(self.sent):
            if any(a <= number <= b for a, b in named):
                del self.sent[number]
                self.tries = 0
            elif number <= high - 3:  # 6.3: lost
                self.waiting.insert(0, self.sent.pop(number)[1])

    # receiving

    def input(self, packet, address, now):
        """A DATA packet for this connection."""
        try:
            frames = frames_of(packet)
            number = nearest(struct.unpack_from("<I", packet, 20)[0], self.top)
            if number < 0:
                return
            if self.is_new(number):
                for frame in frames:
                    self.on_frame(frame, now)
                self.take_number(number)
                self.came[self.link.came_with] += 1
            if any(frame[0] in ELICITING for frame in frames):
                self.packet(self.acknowledgement() + self.counts())
        except (Unsound, struct.error):
            return

    def on_frame(self, frame, now):
        kind = frame[0]
        if kind == ACK:
            self.on_ack(frame, now)
        elif kind == NACK and frame[1] != 3:
            fail("a write was refused")
        elif kind in (MESSAGE, FRAGMENT, BULK, SKIP, VOID):
            self.on_sequence(kind, frame)
        elif kind == READ:
            self.on_read(frame)
        elif kind == ATOMIC:
            self.on_atomic(frame)
        elif kind == SEGMENT:
            self.on_segment(frame, now)
        elif kind == DENIED and struct.unpack_from("<I", frame, 4)[0] in self.chunks:
            fail("a read was denied")
        elif kind == DENIED:
            self.on_answer(struct.unpack_from("<I", frame, 4)[0], frame[1], 0)
        elif kind == MARKS:
            self.on_marks(frame)
        elif kind == CHALLENGE:  # 5.4
            self.moved += 1
            self.packet(struct.pack("<B7x", RESPONSE) + frame[8:16])
        elif kind == ADDRESSES:  # it stays on its path
            self.packet(struct.pack("<B3x", HEARD) + frame[4:8])

    def on_sequence(self, kind, frame):
        sequence = nearest(struct.unpack_from("<I", frame, 4)[0], self.expected)
        if kind == VOID:
            for i in range(struct.unpack_from("<I", frame, 8)[0] + (frame[1] & 1)):
                self.done.setdefault(sequence + i, None)
        elif sequence < self.expected or sequence in self.done:
            return
        elif kind == MESSAGE:
            self.done[sequence] = frame[8:]
        elif kind == SKIP:
            self.done[sequence] = None
        elif kind == FRAGMENT:
            offset, total = struct.unpack_from("<II", frame, 8)
            filling = self.filling.setdefault(sequence, Filling(bytearray(total)))
            if filling.place(offset, frame[16:]):
                self.done[sequence] = bytes(self.filling.pop(sequence).memory)
        else:
            self.on_bulk(sequence, frame)
        while self.expected in self.done:
            message = self.done.pop(self.expected)
            self.expected += 1
            if message is not None:
                self.messages.append(message)

    def on_bulk(self, sequence, frame):
        key, region, _, remote_offset, offset, total = struct.unpack_from("<QIIQQQ", frame, 8)
        if not self.memory or (key, region) != (self.key, self.region) or remote_offset + total > len(self.memory):
            self.packet(struct.pack("<BBHI", NACK, 5, 0, sequence & 0xFFFFFFFF))
            raise Unsound
        target = memoryview(self.memory)[remote_offset:remote_offset + total]
        if self.filling.setdefault(sequence, Filling(target)).place(offset, frame[48:]):
            del self.filling[sequence]
            self.done[sequence] = None

    # reads (7.2)

    def on_read(self, frame):
        chunk, key, region, segment, offset, length, _, missing = struct.unpack_from("<IQIIQIIQ", frame, 4)
        if not 64 <= segment <= 65528 or not 1 <= length <= 64 * segment:
            return
        if not self.memory or (key, region) != (self.key, self.region) or offset + length > len(self.memory):
            self.packet(struct.pack("<BBHI", DENIED, 5, 0, chunk))
            return
        for n in range((length + segment - 1) // segment):
            if missing >> n & 1:
                data = self.memory[offset + n * segment:offset + min((n + 1) * segment, length)]
                self.packet(struct.pack("<BBHIII", SEGMENT, 0, len(data), chunk, n, 0) + data)

    # atomics (7.3)

    def on_atomic(self, frame):
        kind, width, chunk, key, region, number, offset, operand, compare = struct.unpack_from("<xBBxIQIIQQQ", frame)
        if number not in self.atomics:
            self.atomics[number] = 6, 0
            if kind <= 2 and width in (4, 8):
                end = offset + width
                known = self.memory and (key, region) == (self.key, self.region) and end <= len(self.memory)
                self.atomics[number] = 5, 0
                if known and offset % width == 0:
                    old = int.from_bytes(self.memory[offset:end], sys.byteorder)
                    new = old + operand if kind == 0 else operand
                    if kind == 2 and (old ^ compare) % (1 << 8 * width):
                        new = old
                    self.memory[offset:end] = (new % (1 << 8 * width)).to_bytes(width, sys.byteorder)
                    self.atomics[number] = 0, old
        reason, old = self.atomics[number]
        if reason:
            self.packet(struct.pack("<BBHI", DENIED, reason, 0, chunk))
        else:
            self.packet(struct.pack("<BBHIIIQ", SEGMENT, 0, 8, chunk, 0, 0, old))

    def atomic(self, handle, kind, width, offset, operand, compare=0, deaf=0):
        """Asks for an operation on a number, and takes so many answers for lost; its number."""
        key, region = struct.unpack_from("<QQ", handle)
        number = self.next_atomic
        self.next_atomic += 1
        frame = struct.pack("<BBBBIQIIQQQ", ATOMIC, kind, width, 0, 0, key, region, number, offset, operand, compare)
        self.atomics_asked[number] = [frame, 0, deaf]
        return number

    def ask_again(self, number, frame):
        """The request, by a name that the answer repeats: no read has such a one."""
        self.packet(frame[:4] + struct.pack("<I", 1 << 31 | number) + frame[8:])

    def on_answer(self, chunk, reason, value):
        asked = self.atomics_asked.get(chunk & 0x7FFFFFFF) if chunk >> 31 else None
        if not asked:
            return
        asked[2] -= 1
        if asked[2] < 0:
            del self.atomics_asked[chunk & 0x7FFFFFFF]
            self.atomic_results[chunk & 0x7FFFFFFF] = reason, value

    def ask(self, now):
        """For what was not asked for lately: chunks, two at a time, and atomics, sixteen of them."""
        for number in sorted(self.atomics_asked):
            if number < min(self.atomics_asked) + 16 and now - self.atomics_asked[number][1] > 0.1:
                self.atomics_asked[number][1] = now
                self.ask_again(number, self.atomics_asked[number][0])
        for name in sorted(self.chunks)[:2]:
            offset, length, missing, asked = self.chunks[name]
            if now - asked > 0.1:
                self.chunks[name][3] = now
                key, region = struct.unpack_from("<QQ", self.read_from)
                self.packet(struct.pack("<B3xIQIIQIIQ", READ, name, key, region, READ_BYTES, offset, length, 0,
                                        missing))

    def read(self, handle, length):
        self.read_from, self.read_into = handle, bytearray(length)
        for name, offset in enumerate(range(0, length, 64 * READ_BYTES)):
            size = min(64 * READ_BYTES, length - offset)
            self.chunks[name] = [offset, size, (1 << (size + READ_BYTES - 1) // READ_BYTES) - 1, 0]

    def on_segment(self, frame, now):
        chunk, n = struct.unpack_from("<II", frame, 4)
        state = self.chunks.get(chunk)
        if chunk >> 31 and (n, len(frame)) == (0, 24):
            self.on_answer(chunk, 0, struct.unpack_from("<Q", frame, 16)[0])
        if not state or not state[2] >> n & 1:
            return
        at = n * READ_BYTES
        if len(frame) - 16 != min(READ_BYTES, state[1] - at):
            raise Unsound
        self.read_into[state[0] + at:state[0] + at + len(frame) - 16] = frame[16:]
        state[2] &= ~(1 << n)
        state[3] = now
        if not state[2]:
            del self.chunks[chunk]


# ---- services by name (5.5) -----------------------------------------------------------------------------------------

def places_of(name):
    """The number that a name stands for, and its ports."""
    word, value = (1 << 64) - 1, 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & word
    mixed = value
    for _ in range(2):
        mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 & word
    mixed ^= mixed >> 32
    return value & ~7 or 8, [49152 + (mixed + i * (mixed >> 32 | 1) & word) % 16384 for i in range(8)]


class Search:
    """Which port a client asks for a service by name."""

    def __init__(self, host, name):
        self.number, ports = places_of(name)
        self.addresses = [(host, port) for port in ports]
        self.place, self.passes, self.begun, self.denied = -1, 0, 0, 0

    def pause(self):
        return 0.02 * 2 ** min(self.passes, 3)

    def turn(self, now):
        """The next port's turn: when that is over. None: the next pass must wait."""
        if self.place == 7:
            if now < self.begun + 8 * self.pause():
                return None
            self.passes, self.place = self.passes + 1, -1
        if self.place == -1:
            self.begun = now
        self.place += 1
        return now + self.pause()

    def name(self):
        return self.number | self.place


# ---- handshake, client (5.1) ----------------------------------------------------------------------------------------

def address_of(uri):
    """Host and port, or host and name."""
    where = uri.removeprefix("udp://")
    if "/" in where:
        return tuple(where.split("/", 1))
    host, port = where.rsplit(":", 1)
    return host, int(port)


def request(token, cookie, name=0):
    return struct.pack("<BBBBIQQIIHHHHQ", VERSION, REQUEST, 0, NAMED * (name != 0), 0, token, cookie, 65535, 1 << 20,
                       0, 0, 0, 0, name)


def connect(link, address):
    """An open connection, and how many COOKIEs it took."""
    token, cookie, cookies, tries, due, connection = unguessable(), 0, 0, 0, 0, None
    search = Search(*address) if isinstance(address[1], str) else None
    while connection is None or due is not None:
        now = time.monotonic()
        if due <= now:
            if tries == (200 if search else 20):
                fail("no connection")
            due, tries = now + min(0.02 * 2 ** tries, 1), tries + 1
            if connection:
                connection.confirm(CONFIRM)
            elif not search:
                link.send(request(token, cookie), address)
            elif (over := search.turn(now)) is None:
                due = search.begun + 8 * search.pause()
            else:
                due, address = over, search.addresses[search.place]
                link.send(request(token, 0, search.name()), address)
        got = link.receive(max(0, due - time.monotonic()))
        if not got or struct.unpack_from("<IQ", got[0], 4) != (0, token):
            continue
        packet, source = got
        if search and (connection or source not in search.addresses):
            source = address
        if packet[1] == COOKIE and not connection:
            cookie, cookies, due = struct.unpack_from("<Q", packet, 16)[0], cookies + 1, 0
            if search:  # this port's turn begins again
                search.place, due = search.addresses.index(source), time.monotonic() + search.pause()
                link.send(request(token, cookie, search.name()), source)
        elif packet[1] == NOT_HERE and search and not connection:
            if struct.unpack_from("<Q", packet, 16)[0] == search.name():
                search.denied, due = search.denied + 1, 0
        elif packet[1] == REJECT and not connection:
            fail("rejected")
        elif packet[1] == ACCEPT and len(packet) >= 40:
            index, _, peer_token, max_send_size, window = struct.unpack_from("<IIQII", packet, 16)
            if not connection and 1 <= max_send_size <= 65535:
                address = source if search else address
                connection, tries = Connection(link, address, token, index, peer_token, max_send_size, window), 0
            due = 0
        elif packet[1] in (CONFIRMED, DATA) and connection:
            due = None
            if packet[1] == DATA:
                connection.input(packet, address, time.monotonic())
    if search and not search.denied and not link.loss:
        fail("nobody said that it has another name")
    return connection, cookies


# ---- handshake, server (5.2) ----------------------------------------------------------------------------------------

def is_elsewhere(link, packet, address, number):
    """A REQUEST for another name than the server's, or 0 for none: it is told so, and nothing is kept (5.5)."""
    if len(packet) < 48 or not packet[3] & NAMED:
        return False
    name = struct.unpack_from("<Q", packet, 40)[0]
    if name & ~7 == number:
        return False
    link.send(struct.pack("<BBBB", VERSION, NOT_HERE, 0, 0) + packet[4:16] + struct.pack("<Q", name), address)
    return True


def on_request(link, connections, packet, address, memory):
    """A new connection, or an old one whose ACCEPT was lost; `memory` is what its peer may read and write."""
    if len(packet) < 48:
        return
    client_index, client_token = struct.unpack_from("<IQ", packet, 4)
    max_send_size, window, data_len, _, offset, length = struct.unpack_from("<IIHHHH", packet, 24)
    if packet[2] != 0 or max_send_size == 0 or offset != 0 or length != data_len or len(packet) < 48 + length:
        return
    for connection in connections:
        if connection.request == (address, client_index, client_token):
            break
    else:
        connection = Connection(link, address, unguessable(), client_index, client_token, min(max_send_size, 8192),
                                window)
        connection.request = (address, client_index, client_token)
        connection.index, connection.is_open = len(connections), False
        connection.memory = memory
        connections.append(connection)
    link.send(head(ACCEPT, client_index, client_token, connection.index) +
              struct.pack("<QII", connection.token, connection.max_send_size, 1 << 20), address)


def reset(link, packet, address):
    """The sender of a packet learns that its connection is gone (5.3)."""
    index, token, sender, number = struct.unpack_from("<IQII", packet, 4)
    link.send(head(RESET, sender, token, index, number), address)
