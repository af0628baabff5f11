"""Modules as they go out: without indentation, without lines that only comment, and without spaces that say nothing.

Lines stay lines, so that errors name those that people know; no text of a module may go over several. A line is read as
code, texts ("…", '…'), templates (`… ${code} …`) and expressions (/…/); only between signs of code a space is left out.
"""

from __future__ import annotations

import re

# before an expression there is a sign that wants a value, or a word that does
WANTS_A_VALUE = re.compile(r"(?:^|[(,=:\[!&|?{};+\-*%~^<>]|\breturn|\btypeof|\bof|\bin)\s*$")
TEXT = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
EXPRESSION = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[])+/[a-z]*")
IMPORTS = re.compile(r"^(?:import|export)\b.*\bfrom\b")
PLAIN = re.compile(r"[^\"'`/{} ]+")  # nothing in it is more than it looks like
WORD = re.compile(r"[\w$\u0080-\uffff]")


def slim(module: str) -> str:
    lines = (line.strip() for line in module.split("\n"))
    return "\n".join("" if line.startswith("//") else line if IMPORTS.match(line) else tight(line) for line in lines)


def tight(line: str) -> str:
    """A line of code with the spaces it needs."""
    found: list[str] = []
    _code(line, 0, found, inside=False)
    return "".join(found)


def _code(line: str, place: int, found: list[str], inside: bool) -> int:
    """Reads code from `place` on; `inside` a template up to the brace that closes it. Where it ended."""
    depth = 0
    while place < len(line):
        if match := PLAIN.match(line, place):
            found.append(match.group())
            place = match.end()
            continue
        sign = line[place]
        if sign in "\"'":
            match = TEXT.match(line, place)
            if match is None:
                raise ValueError(f"a text that goes on beyond its line: {line}")
            found.append(match.group())
            place = match.end()
        elif sign == "`":
            place = _template(line, place, found)
        elif sign == "/" and WANTS_A_VALUE.search("".join(found[-24:])) and (match := EXPRESSION.match(line, place)):
            found.append(match.group())
            place = match.end()
        elif sign == " ":
            while place < len(line) and line[place] == " ":
                place += 1
            if found and place < len(line) and _needed(found[-1][-1], line[place]):
                found.append(" ")
        else:
            if inside and sign == "}" and not depth:
                return place
            depth += {"{": 1, "}": -1}.get(sign, 0)
            found.append(sign)
            place += 1
    if inside:
        raise ValueError(f"a template that goes on beyond its line: {line}")
    return place


def _template(line: str, place: int, found: list[str]) -> int:
    found.append("`")
    place += 1
    while place < len(line):
        if line[place] == "`":
            found.append("`")
            return place + 1
        if line[place] == "\\":
            found.append(line[place : place + 2])
            place += 2
        elif line.startswith("${", place):
            found.append("${")
            place = _code(line, place + 2, found, inside=True)
            found.append("}")
            place += 1
        else:
            found.append(line[place])
            place += 1
    raise ValueError(f"a template that goes on beyond its line: {line}")


def _needed(before: str, after: str) -> bool:
    """Between words; between signs that would become another one (a + +b, a / /x/)."""
    return bool(WORD.match(before) and WORD.match(after)) or (before == after and before in "+-/")
