"""BPE dropout: the text stays, the cuts follow the textbook's distribution, and the key alone decides."""

from __future__ import annotations

import json
import random
import secrets
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data import grammar
from jumok.errors import BadInput
from jumok.text import dropout
from jumok.text.dropout import BpeDropout
from jumok.text.special import END, START, UNKNOWN
from jumok.text.tags import with_tags
from jumok.text.tokenizer import Tokenizer, train_tokenizer

LINES = [pair.target for pair in grammar.pairs("en", "fr", "train", 300)] + [
    "Two men (one old) don't smile... 2016!?",
    "나는 학생입니다. 그는 사과를 먹었다!",
] * 3
TOKENIZERS = {kind: train_tokenizer(LINES, kind, 400) for kind in dropout.KINDS}
BOTH = pytest.mark.parametrize("kind", dropout.KINDS)


def cut(drop: BpeDropout, rows: Sequence[Sequence[int]], *key: int, longest: int = 10**6) -> list[list[int]]:
    lengths = np.array([len(row) for row in rows], np.int64)
    flat, grown = drop(np.array([id for row in rows for id in row], np.int64), lengths, key, longest)
    return [part.tolist() for part in np.split(flat, np.cumsum(grown)[:-1])]


class Textbook:
    """Algorithm 1 of the paper as it stands, for one word."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        model = json.loads(tokenizer.content)["model"]
        self.vocabulary = model["vocab"]
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}

    def __call__(self, word: str, probability: float, draws: random.Random) -> tuple[int, ...]:
        pieces = list(word)
        while True:
            possible = [(self.ranks[pair], at) for at, pair in enumerate(pairwise(pieces)) if pair in self.ranks]
            left = [merge for merge in possible if draws.random() >= probability]
            if not left:
                return tuple(self.vocabulary[piece] for piece in pieces)
            at = min(left)[1]
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]


@BOTH
@given(lines=st.lists(st.sampled_from(LINES) | st.text(max_size=30), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_the_text_stays_what_it_is(kind: str, lines: list[str], seed: int) -> None:
    tokenizer = TOKENIZERS[kind]
    rows = [[START, *row, END] for row in tokenizer.encode(lines)]
    dropped = cut(BpeDropout(tokenizer, 0.5), rows, seed)
    assert tokenizer.decode(dropped) == tokenizer.decode(rows)
    for row, before in zip(dropped, rows, strict=True):
        assert (row[0], row[-1]) == (START, END)
        assert row.count(UNKNOWN) == before.count(UNKNOWN)


@BOTH
@given(line=st.text(max_size=40))
def test_without_dropping_the_walk_ends_at_the_tokenizers_own_cut(kind: str, line: str) -> None:
    """The words are found in the ids, and walked from single characters: the library's own merges come out."""
    tokenizer = TOKENIZERS[kind]
    rows = [[*row, END] for row in tokenizer.encode([line, *LINES[:3]])]
    assert cut(BpeDropout(tokenizer, 0.0), rows, 1) == rows
    drop = BpeDropout(tokenizer, 1e-18)
    assert cut(drop, rows, 1) == rows
    assert len(drop._words.graph) > len(rows), "it walked"


@BOTH
def test_training_text_is_really_cut_anew(kind: str) -> None:
    """No word is given up on: at p → 1 only single characters are left."""
    tokenizer = TOKENIZERS[kind]
    rows = tokenizer.encode(LINES)
    single = {id for token, id in json.loads(tokenizer.content)["model"]["vocab"].items() if len(token) == 1}
    assert {id for row in cut(BpeDropout(tokenizer, 0.9999999), rows, 5) for id in row} <= single


