# SPDX-License-Identifier: MIT OR Unlicense
"""metrics.py [--functions HEADER | --complexity HEADER] - how large the headers are, and the parts of which they are made, beside bounds and goals.

Where a goal is reached, it is the bound; elsewhere the bound is what was reached so far, so that it can't get worse: who makes a value
smaller lowers its bound. --functions: the header's functions alone, each at its line, for tools that can't read a header;
--complexity: complexity, line and name of each; but for functions that return a pointer to one, which those can't read either."""
import re
import sys
import textwrap

from c_source import functions

HEADERS = ["cci.h", "cci_udp.h", "cci_verbs.h", "cci_sisci.h"]
MANY_LINES = 900  # a section that has more of them lists its parts

# (measure, goal, {header: bound where the goal is not reached}); no goal: there is only the bound.
BOUNDS = [
    ("lines", {"cci.h": 9800, "cci_verbs.h": 5200, "cci_sisci.h": 10200},
     {"cci.h": 23377, "cci_udp.h": 3972, "cci_verbs.h": 8226, "cci_sisci.h": 13649}),
    ("longest line", 120, {}),
    ("longest function", 60, {}),
    ("highest complexity", 20, {}),
    ("functions above a complexity of 20", 0, {}),
    ("most parameters", 7, {}),
    (f"sections above {MANY_LINES} lines that do not list their parts", 0, {}),
]  # fmt: skip
SECTION_GOAL = 1500
ENGINES = [("cci.h", "cci__dgram_"), ("cci_verbs.h", "cci__rc_"), ("cci_sisci.h", "cci__sisci_")]
COMMON_GOAL, COMMON_BOUND = 12, 48

passed = failed = 0


def row(text, value, bound, goal, what=""):
    """A line of the table; a value above its bound is a failure."""
    global passed, failed
    beside = "" if goal is None else f"goal {goal:,}" + (", reached" if value <= goal else "")
    print(f"  {text:62} {value:7,}   at most {bound:6,}   {beside:22} {what}".rstrip())
    passed += value <= bound
    failed += value > bound
    if value > bound:
        print(f"FAIL: {text}: {value:,}, more than {bound:,} {what}")
    elif goal is not None and goal < value < bound * 0.95:
        print(f"  (that bound can be lowered to {value:,})")


def sections(lines):
    """(name, its lines, the names of its parts, what its head says)"""
    begins = [(m.group(1), n) for n, line in enumerate(lines) if (m := re.match(r" \* >>([a-z-]+)$", line))]
    for (name, begin), (_, end) in zip(begins, begins[1:] + [("", len(lines))]):
        head_end = next(n for n in range(begin, len(lines)) if lines[n].endswith("*/"))
        parts = [m.group(1).strip() for line in lines[head_end:end] if (m := re.match(r"/\* -{3,5} (.+?)(?: -{3,}.*)?$", line))]
        yield name, end - begin, [re.split(r"[:\[]", part)[0].strip() for part in parts], " ".join(lines[begin:head_end])


def lists_parts(parts, head):
    plain = re.sub(r"\s+\*\s+|\s+", " ", head)
    return bool(parts) and all(part in plain for part in parts)


def api_of(texts):
    return {m for text in texts.values() for m in re.findall(r"^CCI_API [^;{]*?\b(cci_\w+)\(", text, re.MULTILINE)}


def is_given(name, api):
    """The parameters are those of the interface: a function of it, or the engine's that it calls."""
    inner = re.match(r"cci__[a-z]+_(\w+)$", name)
    return name in api or "SCI" in name or bool(inner and "cci_" + inner.group(1) in api)


def measure(header, text, api):
    lines = text.split("\n")
    found = list(functions(text))
    longest = max(found, key=lambda f: f.length())
    hardest = max(found, key=lambda f: f.complexity())
    own = [f for f in found if not is_given(f.name, api)]
    widest = max(own, key=lambda f: f.parameter_count())
    hard = sorted((f for f in found if f.complexity() > 20), key=lambda f: -f.complexity())
    unlisted = [s[0] for s in sections(lines) if s[1] > MANY_LINES and not lists_parts(s[2], s[3])]
    values = [
        (len(lines) - 1, ""),
        (max(len(line) for line in lines), ""),
        (longest.length(), longest.name),
        (hardest.complexity(), hardest.name),
        (len(hard), " ".join(f.name for f in hard)),
        (widest.parameter_count(), widest.name),
        (len(unlisted), " ".join(unlisted)),
    ]
    print(f"{header}: {len(found)} functions")
    for (measured, goal, bounds), (value, what) in zip(BOUNDS, values):
        goal = goal.get(header) if isinstance(goal, dict) else goal
        row(measured, value, bounds.get(header, goal), goal, what)
    short = []
    for name, size, parts, _ in sections(lines):
        if size > MANY_LINES:
            row("section " + name, size, SECTION_GOAL, SECTION_GOAL, f"{len(parts)} parts")
        else:
            short.append(f"{name} {size}")
    print(textwrap.fill("other sections: " + ", ".join(short), 140, initial_indent="  ", subsequent_indent="    "))


def common(texts):
    names = []
    for header, prefix in ENGINES:
        names.append({f.name[len(prefix) :] for f in functions(texts[header]) if f.name.startswith(prefix)})
    shared = sorted(set.intersection(*names))
    print("the engines: " + ", ".join(prefix + "..." for _, prefix in ENGINES))
    row("names of functions that all three have", len(shared), COMMON_BOUND, COMMON_GOAL)
    print(textwrap.fill(" ".join(shared), 140, initial_indent="    ", subsequent_indent="    "))


def print_functions(text, plain):
    lines = text.split("\n")
    kept = {n: lines[n - 1] for f in plain for n in range(f.first, f.last + 1) if not lines[n - 1].startswith("#")}
    for n in range(1, len(lines)):
        print(kept.get(n, ""))


def main():
    texts = {}
    for header in HEADERS:
        with open(header, encoding="utf-8") as file:
            texts[header] = file.read()
    if len(sys.argv) == 3:
        plain = [f for f in functions(texts[sys.argv[2]]) if not f.gives_function]
        if sys.argv[1] == "--functions":
            print_functions(texts[sys.argv[2]], plain)
        else:
            print("\n".join(f"{f.complexity()} {f.first} {f.name}" for f in plain))
        return 0
    api = api_of(texts)
    for header in HEADERS:
        measure(header, texts[header], api)
    common(texts)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
