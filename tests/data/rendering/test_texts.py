"""What is written: only what can be read, always the same for a number, in the shares that were asked for."""

from __future__ import annotations

import secrets
import string
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jumok.data.rendering.embedded import known_words
from jumok.data.rendering.held_out import bare, is_word, key_of, side_of
from jumok.data.rendering.texts import KINDS, Texts
from jumok.data.rendering.words import WordList, small
from jumok.errors import BadInput
from jumok.recipe.recognition import CharsetSection, Rendering, SetName, Written
from jumok.text.charset import Charset
from jumok.text.jamo import is_syllable
from jumok.text.special import END, PAD

LATIN = Charset.of(CharsetSection())
KOREAN = Charset.of(CharsetSection(sets=("digits", "latin", "punctuation", "hangul")))
SPLITS = ("train", "valid", "test")
NOTHING = dict.fromkeys(KINDS, 0.0)


def seed() -> int:
    value = secrets.randbelow(2**62)
    print(f"seed {value}")
    return value


def only(**shares: float) -> Written:
    return Written(**{**NOTHING, **shares})


def some_numbers(count: int) -> Any:
    return np.random.default_rng().integers(0, 2**60, count)


written = st.builds(lambda shares: dict(zip(KINDS, shares, strict=True)), st.tuples(*[st.floats(0, 1)] * len(KINDS)))
charsets = st.builds(
    CharsetSection,
    sets=st.lists(st.sampled_from(get_args(SetName)), unique=True).map(tuple),
    extra=st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20),
    space=st.booleans(),
).map(Charset.of)


@settings(max_examples=60, deadline=None)
@given(
    charset=charsets, shares=written, case=st.tuples(*[st.floats(0, 1)] * 4), marks=st.floats(0, 1),
    held_out=st.floats(0, 1), max_length=st.integers(1, 40), split=st.sampled_from(SPLITS),
    words=st.lists(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=9), max_size=30),
    number=st.integers(0, 2**62), seed=st.integers(-(2**70), 2**70),
)  # fmt: skip
def test_only_what_can_be_read_and_always_the_same(
    charset: Charset, shares: dict[str, float], case: tuple[float, float, float, float], marks: float, held_out: float,
    max_length: int, split: Any, words: list[str], number: int, seed: int,
) -> None:  # fmt: skip
    assume(sum(shares.values()) > shares["empty"])
    assume(sum(case) > 0)
    section = Rendering(texts=Written(**shares), case=case, punctuation=marks, held_out_words=held_out)
    listed = WordList(tuple(dict.fromkeys(map(small, words))))
    try:
        texts = Texts(section, charset, split, max_length, listed)
    except BadInput:  # no kind with a share can be written
        assume(False)
    numbers = number + np.arange(150)
    lines = texts.at(numbers, seed)
    ids, lengths = texts.ids(numbers, seed)
    assert ids.shape == (150, max_length + 1)
    assert ids.dtype == lengths.dtype == np.int64
    for line, row, length in zip(lines, ids.tolist(), lengths.tolist(), strict=True):
        assert len(line) == length <= max_length
        assert not charset.outside(line)
        assert unicodedata.is_normalized("NFC", line)
        assert row == [*charset.encode(line), END, *[PAD] * (max_length - length)]
    order = np.random.default_rng().permutation(150)
    assert texts.at(numbers[order], seed) == [lines[place] for place in order]
    assert texts.at(numbers[7:8], seed) == lines[7:8]
    assert texts.kinds(numbers[order][:20], seed) == [texts.kinds(numbers, seed)[place] for place in order[:20]]
    for kind, line in zip(texts.kinds(numbers, seed), lines, strict=True):
        assert (kind == "empty") == (line == "")
        assert shares[kind] > 0


