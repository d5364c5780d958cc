# SPDX-License-Identifier: MIT OR Unlicense
"""top_screen.py CCI_PERF: a server with --top in a terminal, and a client with five connections. What the server draws fits
the terminal, also when that becomes smaller, shows what the client does, and the busiest connection first. Ends with 1
when such a screen does not come."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

ROW = re.compile(r"^(udp://[^ ]*) +([0-9.]+[kMGT]?) +([0-9.]+[kMGT]?) +([0-9.]+[kMGT]?) +(\S+) +(\S+) +(\S+)$")


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def number(text):
    return float(text.rstrip("kMGT")) * 1000 ** (" kMGT".index(text[-1]) if text[-1] in "kMGT" else 0)


def screens(terminal, until):
    """One screen after the other: its lines, as a terminal would show them."""
    held = ""
    while time.monotonic() < until:
        if select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
            held += os.read(terminal, 65536).decode()
        while "\x1b[J" in held:
            screen, held = held.split("\x1b[J", 1)
            yield screen.split("\x1b[H")[-1].replace("\x1b[K", "").replace("\r", "").rstrip("\n").split("\n")


def is_good(lines, rows, columns, connections):
    peers = [ROW.match(line) for line in lines[3:]]
    if len(lines) >= rows or any(len(line) >= columns for line in lines) or not all(peers):
        return False
    traffic = [number(row[2]) + number(row[3]) for row in peers]
    return (len(peers) == min(connections, rows - 4) and lines[0].endswith("%d connections" % connections)
            and traffic[0] > 0 and number(peers[0][4]) > 0 and all(a >= b * 0.9 for a, b in zip(traffic, traffic[1:])))


def main():
    process, terminal = pty.fork()
    if process == 0:
        resize(0, 24, 100)
        os.execvp(sys.argv[1], [sys.argv[1], "--top", "-d", "lo"])
    good = True
    uri = next(screens(terminal, time.monotonic() + 60))[0].split()[0]
    client = subprocess.Popen([sys.argv[1], uri, "-d", "lo", "-t", "lat", "-c", "5", "-D", "100"], stdout=subprocess.DEVNULL)
    for rows, columns in ((24, 100), (24, 61), (8, 140)):
        resize(terminal, rows, columns)
        found = next((lines for lines in screens(terminal, time.monotonic() + 60) if is_good(lines, rows, columns, 6)), None)
        print("\n".join(found) if found else "no screen of %d columns" % columns)
        good = good and found is not None
    client.kill()
    client.wait()
    os.kill(process, signal.SIGTERM)
    os.waitpid(process, 0)
    return 0 if good else 1


sys.exit(main())
