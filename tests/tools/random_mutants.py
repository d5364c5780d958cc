# SPDX-License-Identifier: MIT OR Unlicense
"""random_mutants.py [-n COUNT] [-s SEED] [-j JOBS] [-l FIRST-LAST] [-t PROGRAM]... HEADER [LINE:NUMBER...] - are the tests sharp?

Puts COUNT (20) random changes, one after the other, into a copy of a header: a comparison, a sign, a negation, a constant that is
off by one, a statement that is not there. The tests of that header then run, in the order of what they cost, until one of them
notices. Prints how many changes were noticed, and for each that was not, where it is and what it does. A change that makes no
difference to the compiler's code is none: that leaves out what is for other systems. Tables, messages to the log and what the
compiler refuses are left out too. The same SEED gives the same changes. -l: in these lines only; -j: so many at the same time;
-t: with this program of tests alone.
LINE:NUMBER: this change alone, as it is printed, for who writes the test."""
import argparse
import concurrent.futures
import ctypes
import fcntl
import hashlib
import multiprocessing
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time

from c_source import functions, hide

OUT = f"build/random_mutants/{os.getpid()}"

# The tests of each header: source, arguments, and how it is built. The first one is what is compared with the code before.
PLAIN = ["-O0"]  # it is the compiler that takes longest
SANITIZED = ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
TESTS = {
    "cci_udp.h": [
        ("tests/net/test_udp_texts.c", [], PLAIN),
        ("tests/net/test_udp_send.c", [], PLAIN),
        ("tests/net/test_udp_receive.c", [], PLAIN),
        ("tests/net/test_udp.c", [], PLAIN),
        ("tests/conformance/conformance.c", ["udp"], PLAIN),
        ("tests/net/test_udp_share.c", [], PLAIN),
        ("tests/net/test_udp.c", [], SANITIZED),
    ],
    "cci_verbs.h": [
        ("tests/verbs/test_verbs.c", [], PLAIN),
    ],
    "cci_sisci.h": [
        ("tests/sisci/test_sisci_memory.c", [], PLAIN),
        ("tests/sisci/test_sisci.c", [], PLAIN),
        ("tests/sisci/test_sisci_links.c", [], PLAIN),
        ("tests/conformance/conformance.c", ["sisci"], PLAIN),
        ("tests/conformance/conformance.c", ["sisci-mapped"], PLAIN),
        ("tests/sisci/test_sisci_ends.c", [], PLAIN),
        ("tests/sisci/test_sisci_succession.c", [], PLAIN),
        ("tests/sisci/test_sisci_links.c", [], SANITIZED),
    ],
    "cci.h": [
        ("tests/conformance/conformance.c", ["sim"], PLAIN),
        ("tests/unit/test_base.c", [], PLAIN),
        ("tests/unit/test_evq.c", [], PLAIN),
        ("tests/unit/test_core.c", [], PLAIN),
        ("tests/unit/test_conn.c", [], PLAIN),
        ("tests/unit/test_rel.c", [], PLAIN),
        ("tests/unit/test_rma.c", [], PLAIN),
        ("tests/unit/test_dgram.c", [], PLAIN),
        ("tests/unit/test_tiny.c", [], PLAIN),
        ("tests/unit/test_deadline.c", [], PLAIN),
        ("tests/unit/test_stats.c", [], PLAIN),
        ("tests/unit/test_status.c", [], PLAIN),
        ("tests/unit/test_sleep.c", [], PLAIN),
        ("tests/unit/test_fork.c", [], PLAIN),
        ("tests/conformance/conformance.c", ["sim-lossy"], PLAIN),
        ("tests/unit/test_ends.c", [], PLAIN),
    ],
}

# What must not go wrong for the sake of the machine, and what only writes texts.
SPARED = re.compile(r"\b(kill|unlink|rmdir|rename|fork|cci_log|cci__\w*log|snprintf|cci__\w*(say|told|warn))\s*\(|^\s*(static|#)")
TYPES = r"(?:const|static|unsigned|int|char|size_t|ssize_t|double|struct|enum|union|void|volatile|u?int\d+_t|\w+_t|sci_\w+)\b"


