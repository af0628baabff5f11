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
    letters_of,
    syllable_of,
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


def test_letters_by_their_names() -> None:
    assert letters_of("한") == ("ㅎ", "ㅏ", "ㄴ")
    assert letters_of("가") == ("ㄱ", "ㅏ", "")
    assert letters_of("힣") == ("ㅎ", "ㅣ", "ㅎ")
    assert syllable_of("ㄱ", "ㅡ", "ㄹ") == "글"
    for place in np.random.default_rng().integers(0, SYLLABLES, 200):
        syllable = chr(FIRST_SYLLABLE + place)
        assert syllable_of(*letters_of(syllable)) == syllable


@pytest.mark.parametrize("text", ["", "a", "ㄱ", "한글", chr(FIRST_SYLLABLE - 1), chr(LAST_SYLLABLE + 1)])
def test_what_is_no_syllable(text: str) -> None:
    assert not is_syllable(text)
    with pytest.raises(ValueError, match="not a Hangul syllable"):
        letters_of(text)


@pytest.mark.parametrize("letters", [("ㅏ", "ㅏ", ""), ("ㄱ", "ㄱ", ""), ("ㄱ", "ㅏ", "ㄸ")])
def test_letters_that_make_no_syllable(letters: tuple[str, str, str]) -> None:
    with pytest.raises(ValueError, match="no syllable"):
        syllable_of(*letters)
