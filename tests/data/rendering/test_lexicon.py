"""Words as ids: which are left out, which are held out, and how texts that are the same word are found."""

from __future__ import annotations

import string

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.rendering.alphabet import Alphabet
from jumok.data.rendering.held_out import bare, key_of, side_of
from jumok.data.rendering.lexicon import Lexicon, hashes, lexicon_of
from jumok.data.rendering.words import WordList
from jumok.recipe.recognition import CharsetSection
from jumok.text.charset import Charset

CHARSET = Charset.of(CharsetSection(sets=("digits", "latin", "punctuation", "latin-1")))
ALPHABET = Alphabet(CHARSET)
texts = st.text(string.ascii_letters + string.digits + "-'.!(é", min_size=1, max_size=9).filter(
    lambda text: any(map(str.isalnum, text))
)


def hashed(written: list[str]) -> list[int]:
    ids = np.zeros((len(written), 12), np.int32)
    for row, text in enumerate(written):
        ids[row, : len(text)] = CHARSET.encode(text)
    return [int(each) for each in hashes(ids, np.array(list(map(len, written)), np.int64), ALPHABET)]


def written(lexicon: Lexicon) -> list[str]:
    return [
        CHARSET.decode(lexicon.pool[start : start + length])
        for start, length in zip(lexicon.starts, lexicon.lengths, strict=True)
    ]


@given(one=texts, other=texts)
def test_the_same_word_has_the_same_hash(one: str, other: str) -> None:
    same = key_of(bare(one)) == key_of(bare(other))
    first, second = hashed([one, other])
    assert (first == second) == same
    assert hashed([f"({one.upper()}!"]) == [first]


@given(words=st.lists(texts, max_size=60), share=st.sampled_from([0.3, 1.0]))
def test_splits_share_no_word(words: list[str], share: float) -> None:
    listed = WordList(tuple(dict.fromkeys(map(str.lower, words))))
    parts = {split: lexicon_of(listed, ALPHABET, split, share, 12) for split in ("train", "valid", "test")}  # type: ignore[arg-type]
    for split, lexicon in parts.items():
        own = [word for word in listed.words if side_of(word, share) == split]
        assert lexicon.held_out == (split == "train" or bool(own))
        if own:
            assert written(lexicon) == own  # in the order of the list
            assert not lexicon.is_forbidden(np.array(hashed(own), np.uint64)).any()
        held_out = [word for word in listed.words if side_of(word, share) not in ("train", split)]
        if held_out:
            assert lexicon.is_forbidden(np.array(hashed(held_out), np.uint64)).all()


def test_words_that_cannot_be_written_are_counted() -> None:
    listed = WordList(("fine", "한글", "naïve", "toolongaword", "ärger", "日本"))
    lexicon = lexicon_of(listed, ALPHABET, "train", 0.0, 8)
    assert written(lexicon) == ["fine", "naïve", "ärger"]
    assert lexicon.left_out == 3
    assert lexicon.outside.with_outside == 2
    assert lexicon.outside.too_long == 1


def test_an_accent_of_its_own_keeps_its_letter() -> None:
    """H with a line below has no character of its own, h with it does: written small, the word would be another."""
    charset = Charset.of(CharsetSection(extra="\u0331"))
    lexicon = lexicon_of(WordList(("H\u0331at", "\u0331at", "hat", "x\u0331at")), Alphabet(charset), "train", 0.0, 8)
    assert charset.decode(lexicon.pool[lexicon.starts[0] :][: lexicon.lengths[0]]) == "H\u0331at"
    assert lexicon.fixed.tolist() == [True, False, True]
    assert lexicon.left_out == 1
