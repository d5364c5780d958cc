# SPDX-License-Identifier: MIT OR Unlicense
"""cp_width.py COMMAND...: runs a program that draws a bar in a terminal whose width changes: each line must fill it but
for one column. Ends with 1 when no such line comes, or a longer one."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time


def resize(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def next_lines(terminal, held, until):
    """The lines that are whole, and the rest of what came."""
    if select.select([terminal], [], [], max(0, until - time.monotonic()))[0]:
        held += os.read(terminal, 4096).decode()
    *lines, held = held.split("\r")
    return [line for line in lines if line.strip()], held


def main():
    process, terminal = pty.fork()
    if process == 0:
        resize(0, 100)
        os.execvp(sys.argv[1], sys.argv[1:])
    held, good = "", True
    for columns in (100, 50, 30, 12, 130):
        resize(terminal, columns)
        until, found = time.monotonic() + 20, False
        while not found and time.monotonic() < until:
            lines, held = next_lines(terminal, held, until)
            found = any(len(line) == columns - 1 for line in lines)
        print(columns, "columns:", repr(lines[-1]) if found else "no line of that width")
        good = good and found
    os.kill(process, signal.SIGTERM)
    os.waitpid(process, 0)
    return 0 if good else 1


sys.exit(main())
