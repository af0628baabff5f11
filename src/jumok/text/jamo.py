"""Hangul syllables and their letters: 19 leads · 21 vowels · 28 tails (the first of them none) = 11,172.

    syllable = U+AC00 + (lead · 21 + vowel) · 28 + tail

is the order of Unicode, so taking a syllable apart and putting it together is arithmetic. `apart` and `together` count
syllables from 0 and take whole numbers, arrays of numpy and tensors alike.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

FIRST_SYLLABLE, LAST_SYLLABLE = 0xAC00, 0xD7A3
LEADS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
TAILS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
SYLLABLES = len(LEADS) * len(VOWELS) * len(TAILS)


class WholeNumbers(Protocol):
    """An int, an array or a tensor of them."""

    def __floordiv__(self, other: int, /) -> Any: ...
    def __mod__(self, other: int, /) -> Any: ...
    def __mul__(self, other: int, /) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...


Numbers = TypeVar("Numbers", bound=WholeNumbers)


def apart(syllable: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """0 … 11,171 as (lead, vowel, tail); tail 0 is none."""
    return (
        syllable // (len(VOWELS) * len(TAILS)),
        syllable // len(TAILS) % len(VOWELS),
        syllable % len(TAILS),
    )


def together(lead: Numbers, vowel: Numbers, tail: Numbers) -> Numbers:
    """(lead, vowel, tail) as 0 … 11,171."""
    return (lead * len(VOWELS) + vowel) * len(TAILS) + tail


def is_syllable(character: str) -> bool:
    return len(character) == 1 and FIRST_SYLLABLE <= ord(character) <= LAST_SYLLABLE