def test_seeds_splits_and_numbers_differ() -> None:
    section, numbers, first = Rendering(texts=only(letters=1.0)), some_numbers(400), seed()
    train = Texts(section, LATIN, "train", 25).at(numbers, first)
    for other in (
        Texts(section, LATIN, "valid", 25).at(numbers, first),
        Texts(section, LATIN, "train", 25).at(numbers, first + 1),
        Texts(section, LATIN, "train", 25).at(numbers + 1, first),
    ):
        assert sum(mine == theirs for mine, theirs in zip(train, other, strict=True)) < 40


def test_texts_are_the_same_on_every_machine() -> None:
    """A word of a run is known by its number; where this changes, runs cannot be resumed exactly any more."""
    listed = WordList(("alpha", "beta", "gamma", "한글", "주목", "naïve"))
    section = Rendering(
        texts=Written(words=0.5, frequent=0.5, numbers=0.5, letters=0.5, syllables=0.5), punctuation=0.3
    )
    texts = Texts(section, KOREAN, "train", 25, listed)
    assert texts.at([*range(15), 10**12, 2**62], 7) == [
        "@Alpha",
        "BETA",
        "gAMma",
        "Beta",
        "010-5550-7942",
        "21:07",
        "1309-3116",
        "QMF988RZ13H7",
        "skwi05lyrs",
        "애",
        "9abvz%f",
        "GAMMA",
        "주목",
        "44번",
        "ALPHA",
        "bEtA",
        "w",
    ]


@pytest.mark.parametrize("charset", [LATIN, KOREAN])
def test_shares_of_kinds(charset: Charset) -> None:
    shares = dict(zip(KINDS, np.random.default_rng().uniform(0.05, 1.0, len(KINDS)).tolist(), strict=True))
    texts = Texts(Rendering(texts=Written(**shares)), charset, "train", 25)
    possible = {kind: share for kind, share in shares.items() if kind != "syllables" or charset.hangul}
    assert texts.shares == pytest.approx({kind: share / sum(possible.values()) for kind, share in possible.items()})
    kinds = Counter(texts.kinds(some_numbers(40_000), seed()))
    for kind, share in texts.shares.items():
        assert abs(kinds[kind] / 40_000 - share) < 6 * (share * (1 - share) / 40_000) ** 0.5
    assert any("syllables" in note for note in texts.notes) == (not charset.hangul)


def test_shares_of_cases_and_marks() -> None:
    section = Rendering(texts=only(words=1.0), case=(0.4, 0.3, 0.2, 0.1), punctuation=0.25)
    listed = WordList(tuple("".join(row) for row in np.random.default_rng().choice(list("abcdefgh"), (50, 9))))
    texts = Texts(section, LATIN, "train", 25, listed)
    lines = texts.at(some_numbers(40_000), seed())
    words = [bare(line) for line in lines]
    assert set(map(str.lower, words)) == {word for word in listed.words if side_of(word, 0.02) == "train"}
    counts = {
        0.4: sum(map(str.islower, words)), 0.3: sum(word[0].isupper() and word[1:].islower() for word in words),
        0.2: sum(map(str.isupper, words)), 0.25: sum(len(line) > 9 for line in lines),
    }  # fmt: skip
    for share, count in counts.items():  # of words in any case, 1 in 256 looks like each of the others
        assert abs(count / 40_000 - share) < 6 * (share * (1 - share) / 40_000) ** 0.5 + 0.1 / 128
    assert all(len(line) <= 11 for line in lines)
    ends = {line[0] for line in lines} | {line[-1] for line in lines}
    assert ends - set(string.ascii_letters) == set(string.punctuation)


def test_words_come_evenly_and_frequent_ones_by_zipf() -> None:
    listed = WordList(tuple("".join(row) for row in np.random.default_rng().choice(list("abcdefgh"), (100, 12))))
    for kind in ("words", "frequent"):
        section = Rendering(texts=only(**{kind: 1.0}), held_out_words=0, punctuation=0)
        lines = Texts(section, LATIN, "train", 25, listed).at(some_numbers(60_000), seed())
        counts = Counter(map(str.lower, lines))
        weights = 1 / (np.arange(100) + 2.7) if kind == "frequent" else np.ones(100)
        for word, share in zip(listed.words, weights / weights.sum(), strict=True):
            assert abs(counts[word] / 60_000 - share) < 6.5 * (share / 60_000) ** 0.5


