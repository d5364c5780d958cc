#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""second_run.py - lets the second implementation of the protocol (second.py) talk to the first.

    second_run.py serve           prints "uri: ..." and echoes messages, until it is killed
    second_run.py offer           the same, but it offers memory, as examples/rma does, and echoes nothing
    second_run.py hello URI       a client of `serve` or examples/hello: short and long messages, there and back
    second_run.py move URI        the same, and its address changes in between, as behind a NAT that forgets
    second_run.py rma URI         a client of `offer` or examples/rma: writes a MiB and a message, reads it back
    second_run.py atomic URI      a client of examples/rma: each atomic, with lost answers, repeated requests and refused ones
    second_run.py cookie URI      asks for so many connections that it must prove its address, then as hello
    second_run.py reset URI       says something on a connection that the server does not have: it must learn that

    --loss N    loses N of 1,000 packets in each direction        --crc    puts a CRC-32C behind each packet
    --key FILE  seals packets with this key, as examples/secure does
    --named     serves by name, at the second of the name's ports: at the first, another says that it is not the one
"""
import os
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
from second import (ACCEPT, CLOSE, CLOSED, CONFIRM, CONFIRMED, DATA, PING, REQUEST, RESET, Connection, Link, address_of,
                    connect, fail, is_elsewhere, on_request, places_of, request, reset, unguessable)
from second_seal import SealedLink, key_from

MEMORY_BYTES = 1 << 20  # that examples/rma offers, and so does `offer`


# ---- a server -------------------------------------------------------------------------------------------------------

def bind_to_name(link, other):
    """Binds a server and one without a name to the first ports of a name; the name."""
    if places_of("storage") != (0xCF105A6848CBB2A0, [51132, 50767, 50402, 50037, 49672, 49307, 65326, 64961]):
        fail("storage stands for something else")
    for i in range(100):
        name = "second-%d-%d" % (os.getpid(), i)
        try:
            other.bind(places_of(name)[1][0])
            link.bind(places_of(name)[1][1])
            return name
        except OSError:
            continue  # somebody has one of them
    return fail("no name has free ports")


def serve(link, offers, other):
    connections, number = [], 0
    uri = "udp://127.0.0.1:%d" % link.socket.getsockname()[1]
    if other:
        name = bind_to_name(link, other)
        number, uri = places_of(name)[0], "udp://127.0.0.1/" + name
    print("uri: " + uri, flush=True)
    while True:
        got = other.receive(0.002) if other else None
        if got and got[0][1] == REQUEST and is_elsewhere(other, *got, 0):
            print("not here", flush=True)
        got = link.receive(0.01)
        now = time.monotonic()
        for connection in connections:
            connection.flush(now)
        if not got:
            continue
        packet, address = got
        index, token = struct.unpack_from("<IQ", packet, 4)
        if packet[1] == REQUEST and is_elsewhere(link, packet, address, number):
            continue
        if packet[1] == REQUEST:
            on_request(link, connections, packet, address, bytearray(MEMORY_BYTES) if offers else None)
        elif packet[1] not in (CONFIRM, CONFIRMED, DATA, CLOSE):
            continue
        elif index >= len(connections) or connections[index].token != token:
            reset(link, packet, address)
        else:
            connection = connections[index]
            if not connection.is_open and offers:
                connection.send(struct.pack("<QQQQ", connection.key, connection.region, MEMORY_BYTES, 1))
            connection.is_open = True
            if packet[1] == CLOSE:
                connection.confirm(CLOSED)
                connections[index].token = None  # a RESET is the answer from now on
                continue
            if packet[1] == CONFIRM:
                connection.confirm(CONFIRMED)
            if packet[1] == DATA:
                connection.input(packet, address, now)
            for message in connection.messages:
                print("received: %d bytes" % len(message), flush=True)
                if not offers:
                    connection.send(message)
            connection.messages.clear()


# ---- what the clients do --------------------------------------------------------------------------------------------

def pump(connection, until, what):
    """Lets the connection work until the condition holds."""
    end = time.monotonic() + 30
    while not until():
        now = time.monotonic()
        if now > end:
            fail("nothing more happens: " + what)
        connection.flush(now)
        connection.ask(now)
        got = connection.link.receive(0.02)
        if not got:
            continue
        index, token = struct.unpack_from("<IQ", got[0], 4)
        if got[0][1] == DATA and (index, token) == (connection.index, connection.token):
            connection.input(*got, time.monotonic())
        elif got[0][1] == CONFIRM and (index, token) == (connection.index, connection.token):
            connection.confirm(CONFIRMED)
        elif got[0][1] == ACCEPT and (index, token) == (connection.index, connection.token):
            connection.confirm(CONFIRM)
        elif got[0][1] == RESET and token == connection.peer_token:
            fail("the connection was reset: " + what)


def exchange(connection, rounds):
    """Messages of many lengths, which come back in their order."""
    longest = min(connection.max_send_size, 6000)
    texts = [bytes([65 + i % 26]) * (0, 1, 7, 8, 9, 1000, 1169, longest)[i % 8] for i in range(rounds)]
    connection.messages.clear()
    for text in texts:
        connection.send(text, wake=len(text) % 2 == 1)
    pump(connection, lambda: len(connection.messages) == rounds and connection.idle(), "messages")
    if connection.messages != texts:
        fail("what came back is not what was sent")
    print("%d messages there and back" % rounds)


def move(connection):
    exchange(connection, 8)
    connection.link.bind()
    exchange(connection, 8)
    if not connection.moved:
        fail("the new address was not challenged")
    print("moved to another address")


def use_memory(connection):
    pump(connection, lambda: connection.messages, "the handle")
    handle = connection.messages.pop()
    if len(handle) != 32 or struct.unpack_from("<Q", handle, 16)[0] != MEMORY_BYTES:
        fail("no handle of a MiB")
    data = bytes(i * 7 + i // 256 & 255 for i in range(MEMORY_BYTES))
    connection.write(handle, 0, data)
    connection.send(b"written")
    pump(connection, connection.idle, "a write")
    connection.read(handle, MEMORY_BYTES)
    pump(connection, connection.idle, "a read")
    if connection.read_into != data:
        fail("what was read is not what was written")
    print("wrote and read back %d bytes" % MEMORY_BYTES)


class Numbers:
    """Numbers in the peer's memory, and what they must be. All atomics of one go are under way together."""

    def __init__(self, connection, handle):
        self.connection, self.handle, self.expected = connection, handle, {}

    def done(self, what):
        pump(self.connection, self.connection.idle, what)

    def one(self, kind, width, offset, operand, compare=0, deaf=0):
        """Does one, and checks what it found."""
        limit = 1 << 8 * width
        old = self.expected.get((offset, width), 0)
        number = self.connection.atomic(self.handle, kind, width, offset, operand, compare, deaf)
        self.done("an atomic")
        if self.connection.atomic_results[number] != (0, old):
            fail("atomic %d found %r, not %d" % (number, self.connection.atomic_results[number], old))
        new = old + operand if kind == 0 else operand
        self.expected[offset, width] = (old if kind == 2 and (old ^ compare) % limit else new) % limit
        return number

    def check(self):
        self.connection.read(self.handle, 4096)
        self.done("a read")
        memory = bytearray(4096)
        for (offset, width), value in self.expected.items():
            memory[offset:offset + width] = value.to_bytes(width, sys.byteorder)
        if self.connection.read_into != memory:
            fail("the memory is not what the atomics make of it")


