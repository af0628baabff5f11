"""Syllables and their letters: the arithmetic is Unicode's own."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
import torch

from jumok.text.jamo import (
    FIRST_SYLLABLE,
    LAST_SYLLABLE,
    LEADS,
    SYLLABLES,
    TAILS,
    VOWELS,
    apart,
    is_syllable,
    together,
)


def test_there_are_11172() -> None:
    assert (len(LEADS), len(VOWELS), len(TAILS)) == (19, 21, 28)
    assert SYLLABLES == 11_172 == LAST_SYLLABLE - FIRST_SYLLABLE + 1


def test_every_syllable_is_taken_apart_as_unicode_does() -> None:
    """NFD writes a syllable with the jamo that compose; they are numbered from U+1100, U+1161 and U+11A7 (none)."""
    for place in range(SYLLABLES):
        letters = [ord(letter) for letter in unicodedata.normalize("NFD", chr(FIRST_SYLLABLE + place))]
        tail = letters[2] - 0x11A7 if len(letters) == 3 else 0
        assert apart(place) == (letters[0] - 0x1100, letters[1] - 0x1161, tail)


def test_arrays_and_tensors_are_the_same() -> None:
    places = np.random.default_rng().permutation(SYLLABLES)
    parts = apart(places)
    assert np.array_equal(together(*parts), places)
    of_tensor = apart(torch.from_numpy(places))
    assert all(np.array_equal(mine, theirs.numpy()) for mine, theirs in zip(parts, of_tensor, strict=True))
    assert [apart(int(place)) for place in places[:50]] == list(
        zip(*(part[:50].tolist() for part in parts), strict=True)
    )


@pytest.mark.parametrize("text", ["", "a", "ㄱ", "한글", chr(FIRST_SYLLABLE - 1), chr(LAST_SYLLABLE + 1)])
def test_what_is_no_syllable(text: str) -> None:
    assert not is_syllable(text)