def changes_of_line(code):
    """All changes that a line allows: (column, length, replacement). The code has no comments and texts any more."""
    found = []

    def each(pattern, replace):
        for m in re.finditer(pattern, code):
            found.extend((m.start(1), len(m.group(1)), new) for new in replace(m))

    if SPARED.search(code) or code.lstrip().startswith("\\"):
        return found
    each(r"[^<>=!+*/&|^-](<=|>=|==|!=)(?!=)", lambda m: {"<=": ["<"], ">=": [">"], "==": ["!="], "!=": ["=="]}[m.group(1)])
    each(r" ([<>]) ", lambda m: [m.group(1) + "="])
    each(r" (&&|\|\|)(?= |$)", lambda m: ["||" if m.group(1) == "&&" else "&&"])
    each(r"[\w\])] ([+-]) ", lambda m: ["-" if m.group(1) == "+" else "+"])
    each(r" ([+-])= ", lambda m: ["-" if m.group(1) == "+" else "+"])
    each(r"(\+\+|--)", lambda m: ["--" if m.group(1) == "++" else "++"])
    each(r"[(&| ](!)(?=[\w(])", lambda m: [""])
    each(r"\b(?:if|while) \((?!!)()(?=.)", lambda m: ["!"] if re.match(r"[\w>.-]+(\([^()]*\))?( &&| \|\||\))", code[m.start(1) :]) else [])
    each(r"(?<![\w.])(\d+)u?\b(?![.\w])", lambda m: [str(int(m.group(1)) + 1)] + ([str(int(m.group(1)) - 1)] if m.group(1) > "0" else []))
    statement = re.match(r"\s*(?:\} )?(?:if \(.*\) |else )?((?!return|goto|else|case|if|for|while|do|" + TYPES + r")[\w*(].*;)\s*$", code)
    if statement and statement.group(1).count("(") == statement.group(1).count(")"):
        found.append((statement.start(1), len(statement.group(1)), ";"))
    return found


def all_changes(text, first, last):
    """(line, number among those of the line, column, length, replacement) of each change to a function's body."""
    lines = hide(text).split("\n")
    found = []
    for function in functions(text):
        for line in range(max(first, function.body + 1), min(last + 1, function.last)):
            before = lines[line - 2].rstrip()
            begins = not before or before.endswith((";", "{", "}", ":", ")", "else"))
            for number, change in enumerate(changes_of_line(lines[line - 1])):
                if begins or change[2] != ";":
                    found.append((line, number, *change))
    return found


def say(header, lines, change):
    line, number, column, length, new = change
    before = lines[line - 1]
    after = before[:column] + new + before[column + length :]
    return f"{header}:{line}:{number}: {before.strip()}  =>  {after.strip()}"


# ---- one program ----------------------------------------------------------------------------------------------------------


