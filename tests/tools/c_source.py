# SPDX-License-Identifier: MIT OR Unlicense
"""c_source.py - finds the functions of a header that clang-format has formatted: each begins and ends in the first column."""
import re

HIDDEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def hide(text):
    """The text with spaces for comments and underscores for what is quoted: each character keeps its place."""

    def cover(found):
        part = found.group(0)
        if part[0] == "/":
            return re.sub(r"[^\n]", " ", part)
        return part[0] + "_" * (len(part) - 2) + part[-1]

    return HIDDEN.sub(cover, text)


class Function:
    """Lines first to last (counted from 1), of which the body begins in line `body`."""

    def __init__(self, lines, first, body, last):
        self.first, self.body, self.last = first + 1, body + 1, last + 1
        head = " ".join(lines[first : body + 1])
        self.name = re.search(r"(\w+)\(", head).group(1)
        self.gives_function = "(*" in head[: head.index(self.name)]
        self.parameters = head[head.index("(") + 1 : head.rindex(")")]
        self.code = "\n".join(line for line in lines[body : last + 1] if not line.startswith("#"))

    def length(self):
        return self.last - self.first + 1

    def complexity(self):
        """McCabe's number, as pmccabe prints it in its second column: one more than the decisions."""
        return 1 + len(re.findall(r"\b(?:if|for|while|case)\b|&&|\|\||\?", self.code))

    def parameter_count(self):
        depth, count = 0, 1
        for letter in self.parameters:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            count += letter == "," and depth == 0
        return count


def functions(text):
    """All functions with a body of more than one line."""
    lines = hide(text).split("\n")
    at = 0
    while at < len(lines):
        first = at
        at += 1
        if not re.match(r"[A-Za-z]", lines[first]) or "(" not in lines[first]:
            continue
        body = first
        while lines[body].strip() and not lines[body].startswith("#") and not lines[body].rstrip().endswith(("{", ";", "}")):
            body += 1
        if not lines[body].rstrip().endswith("{") or "=" in " ".join(lines[first : body + 1]):
            continue
        last = body
        while not lines[last].startswith("}"):
            last += 1
        at = last + 1
        yield Function(lines, first, body, last)
