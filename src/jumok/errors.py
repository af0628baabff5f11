"""Errors made for people: what is wrong, where, and what to do about it.

`BadInput` ends a command with exit code 2, `Failure` with 1. Anything else is a bug of ours and shows its traceback
only under `--debug`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

LONGEST = 100  # characters of a value in a sentence


class JumokError(Exception):
    """The message is printed as it stands."""

    exit_code = 1


class BadInput(JumokError):
    """Something the user gave us: a file, a key, a value."""

    exit_code = 2


class Failure(JumokError):
    """Something that went wrong on the way: a full disk, a loss that is not a number."""


class ReaderGone(JumokError):
    """Who read our output (head, less) has left: that is its right, and nothing is said about it."""

    exit_code = 141


class ToldElsewhere(JumokError):
    """Another process of the same run says what is wrong; this one ends with the same code and says nothing."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("another process says what is wrong")
        self.exit_code = exit_code


def did_you_mean(word: str, known: Iterable[str], before: str = "") -> str:
    """' Did you mean "width"?' or, when nothing is near, the list of what there is. `before` is where all of it is."""
    choices = sorted(known)
    near = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    if near:
        return f' Did you mean "{before}{near[0]}"?'
    return f" Known: {', '.join(choices)}." if choices else ""


def shortly(value: Any) -> str:
    """A value that somebody gave, for a sentence about it: of a very long one, how it begins."""
    written = repr(value)
    return written if len(written) <= LONGEST else f"{written[:LONGEST]}…"