def build(place, source, flags, binary):
    """Compiles one at a time, however many changes are under way."""
    with open(OUT + "/lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # What is built in another folder must be the same code.
        flags = [*flags, f"-ffile-prefix-map={place}=.", "-Wl,--build-id=none"]
        command = [os.environ.get("CC", "cc"), "-std=gnu11", "-w", *flags, "-I" + place, "-I.", "-o", binary, source]
        return subprocess.run([*command, "-lcmocka", "-pthread"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def end_children():
    """All that a test has left, since it is this process that they fall to."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="utf-8") as children:
            left = [int(child) for child in children.read().split()]
        if not left:
            return
        for child in left:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def run(place, binary, arguments, patience):
    """What a program of tests says: None, or how it noticed. patience: (seconds, seconds without a line)."""
    environment = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="STDOUT", TMPDIR=os.path.abspath(os.path.join(place, "scratch")))
    os.makedirs(os.path.join(place, "scratch"), exist_ok=True)
    began = heard = time.monotonic()
    noticed, test, rest, longest = None, "", b"", 0.0
    with subprocess.Popen([binary, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                          start_new_session=True) as process:  # fmt: skip
        while noticed is None:
            now = time.monotonic()
            left = min(began + patience[0] - now, heard + patience[1] - now)
            if left <= 0:
                noticed = "hung in " + test
            elif select.select([process.stdout], [], [], left)[0]:
                more = os.read(process.stdout.fileno(), 65536)
                if not more:
                    break
                longest, heard = max(longest, time.monotonic() - heard), time.monotonic()
                *lines, rest = (rest + more).split(b"\n")
                for line in (line.decode(errors="replace") for line in lines):
                    test = line[13:] if line.startswith("[ RUN") else test
                    noticed = noticed or (test if line.startswith("[  FAILED") else None)
        if noticed:
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
    end_children()
    if noticed is None and status != 0:
        noticed = f"ended with {status} in {test}"
    return noticed, time.monotonic() - began, longest


# ---- one change --------------------------------------------------------------------------------------------------------------


def prepare():
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def attempt(header, change, tests):
    """(what, how it was noticed): what is "noticed", "survived", "same" or "refused"."""
    place = f"{OUT}/{os.getpid()}"
    os.makedirs(place, exist_ok=True)
    with open(header, encoding="utf-8") as file:
        lines = file.read().split("\n")
    if change:
        line, _, column, length, new = change
        lines[line - 1] = lines[line - 1][:column] + new + lines[line - 1][column + length :]
    with open(f"{place}/{header}", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    for other in TESTS:  # a header finds the one that it includes beside itself
        if other != header:
            shutil.copy(other, place)
    binary = place + "/test"
    measured, built = [], None
    for number, (source, arguments, flags, patience, digest) in enumerate(tests):
        if built != (source, flags):
            if not build(place, source, flags, binary):
                return "refused" if number == 0 else "noticed", "by the compiler", []
            built = (source, flags)
        with open(binary, "rb") as file:
            code = file.read()
        if change and number == 0 and hash_of(code) == digest:
            return "same", "", []
        noticed, took, longest = run(place, binary, arguments, patience)
        measured.append((took, longest, hash_of(code)))
        if noticed:
            return "noticed", f"{os.path.basename(source)}: {noticed}", measured
    return "survived", "", measured


def hash_of(code):
    return hashlib.sha256(code).hexdigest()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-n", type=int, default=20)
    parser.add_argument("-s", type=int, default=1)
    parser.add_argument("-j", type=int, default=1)
    parser.add_argument("-l", default="1-1000000")
    parser.add_argument("-t", action="append")
    parser.add_argument("header", choices=list(TESTS))
    parser.add_argument("alone", nargs="*")
    given = parser.parse_args()
    os.makedirs(OUT)
    with open(given.header, encoding="utf-8") as file:
        text = file.read()
    lines = text.split("\n")
    first, last = (int(end) for end in given.l.split("-"))
    changes = all_changes(text, first, last)
    if given.alone:
        changes = [c for c in changes if f"{c[0]}:{c[1]}" in given.alone]
        given.n = len(changes)
    else:
        random.Random(given.s).shuffle(changes)
    print(f"{given.header}: {len(changes)} changes are possible", flush=True)
    sums = {"noticed": 0, "survived": 0, "same": 0, "refused": 0}
    with concurrent.futures.ProcessPoolExecutor(given.j, multiprocessing.get_context("fork"), prepare) as pool:
        tests = [(source, [], PLAIN) for source in given.t] if given.t else TESTS[given.header]
        tests = [(*test, (600, 200), None) for test in tests]
        what, how, measured = pool.submit(attempt, given.header, None, tests).result()
        if what != "survived":
            print(f"without any change: {how}")
            return 1
        print("without a change the tests take " + ", ".join(f"{took:.0f}" for took, _, _ in measured) + " s", flush=True)
        tests = [(*test[:3], (5 * took + 20, 5 * longest + 10), digest) for test, (took, longest, digest) in zip(tests, measured)]
        waiting, under_way = iter(changes), {}
        while True:
            while len(under_way) < min(given.j, given.n - sums["noticed"] - sums["survived"]):
                change = next(waiting, None)
                if not change:
                    break
                under_way[pool.submit(attempt, given.header, change, tests)] = change
            if not under_way:
                break
            for done in concurrent.futures.wait(under_way, return_when=concurrent.futures.FIRST_COMPLETED).done:
                what, how, _ = done.result()
                sums[what] += 1
                change = under_way.pop(done)
                if what in ("noticed", "survived"):
                    print(f"{what:8} {say(given.header, lines, change)}" + (f"  [{how}]" if how else ""), flush=True)
    tried = sums["noticed"] + sums["survived"]
    print(f"{given.header}, seed {given.s}: {sums['noticed']} of {tried} noticed; besides, {sums['same']} are the same code, "
          f"{sums['refused']} do not compile")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
