"""The beginning of a translation that is certain while the search still runs.

Every output of a row will come from one of its live hypotheses or is the best that has finished. What all of these
begin with, the result begins with; so it can be shown, and never has to be taken back. Of its text, what may still
become another character is held back: bytes of an unfinished one, letters (jamo) of an unfinished syllable, one half of
a flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BROKEN = "\ufffd"  # what bytes that are no character decode to
JOINER = "\u200d"
JAMO = (("\u1100", "\u11ff"), ("\ua960", "\ua97f"), ("\ud7b0", "\ud7ff"))  # those that make syllables
FLAGS = ("\U0001f1e6", "\U0001f1ff")  # two letters make a flag


def common(outputs: Iterable[Sequence[int]]) -> list[int]:
    """What all of these begin with; of none, nothing."""
    given = [list(output) for output in outputs]
    if not given:
        return []
    first, last = min(given), max(given)  # all others lie between them
    size = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    return first[: len(first) if size is None else size]


def whole_characters(text: str) -> str:
    """A text without what may be the beginning of another character than it looks like."""
    end = len(text)
    while end and _begins(text[end - 1]):
        end -= 1
    flags = 0
    while flags < end and FLAGS[0] <= text[end - 1 - flags] <= FLAGS[1]:
        flags += 1
    return text[: end - flags % 2]


def _begins(character: str) -> bool:
    return character in (BROKEN, JOINER) or any(low <= character <= high for low, high in JAMO)
