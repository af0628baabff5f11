"""Which words are held out follows from the word, whatever is done to its letters and around it."""

from __future__ import annotations

import string
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.rendering.held_out import bare, is_word, key_of, side_of

words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=12).map(
    lambda text: unicodedata.normalize("NFC", text)
)


def test_every_character_has_the_key_of_its_other_case() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        for other in (character.lower(), character.upper()):
            if len(other) == 1:
                assert key_of(other) == key_of(character), f"U+{code:04X}"


@given(
    word=words,
    share=st.floats(0, 1),
    capitals=st.integers(0, 2**12),
    before=st.text(string.punctuation, max_size=2),
    after=st.text(string.punctuation + "…”", max_size=2),
)
def test_no_case_and_no_marks_change_the_side(word: str, share: float, capitals: int, before: str, after: str) -> None:
    changed = "".join(
        other if capitals >> place & 1 and len(other := letter.swapcase()) == 1 else letter
        for place, letter in enumerate(word)
    )
    assert side_of(before + changed + after, share) == side_of(word, share)


@given(word=words, low=st.floats(0, 1), high=st.floats(0, 1))
def test_a_larger_share_only_adds_words(word: str, low: float, high: float) -> None:
    low, high = sorted((low, high))
    assert not (side_of(word, low) != "train" and side_of(word, high) == "train")
    assert side_of(word, 0.0) == "train"


def test_shares_are_kept() -> None:
    letters = np.random.default_rng().choice(list(string.ascii_lowercase), (40_000, 12))
    sides = [side_of("".join(row), 0.2) for row in letters]
    for side, share in (("valid", 0.1), ("test", 0.1), ("train", 0.8)):
        assert abs(sides.count(side) / 40_000 - share) < 6 * (share * (1 - share) / 40_000) ** 0.5


@pytest.mark.parametrize("text", ["", "a", "of", "17", "2024", "12:30", "--", "é", "가", "'s", "(of)"])
def test_what_is_too_short_is_for_training(text: str) -> None:
    assert side_of(text, 1.0) == "train"


@pytest.mark.parametrize("text", ["the", "학교", "a1b", "naïve", "“the”", "don't"])
def test_words_are_words(text: str) -> None:
    assert is_word(bare(text))
    assert side_of(text, 1.0) != "train"


def test_marks_around_a_word() -> None:
    assert bare("“Hello,”") == "Hello"
    assert bare("(don't)!") == "don't"
    assert bare("नमस्ते।") == "नमस्ते"  # the vowel sign at the end stays
    assert bare("...") == ""