def refuse(numbers):
    """What may not be done is refused with its reason, and changes nothing (7.3)."""
    connection = numbers.connection
    other = bytes([numbers.handle[0] ^ 1]) + numbers.handle[1:]
    cases = [(5, numbers.handle, 0, 8, 36), (5, numbers.handle, 1, 4, 34), (5, numbers.handle, 0, 8, MEMORY_BYTES),
             (5, numbers.handle, 2, 4, (1 << 64) - 4), (5, other, 0, 8, 32), (6, numbers.handle, 3, 8, 32),
             (6, numbers.handle, 0, 2, 32), (6, numbers.handle, 255, 4, 32)]
    for reason, handle, kind, width, offset in cases:
        number = connection.atomic(handle, kind, width, offset, 1, deaf=1)
        numbers.done("a refusal")
        if connection.atomic_results[number] != (reason, 0):
            fail("atomic %d of %d at %d: %r" % (kind, width, offset, connection.atomic_results[number]))


def atomics(connection):
    pump(connection, lambda: connection.messages, "the handle")
    handle = connection.messages.pop()
    connection.write(handle, 0, bytes(4096))
    pump(connection, connection.idle, "a write")
    numbers = Numbers(connection, handle)
    for width in (4, 8):
        top = (1 << 8 * width) - 1
        for offset in (16 * width, 17 * width):
            numbers.one(0, width, offset, 5)
            numbers.one(0, width, offset, top)           # it wraps around
            numbers.one(1, width, offset, top - 2, deaf=1)
            numbers.one(2, width, offset, 77, 78)        # something else is there
            numbers.one(2, width, offset, 78, top - 2, deaf=2)
            numbers.one(0, width, offset, 1, deaf=3)     # once, though three answers are lost
    numbers.one(0, 4, 192, (1 << 63) | 9)                # the upper half means nothing
    numbers.expected[192, 4] = 9
    numbers.one(2, 4, 192, (3 << 40) | 10, (1 << 50) | 9)
    numbers.check()
    refuse(numbers)
    numbers.check()
    before = numbers.one(0, 8, 200, 1000)                # its request will come again, and late
    frame = struct.pack("<BBBBIQQQQQ", 19, 0, 8, 0, 0, *struct.unpack_from("<QQ", handle), 200, 1000, 0)
    frame = frame[:20] + struct.pack("<I", before) + frame[24:]
    many = [connection.atomic(handle, 0, 8, 208, 1, deaf=i % 3 == 0) for i in range(100)]
    for _ in range(3):
        connection.ask_again(before, frame)
    numbers.done("many atomics")
    for _ in range(3):                                   # nobody remembers its answer
        connection.ask_again(before, frame)
    found = sorted(connection.atomic_results[number] for number in many)
    if found != [(0, i) for i in range(100)]:
        fail("a hundred additions did not find a hundred values")
    numbers.expected[208, 8] = 100
    numbers.one(0, 8, 208, 1)
    numbers.check()
    print("%d atomics" % connection.next_atomic)