@BOTH
@pytest.mark.parametrize("probability", [0.1, 0.4])
def test_the_distribution_is_the_textbooks(kind: str, probability: float) -> None:
    seed = secrets.randbelow(1 << 31)
    tokenizer, draws, count = TOKENIZERS[kind], random.Random(seed), 4000
    ids = max(tokenizer.encode(["restaurant", "mangeaient", "grandes"]), key=len)
    (word,) = {"".join(json_token(tokenizer, id) for id in ids)}
    drop = BpeDropout(tokenizer, probability)
    # as many words in one batch as in many batches: position and key both vary
    ours = Counter(tuple(row) for key in range(4) for row in cut(drop, [ids] * (count // 4), seed, key))
    textbook = Textbook(tokenizer)
    theirs = Counter(textbook(word, probability, draws) for _ in range(count))
    assert tuple(ids) in ours
    for outcome in ours.keys() | theirs.keys():
        share = (ours[outcome] + theirs[outcome]) / (2 * count)
        spread = (2 * share * (1 - share) / count) ** 0.5
        difference = abs(ours[outcome] - theirs[outcome]) / count
        assert difference <= 5.5 * spread + 2 / count, f"seed {seed}: {outcome} {ours[outcome]} {theirs[outcome]}"


def json_token(tokenizer: Tokenizer, id: int) -> str:
    return next(token for token, number in json.loads(tokenizer.content)["model"]["vocab"].items() if number == id)


@BOTH
def test_the_key_alone_decides(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = TOKENIZERS[kind]
    rows = tokenizer.encode(LINES[:50])
    fresh, used = BpeDropout(tokenizer, 0.3), BpeDropout(tokenizer, 0.3)
    others = [cut(used, tokenizer.encode(LINES[50:90]), 7, update) for update in range(5)]
    expected = cut(fresh, rows, 1, 2, 3)
    assert cut(used, rows, 1, 2, 3) == expected
    monkeypatch.setattr(dropout, "MOST_CUTS", 10)  # what was learned is forgotten before each batch
    assert cut(used, rows, 1, 2, 3) == expected
    assert len({str(cut(used, rows, 1, 2, key)) for key in range(4)}) == 4
    assert len({str(other) for other in others}) == 5


def test_equal_words_of_a_batch_are_cut_independently() -> None:
    tokenizer = TOKENIZERS["bpe"]
    rows = tokenizer.encode([LINES[0]]) * 40
    assert len({tuple(row) for row in cut(BpeDropout(tokenizer, 0.3), rows, 1)}) > 10


def test_a_row_that_would_grow_too_long_stays_as_it_is() -> None:
    tokenizer = TOKENIZERS["bpe"]
    rows = tokenizer.encode(LINES[:30])
    free = cut(BpeDropout(tokenizer, 0.3), rows, 1)
    longest = sorted(map(len, free))[15]
    bounded = cut(BpeDropout(tokenizer, 0.3), rows, 1, longest=longest)
    for before, wild, tame in zip(rows, free, bounded, strict=True):
        assert tame == (wild if len(wild) <= max(longest, len(before)) else before)
    assert bounded != free
    assert bounded != rows


def test_tags_are_left_alone() -> None:
    tokenizer = with_tags(TOKENIZERS["bpe"], ["2de", "2fr"])
    tag = tokenizer.tags["2fr"]
    rows = [[tag, *row, END] for row in tokenizer.encode(LINES[:5])]
    for row, before in zip(cut(BpeDropout(tokenizer, 0.9), rows, 1), rows, strict=True):
        assert row[0] == tag
        assert row.count(tag) == 1
        assert len(row) > len(before)


@pytest.mark.parametrize("kind", ["unigram", "word", "character"])
def test_kinds_without_merges_are_refused_by_name(kind: str) -> None:
    with pytest.raises(BadInput, match=rf"training.bpe_dropout.*{kind}.*bpe or byte"):
        BpeDropout(train_tokenizer(LINES, kind, 300), 0.1)


def test_an_empty_batch_stays_empty() -> None:
    flat, lengths = BpeDropout(TOKENIZERS["bpe"], 0.1)(np.zeros(0, np.int64), np.zeros(0, np.int64), (1,), 9)
    assert flat.size == lengths.size == 0