def test_the_whole_block_comes_evenly() -> None:
    lines = Texts(Rendering(texts=only(syllables=1.0)), KOREAN, "train", 25).at(some_numbers(100_000), seed())
    counts = np.array(list(Counter("".join(lines)).values()))
    assert all(is_syllable(character) for character in set("".join(lines)))
    assert len(counts) == 11_172  # of 450,000: that one is missing has a chance below 10⁻¹³
    square = float(((counts - counts.mean()) ** 2 / counts.mean()).sum())
    assert abs(square - 11_171) < 7 * (2 * 11_171) ** 0.5


def test_every_character_is_written() -> None:
    charset = Charset.of(CharsetSection(sets=("digits", "latin", "punctuation", "latin-1"), extra="★漢жω₩", space=True))
    lines = Texts(Rendering(texts=Written(letters=1.0)), charset, "train", 25).at(some_numbers(60_000), seed())
    assert set("".join(lines)) == set(charset.characters)
    assert {len(line) for line in lines} == set(range(26))


def test_words_of_both_scripts() -> None:
    lines = Texts(Rendering(texts=only(words=1.0), punctuation=0), KOREAN, "train", 25).at(some_numbers(5000), seed())
    hangul = sum(is_syllable(line[0]) for line in lines)
    assert 1500 < hangul < 3500


@pytest.mark.parametrize("charset", [LATIN, KOREAN])
def test_no_held_out_word_is_trained_with(charset: Charset) -> None:
    section = Rendering(texts=Written(words=1.0, letters=0.3, syllables=0.3), held_out_words=0.3)
    parts = {split: Texts(section, charset, split, 25) for split in SPLITS}  # type: ignore[arg-type]
    assert not any(texts.notes for texts in parts.values() if charset.hangul)
    numbers, number = some_numbers(20_000), seed()
    seen = {}
    for split, texts in parts.items():
        from_lists = [line for line, kind in zip(texts.at(numbers, number), texts.kinds(numbers, number), strict=True)
                      if kind == "words"]  # fmt: skip
        seen[split] = {key_of(bare(line)) for line in from_lists if is_word(bare(line))}
        assert len(seen[split]) > 300
        assert all(side_of(word, 0.3) == split for word in seen[split])
    assert not seen["train"] & seen["valid"]
    assert not seen["train"] & seen["test"]
    assert not seen["valid"] & seen["test"]


def test_random_strings_are_no_held_out_words() -> None:
    """Of three letters of four there are 64 words: half of them are held out, and random strings would hit them."""
    charset = Charset.of(CharsetSection(sets=(), extra="abcdABCD.!"))
    words = [a + b + c for a in "abcd" for b in "abcd" for c in "abcd"]
    section = Rendering(texts=only(letters=1.0), held_out_words=0.5, punctuation=0.5)
    train, valid = (Texts(section, charset, split, 4, WordList(tuple(words))) for split in ("train", "valid"))
    of_train = {key_of(bare(line)) for line in train.at(some_numbers(20_000), seed())}
    of_valid = {key_of(bare(line)) for line in valid.at(some_numbers(20_000), seed())}
    held_out = {word for word in words if side_of(word, 0.5) != "train"}
    assert len(held_out) > 10
    assert set(words) - held_out <= of_train
    assert not held_out & of_train
    assert not {word for word in words if side_of(word, 0.5) == "test"} & of_valid
    assert {word for word in words if side_of(word, 0.5) == "valid"} <= of_valid


def test_where_everything_is_held_out_a_character_is_left() -> None:
    charset = Charset.of(CharsetSection(sets=(), extra="a"))
    section = Rendering(texts=only(letters=1.0), held_out_words=1.0)
    lines = Texts(section, charset, "train", 4, WordList(("aaa", "aaaa"))).at(some_numbers(2000), seed())
    assert set(lines) == {"a", "aa"}


