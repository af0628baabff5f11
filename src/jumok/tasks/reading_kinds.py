"""What kinds of words there are, and what kinds of mistakes in reading them: scores and pages sort by these."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Literal, get_args

from jumok.tasks.edit_distance import edit_distance

Script = Literal["digits", "latin", "hangul", "mixed", "other", "empty"]
Mistaken = Literal["nothing", "invented", "case", "marks", "wrong", "extra", "missing", "several"]

SCRIPTS: tuple[Script, ...] = get_args(Script)
MISTAKES: dict[Mistaken, str] = {
    "case": "upper and lower case alone",
    "marks": "punctuation and spaces alone",
    "wrong": "one character wrong",
    "extra": "one character too many",
    "missing": "one character missing",
    "several": "several characters",
    "nothing": "nothing was read",
    "invented": "there is nothing to read",
}
LONGEST = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20)  # the last length of each group; there is one more after it


def composed(text: str) -> str:
    """As texts are compared: a letter and its accent, or the parts of a syllable, as one character (NFC)."""
    return unicodedata.normalize("NFC", text)


def script_of(text: str) -> Script:
    """By its letters and digits. Where it has none, "other"; "empty" where there is nothing at all."""
    if not text:
        return "empty"
    found = {_script(character) for character in text if unicodedata.category(character)[0] in "LN"}
    if len(found) > 1:
        return "mixed"
    return found.pop() if found else "other"


@cache
def _script(character: str) -> Script:
    if "0" <= character <= "9":
        return "digits"
    name = unicodedata.name(character, "")
    if "HANGUL" in name:
        return "hangul"
    return "latin" if name.startswith(("LATIN", "FULLWIDTH LATIN")) else "other"


def length_group(length: int) -> int:
    """The number of the group that words of this length are in, from 0."""
    return next((place for place, last in enumerate(LONGEST) if length <= last), len(LONGEST))


def length_name(group: int) -> str:
    """0, 8, 9–10, 21 and more"""
    first = LONGEST[group - 1] + 1 if group else 0
    if group == len(LONGEST):
        return f"{first} and more"
    return str(first) if first == LONGEST[group] else f"{first}–{LONGEST[group]}"


def mistake_of(truth: str, read: str) -> Mistaken | None:
    """What went wrong, in one word; None where nothing did. Both in NFC."""
    if truth == read:
        return None
    if not read or not truth:
        return "invented" if read else "nothing"
    if truth.casefold() == read.casefold():
        return "case"
    if (letters := _letters(truth)) and letters == _letters(read):
        return "marks"
    if edit_distance(truth, read) > 1:
        return "several"
    return "wrong" if len(truth) == len(read) else "extra" if len(truth) < len(read) else "missing"


def _letters(text: str) -> str:
    return "".join(character for character in text if unicodedata.category(character)[0] in "LNM")