def close(connection):
    """Tells the peer that the connection ends, until it knows (5.3)."""
    for tries in range(6):
        connection.confirm(CLOSE)
        end = time.monotonic() + min(0.02 * 2 ** tries, 1)
        while time.monotonic() < end:
            got = connection.link.receive(0.02)
            if not got:
                continue
            index, token = struct.unpack_from("<IQ", got[0], 4)
            if got[0][1] == CLOSED and (index, token) == (connection.index, connection.token) or \
                    got[0][1] == RESET and token == connection.peer_token:
                print("closed")
                return
    fail("nobody answers CLOSE")


def crowd(link, address):
    """Requests that nobody follows up, until the server wants proof of an address."""
    for _ in range(400):
        link.send(request(unguessable(), 0), address)
        time.sleep(0.0005)
    connection, cookies = connect(link, address)
    if not cookies:
        fail("the server wanted no cookie")
    print("connected with a cookie")
    return connection


def learn_reset(link, address):
    connection = Connection(link, address, unguessable(), 0x7FFFFFF0, unguessable(), 100, 4096)
    number = connection.packet(struct.pack("<B7x", PING))
    end = time.monotonic() + 10
    while time.monotonic() < end:
        got = link.receive(0.1)
        if got and got[0][1] == RESET:
            if struct.unpack_from("<IQII", got[0], 4) != (0, connection.peer_token, connection.peer_index, number):
                fail("a RESET that answers something else")
            print("the connection is gone")
            return
    fail("no RESET")


def main(arguments):
    crc = "--crc" in arguments
    link = Link(0, crc)
    if "--key" in arguments:
        at = arguments.index("--key")
        link = SealedLink(0, crc, key_from(arguments[at + 1]))
        del arguments[at:at + 2]
    if "--loss" in arguments:
        at = arguments.index("--loss")
        link.loss = int(arguments[at + 1])
        del arguments[at:at + 2]
    if "--marks" in arguments:
        link.marks = True
        link.socket.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    other = Link(link.loss, crc) if "--named" in arguments else None
    arguments = [word for word in arguments if word not in ("--crc", "--named", "--marks")]
    if arguments in (["serve"], ["offer"]):
        serve(link, arguments == ["offer"], other)
    if len(arguments) != 2 or arguments[0] not in ("hello", "move", "rma", "atomic", "cookie", "reset"):
        fail("arguments? " + __doc__)
    what, address = arguments[0], address_of(arguments[1])
    if what == "reset":
        learn_reset(link, address)
        return
    connection = crowd(link, address) if what == "cookie" else connect(link, address)[0]
    if what == "rma":
        use_memory(connection)
    elif what == "atomic":
        atomics(connection)
    elif what == "move":
        move(connection)
    else:
        exchange(connection, 40)
    if link.marks and (connection.reports == 0 or connection.came[2] == 0 or connection.came[1] + connection.came[3] > 0):
        fail("no counts of codepoints, or others: %d reports, %s came" % (connection.reports, connection.came))
    close(connection)


if __name__ == "__main__":
    main(sys.argv[1:])