def test_several_words_where_the_space_is_a_character() -> None:
    charset = Charset.of(CharsetSection(space=True))
    section = Rendering(texts=only(words=1.0), case=(0, 1, 0, 0), punctuation=0)
    lines = Texts(section, charset, "train", 25).at(some_numbers(5000), seed())
    counts = Counter(len(line.split(" ")) for line in lines)
    assert set(counts) == {1, 2, 3}
    assert 1000 < counts[2] + counts[3] < 2000
    assert all(word[:1].isupper() or not word[:1].isalpha() for line in lines for word in line.split(" "))
    assert all(line == line.strip() for line in lines)


def test_words_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(["good", "words", "naïve", "한국", "x" * 30, "more"]))
    texts = Texts(Rendering(words=(str(tmp_path / "words.txt"),), held_out_words=0), LATIN, "train", 25)
    assert texts.left_out == 3
    said = "\n".join(texts.notes)
    for part in ("3 words cannot be written", "ï (U+00EF", '"naïve"', "hangul", "longer than 25"):
        assert part in said
    assert len(texts.lexicon) == 3


def test_a_list_too_small_to_hold_out_is_told(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("of\nto\nin\n")
    section = Rendering(texts=only(words=1.0), words=(str(tmp_path / "words.txt"),), punctuation=0)
    valid = Texts(section, LATIN, "valid", 25)
    assert set(map(str.lower, valid.at(range(100), seed()))) == {"of", "to", "in"}
    assert "words of training are written there too" in valid.notes[0]
    assert not Texts(section, LATIN, "train", 25).notes
    nothing_held_out = section.model_copy(update={"held_out_words": 0.0})
    assert not Texts(nothing_held_out, LATIN, "valid", 25).notes


def test_capitals_where_only_capitals_are_there() -> None:
    charset = Charset.of(CharsetSection(sets=("digits",), extra=string.ascii_uppercase))
    lines = Texts(Rendering(), charset, "train", 12).at(some_numbers(2000), seed())
    assert {"THE", *map(str.upper, known_words("en"))} & set(lines)
    assert all(set(line) <= set(charset.characters) for line in lines)


def test_characters_that_cling_make_no_others() -> None:
    """Accents of their own and jamo that compose: NFC would join them with what happens to stand before them."""
    charset = Charset.of(CharsetSection(sets=("latin", "hangul"), extra="\u0301\u0307\u11a8\u1161\u1100"))
    words = WordList(("i\u0307stanbul", "x\u0301y"))  # in capitals, the first would begin with İ
    section = Rendering(texts=Written(words=1.0, letters=1.0, syllables=1.0), case=(0, 0, 1, 0), held_out_words=0)
    texts = Texts(section, charset, "train", 25, words)
    lines, (ids, lengths) = texts.at(range(3000), 1), texts.ids(range(3000), 1)
    assert [charset.encode(line) for line in lines] == [
        row[:length] for row, length in zip(ids.tolist(), lengths.tolist(), strict=True)
    ]
    assert set(words.words) < set(lines)


def test_nothing_to_write() -> None:
    with pytest.raises(BadInput, match=r"syllables: the charset has no Hangul"):
        Texts(Rendering(texts=only(syllables=1.0, empty=1.0)), LATIN, "train", 25)


def test_the_fingerprint_tells_other_texts() -> None:
    def fingerprint(split: Any = "train", max_length: int = 25, charset: Charset = LATIN, **changed: Any) -> str:
        return Texts(Rendering(**changed), charset, split, max_length).fingerprint

    assert fingerprint() == fingerprint()
    others = [fingerprint("valid"), fingerprint(max_length=24), fingerprint(charset=KOREAN), fingerprint(punctuation=0),
              fingerprint(held_out_words=0.5)]  # fmt: skip
    assert len({fingerprint(), *others}) == 6
