"""WordPiece: cut as the paper says, special tokens wherever they lie, and an honest way back."""

from __future__ import annotations

import json
import random
import secrets
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import varied_lines
from hypothesis import given
from hypothesis import strategies as st

from jumok.data import grammar
from jumok.data.text_store import TextStore
from jumok.errors import BadInput
from jumok.recipe import Corpus
from jumok.text.special import SPECIAL_TOKENS, Specials
from jumok.text.tags import with_tags
from jumok.text.tokenizer import Tokenizer, train_tokenizer
from jumok.text.wordpiece import NAMES, OWN, document

LINES = [pair.target for pair in grammar.pairs("en", "fr", "train", 200)] + [
    "Two men (one old) don't smile... 2016!?",
    "나는 학생입니다. 그는 사과를 먹었다! 漢字도 나온다.",
    "an unaffable man, unaffected",
] * 3
OURS = train_tokenizer(LINES, "wordpiece", 600)
# as other people's vocabularies are laid out
FOREIGN = ["[PAD]", "[unused0]", "a", "[UNK]", "[CLS]", "b", "[SEP]", "##a", "[MASK]", "##b", ".", "..."]
NORMAL = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None}


def foreign(tokens: list[str] = FOREIGN, specials: Specials | None = None) -> Tokenizer:
    content = document({token: id for id, token in enumerate(tokens)}, {**NORMAL, "lowercase": True})
    return Tokenizer(content, "wordpiece", True, (), specials)


def by_the_book(word: str, vocabulary: dict[str, int]) -> list[int]:
    """Greedy, longest match first."""
    found, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                found.append(vocabulary[piece])
                start = end
                break
        else:
            return [1]
    return found if len(word) <= 100 else [1]


def test_the_longest_piece_first() -> None:
    seed = secrets.randbelow(1 << 31)
    draw = random.Random(seed)
    vocabulary = json.loads(OURS.content)["model"]["vocab"]
    letters = [*sorted({c for line in LINES for c in line if c.isalpha() and c not in "漢字"}), "ж"]
    for _ in range(300):
        word = "".join(draw.choices(letters, k=draw.choice((1, 3, 6, 12, 100, 101))))
        if draw.random() < 0.5:
            word = word.replace("ж", "e")
        assert OURS.encode([word]) == [by_the_book(word, vocabulary)], f"seed {seed}: {word}"


def test_own_vocabularies_begin_with_berts_special_tokens() -> None:
    assert OURS.specials == OWN == Specials(0, 1, 2, 3, 4)
    assert OURS.pieces(range(5)) == list(NAMES)
    assert [id for id in range(OURS.size) if OURS.is_special(id)] == list(range(5))
    assert train_tokenizer(LINES, "bpe", 300).specials == Specials(0, 1, 2, 3, None)


def test_every_character_that_fits_is_known_at_the_beginning_and_within() -> None:
    vocabulary = json.loads(OURS.content)["model"]["vocab"]
    characters = {c for line in LINES for c in unicodedata.normalize("NFC", line)} - {" "}
    assert characters <= vocabulary.keys()
    within = {c for c in characters if c.isalnum() and c not in "漢字"}
    assert {"##" + c for c in within} <= vocabulary.keys()
    assert not {"##.", "##漢"} & vocabulary.keys(), "nothing is spent on what always stands apart"
    many = [f"{chr(0xAC00 + number)}a {chr(0xAC00 + number)}" * (1 + (number < 5)) for number in range(300)]
    small = train_tokenizer([*many, "a a"], "wordpiece", 30)
    assert small.size <= 30
    known = [number for number in range(300) if 1 not in small.encode([chr(0xAC00 + number)])[0]]
    assert known == list(range(5)), "the frequent ones; ties by code point"


def test_hangul_stays_whole_and_composes() -> None:
    for lowercase in (False, True):
        tokenizer = train_tokenizer(["나는 학생입니다. Café"], "wordpiece", 200, lowercase)
        text = "나는 학생입니다 . " + ("café" if lowercase else "Café")
        for form in ("NFC", "NFD"):
            (row,) = tokenizer.encode([unicodedata.normalize(form, "나는 학생입니다. Café")])
            assert tokenizer.decode([row]) == [text]
        assert not any(0x1100 <= ord(c) < 0x1200 for c in tokenizer.content)


def test_what_stands_between_characters_that_compose_does_not_keep_them_apart() -> None:
    tokenizer = train_tokenizer(["é"], "wordpiece", 50)
    assert tokenizer.decode(tokenizer.encode(["e\u200b\u0301"])) == ["é"]


