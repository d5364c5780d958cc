#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""chat.py - a room in which people talk. chat.c is the same program in C and has the protocol; they talk to each other.

    make lib
    examples/chat.py NAME          opens a room, and prints its URI
    examples/chat.py NAME URI      enters a room

What is typed goes to everybody. The end of the input (Ctrl-D) leaves the room, or closes one's own."""
import os
import select
import sys

import cci

LONGEST_NAME, LONGEST_LINE = 32, 1000
Type = cci.EventType


def show(line):
    """What others have typed is not to steer the terminal."""
    text = line.decode(errors="replace")
    print("".join(each if each.isprintable() else "?" for each in text), flush=True)


class Chat:
    """The room, if there is no URI, or one of its members. A connection's context is the name of who is there."""

    def __init__(self, name, uri=None):
        self.name, self.uri = name.encode(), uri
        self.peers, self.typed, self.is_over = [], b"", False
        self.endpoint = cci.Endpoint(None if uri is None else cci.device_for(uri))
        self.endpoint.set_opt(cci.Opt.ENDPT_EVENT_MASK, 1 << Type.DISCONNECT)
        if uri is None:
            print("uri: " + self.endpoint.uri, flush=True)
        else:
            self.endpoint.connect(uri, self.name, context=b"", timeout=10)

    def pass_on(self, line, but=None):
        """Sends a line to all but one, without waiting. A member that takes nothing any more has to go."""
        if but is not None:
            show(line)
        for peer in [each for each in self.peers if each is not but]:
            try:
                peer.send(line, flags=cci.Flag.SILENT)
            except cci.Error as error:
                if error.status == cci.Status.ENOBUFS:
                    self.peers.remove(peer)
                    peer.disconnect()

    def let_in(self, request):
        name = request.data
        fits = 0 < len(name) <= LONGEST_NAME and name.decode(errors="replace").isprintable()
        if self.uri is None and fits and request.attribute == cci.ConnAttr.RO:
            request.accept(context=name)
        else:
            request.reject()

    def on_event(self, event):
        peer = event.connection
        if event.type == Type.CONNECT_REQUEST:
            self.let_in(event)
        elif event.type == Type.CONNECT:
            self.peers.append(event.check().connection)
            show(b"you are in the room")
        elif event.type == Type.ACCEPT and peer is not None:
            self.peers.append(peer)
            self.pass_on(event.context + b" has come", peer)
        elif event.type == Type.RECV and self.uri is None:
            self.pass_on(peer.context + b": " + event.data[:LONGEST_LINE], peer)
        elif event.type == Type.RECV:
            show(event.data)
        elif event.type == Type.DISCONNECT:
            self.peers.remove(peer)
            peer.disconnect()
            if self.uri is None:
                self.pass_on(event.context + b" has left", peer)
            else:
                show(b"the room is closed")
                self.is_over = True

    def say(self, line):
        """A member waits until the room has its line. One that is too long is said in pieces."""
        for start in range(0, max(len(line), 1), LONGEST_LINE):
            piece = line[start:start + LONGEST_LINE]
            if self.uri is None:
                self.pass_on(self.name + b": " + piece)
            else:
                self.peers[0].send(piece, flags=cci.Flag.BLOCKING)

    def read_input(self):
        got = os.read(0, 4096)
        *lines, self.typed = (self.typed + got).split(b"\n")
        self.is_over = not got
        if self.is_over and self.typed:
            lines.append(self.typed)
        for line in lines:
            self.say(line)

    def run(self):
        while not self.is_over:
            is_open = self.uri is None or self.peers
            ready, _, _ = select.select([self.endpoint, 0] if is_open else [self.endpoint], [], [])
            if 0 in ready:
                self.read_input()
            event = self.endpoint.get_event()
            while event is not None:
                self.on_event(event)
                event = None if self.is_over else self.endpoint.get_event()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: chat.py NAME [URI]")
    cci.init()
    try:
        Chat(*sys.argv[1:]).run()
    except cci.Error as error:
        sys.exit(str(error))
    finally:
        cci.finalize()


main()