def test_the_way_back_is_the_promised_one() -> None:
    texts = ["I don't (really) smile...", " 漢字도\u200b  나온다.\x1funaffable\x07 ", "a" * 101 + " man"]
    assert OURS.decode(OURS.encode(texts)) == [
        "I don ' t ( really ) smile . . .",
        "漢 字 도 나온다 . unaffable",
        "man",
    ]
    assert "set apart by spaces" in json.loads(OURS._about())["promise"]
    assert "after NFC" in json.loads(OURS._about())["promise"]


@given(words=st.lists(st.text(st.sampled_from("abcdefgé나는학생"), min_size=1, max_size=9), max_size=6))
def test_words_of_known_letters_read_back_exactly(words: list[str]) -> None:
    assert OURS.decode(OURS.encode([" ".join(words)])) == [" ".join(words)]


def test_text_cannot_spell_a_special_token() -> None:
    for tokenizer in (OURS, foreign()):
        special = {id for id in range(tokenizer.size) if tokenizer.is_special(id)} - {tokenizer.specials.unknown}
        spellings = [*NAMES, "[unused0]", "a[MASK]b", "[mask]", " [CLS] ", "##a", "[PAD][SEP]", *SPECIAL_TOKENS]
        for text, row in zip(spellings, tokenizer.encode(spellings), strict=True):
            assert row, text
            assert not special & set(row), text
    assert OURS.encode(["[a]"])[0] == [json.loads(OURS.content)["model"]["vocab"].get(c, 1) for c in "[a]"]


def test_special_tokens_may_lie_anywhere() -> None:
    tokenizer = foreign()
    assert tokenizer.specials == Specials(pad=0, unknown=3, start=4, end=6, mask=8)
    assert [id for id in range(tokenizer.size) if tokenizer.is_special(id)] == [0, 1, 3, 4, 6, 8]
    (row,) = tokenizer.encode(["ab A. z"])
    assert row == [2, 9, 2, 10, 3]
    assert tokenizer.pieces(row) == ["a", "##b", "a", ".", "[UNK]"]
    full = [4, *row, 8, 11, 6, 0, 1]
    assert tokenizer.decode([full, [9, 2], [], [99, -1]]) == ["ab a . ...", "b a", "", ""]
    text, found = tokenizer.decode_with_offsets(full)
    assert text == "ab a . ..."
    assert [text[start:end] for start, end in found.offsets] == ["", "a", "b", "a", ".", "", "", "...", "", "", ""]
    assert found.words == [0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3]
    assert tokenizer.word_of_piece(full) == found.words
    assert b"".join(tokenizer.written(id, first=place == 0) for place, id in enumerate(row)) == b"ab a ."


def test_the_way_back_is_the_same_with_and_without_offsets() -> None:
    seed = secrets.randbelow(1 << 31)
    draw = random.Random(seed)
    for _ in range(200):
        row = [draw.randrange(OURS.size) for _ in range(draw.randrange(12))]
        assert OURS.decode_with_offsets(row)[0] == OURS.decode([row])[0], f"seed {seed}: {row}"


def test_offsets_are_in_the_text_for_anything() -> None:
    seed = secrets.randbelow(1 << 31)
    for tokenizer in (OURS, foreign()):
        for text in varied_lines.lines(300, random.Random(seed)):
            found = tokenizer.encode_with_offsets(text)
            assert found.ids == tokenizer.encode([text])[0]
            starts = [start for start, _ in found.offsets]
            assert starts == sorted(starts), f"seed {seed}: {text!r}"
            assert all(0 <= start < end <= len(text) for start, end in found.offsets), f"seed {seed}: {text!r}"
            assert all(0 <= word < max(1, len(text.split())) for word in found.words), f"seed {seed}: {text!r}"


def test_which_pieces_go_on_with_a_word() -> None:
    found = foreign().continues()
    assert found.dtype == np.bool_
    assert found.nonzero()[0].tolist() == [7, 9]
    assert OURS.continues() is OURS.continues()
    for kind in ("bpe", "unigram", "word", "space"):
        tokenizer = with_tags(train_tokenizer(LINES, kind, 300), ["2de"])
        goes_on = tokenizer.continues()
        assert goes_on.shape == (tokenizer.size,)
        assert not goes_on[[0, 1, 2, 3, tokenizer.size - 1]].any()
        for row in tokenizer.encode(LINES[-9:]):
            words = tokenizer.word_of_piece(row)
            same = [False, *(before == after for before, after in pairwise(words))]
            assert 1 in row or goes_on[row].tolist() == same, kind
    for kind in ("character", "byte"):
        with pytest.raises(BadInput, match=f"kind {kind} does not mark where words begin"):
            train_tokenizer(LINES, kind, 300).continues()


def test_saved_and_loaded_with_the_special_ids(tmp_path: Path) -> None:
    for number, tokenizer in enumerate((OURS, foreign())):
        tokenizer.save(tmp_path / str(number))
        loaded = Tokenizer.load(tmp_path / str(number))
        assert loaded.specials == tokenizer.specials
        assert loaded.fingerprint == tokenizer.fingerprint
        assert loaded.encode(LINES) == tokenizer.encode(LINES)
    train_tokenizer(LINES, "bpe", 300).save(tmp_path / "bpe")
    assert "specials" not in json.loads((tmp_path / "bpe/about.json").read_text())


@pytest.mark.parametrize(
    "change",
    [
        {"specials": None},
        {"specials": {"pad": 0, "unknown": 3, "start": 4, "end": 6}},  # the mask is there, and becomes a word
        {"specials": {"pad": 0, "unknown": 2, "start": 4, "end": 6, "mask": 8}},
        {"specials": {"pad": 0, "unknown": 3, "start": 4, "end": 4, "mask": 8}},
        {"specials": {"pad": 0, "unknown": 3, "start": 4, "end": 600, "mask": 8}},
        {"specials": {"pad": 0, "unknown": 3, "start": 4, "end": 2, "mask": 8}},  # a word
        {"specials": {"pad": 0, "unknown": 3, "start": 4, "end": "6", "mask": 8}},
        {"specials": {"pad": 1, "unknown": 3, "start": 4, "end": 6, "mask": 8}},
        {"kind": "bpe"},
    ],
)
def test_special_ids_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    foreign().save(tmp_path)
    about = json.loads((tmp_path / "about.json").read_text())
    (tmp_path / "about.json").write_text(json.dumps(about | change))
    if change.get("specials") == {"pad": 0, "unknown": 3, "start": 4, "end": 6}:
        assert Tokenizer.load(tmp_path).specials.mask is None
        return
    with pytest.raises(BadInput, match=r"(about|tokenizer)\.json"):
        Tokenizer.load(tmp_path)


def test_another_kind_in_the_file_is_refused(tmp_path: Path) -> None:
    foreign().save(tmp_path)
    train_tokenizer(LINES, "bpe", 300).save(tmp_path / "bpe")
    (tmp_path / "tokenizer.json").write_bytes((tmp_path / "bpe/tokenizer.json").read_bytes())
    with pytest.raises(BadInput, match="BPE, not WordPiece"):
        Tokenizer.load(tmp_path)


def test_padding_that_is_not_the_first_id_is_refused_in_words() -> None:
    with pytest.raises(BadInput, match=r"padding token has id 1; models here pad with id 0"):
        foreign(["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "a"])
    with pytest.raises(BadInput, match=r'no special token "\[SEP\]"'):
        foreign(["[PAD]", "[UNK]", "[CLS]", "a"])


def test_tags_go_behind_other_peoples_vocabularies_too() -> None:
    tagged = with_tags(foreign(), ["2de"])
    assert tagged.specials == foreign().specials
    assert tagged.is_special(tagged.tags["2de"])
    assert tagged.encode(["<2de>"]) == foreign().encode(["<2de>"])


def test_a_store_of_text_ends_its_lines_with_the_vocabularys_own_token(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("ab a\nz b\n\nb.\n")
    store = TextStore.open_or_build(Corpus(text=[str(text)]), "train", foreign(), tmp_path / "cache", processes=1)
    assert store.ids[:].tolist() == [2, 9, 2, 6, 3, 5, 6, 6, 5, 10, 6]
    assert store.meta["unknown"] == 1


def test_training_prefers_what_is_frequent() -> None:
    counts = Counter(word for line in LINES for word in line.split() if word.isalpha())
    for word, _ in counts.most_common(20):
        assert len(OURS.encode([word])[0]) == 1, word


def test_the_smallest_vocabulary() -> None:
    assert train_tokenizer(["aaab"], "wordpiece", 7).size == 7
    with pytest.raises(BadInput, match="wordpiece needs at least 7"):
        train_tokenizer(["a"], "wordpiece", 6)
    with pytest.raises(BadInput, match="nothing to train"):
        train_tokenizer(["\u200b", " \x00"], "wordpiece", 60)
