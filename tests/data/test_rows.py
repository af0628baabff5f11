"""Texts as rows: framed within the limit, laid side by side, cut into smaller batches, against plain lists."""

from __future__ import annotations

import random
import secrets

import numpy as np
import pytest
import torch

from jumok.data.batch import PAD
from jumok.data.labelled_batch import LabelledBatch
from jumok.data.rows import PairRows, Rows, framed, spread
from jumok.errors import BadInput
from jumok.text.special import Specials

SPECIALS = Specials(pad=0, unknown=7, start=11, end=12, mask=13)


@pytest.fixture
def chance() -> random.Random:
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    return random.Random(seed)


def some_words(chance: random.Random, most: int = 20, least: int = 0) -> list[int]:
    return [chance.randrange(20, 99) for _ in range(chance.randint(least, most))]


def truncated(first: list[int], second: list[int], room: int) -> tuple[list[int], list[int]]:
    """Token by token, from the longer one; of two that are equal the second (Devlin et al. 2019)."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


def test_framed_alone(chance: random.Random) -> None:
    for _ in range(300):
        words, limit = some_words(chance), chance.randint(3, 25)
        ids, segments, cut = framed(words, None, SPECIALS, limit)
        assert ids == [11, *words[: limit - 2], 12]
        assert segments == [0] * len(ids)
        assert cut == (len(words) > limit - 2)


def test_framed_pairs_lose_the_end_of_the_longer_one(chance: random.Random) -> None:
    for _ in range(600):
        first, second, limit = some_words(chance), some_words(chance), chance.randint(4, 45)
        ids, segments, cut = framed(first, second, SPECIALS, limit)
        kept, other = truncated(first, second, limit - 3)
        assert len(ids) == len(segments) <= limit
        assert ids == [11, *kept, 12, *other, 12], (first, second, limit)
        assert segments == [0] * (len(kept) + 2) + [1] * (len(other) + 1)
        assert cut == (len(first) + len(second) > limit - 3)


@pytest.mark.parametrize(("second", "limit"), [(None, 1), (None, 2), ([20], 2), ([20], 3)])
def test_a_limit_without_room_is_refused(second: list[int] | None, limit: int) -> None:
    with pytest.raises(BadInput, match=f"data.max_length {limit} leaves no room"):
        framed([20, 21], second, SPECIALS, limit)


def random_rows(chance: random.Random, segmented: bool) -> tuple[list[list[int]], list[list[int]], Rows]:
    rows = [some_words(chance, 9, 1) for _ in range(chance.randint(1, 12))]
    parts = [sorted(chance.randint(0, 1) for _ in row) if segmented else [0] * len(row) for row in rows]
    parts[0][-1] = int(segmented)  # at least one of the second text
    return rows, parts, Rows.of(rows, parts)


def padded(rows: list[list[int]], filler: int) -> list[list[int]]:
    width = max(map(len, rows))
    return [row + [filler] * (width - len(row)) for row in rows]


@pytest.mark.parametrize("segmented", [False, True])
def test_a_batch_is_some_rows_side_by_side(chance: random.Random, segmented: bool) -> None:
    for _ in range(50):
        rows, parts, stored = random_rows(chance, segmented)
        assert (len(stored), stored.lengths.tolist()) == (len(rows), [len(row) for row in rows])
        chosen = [chance.randrange(len(rows)) for _ in range(chance.randint(1, 6))]  # in any order, one twice too
        words, segments = stored.batch(chosen)
        assert words.ids.tolist() == padded([rows[n] for n in chosen], PAD)
        assert words.lengths.tolist() == [len(rows[n]) for n in chosen]
        if segmented:
            assert segments is not None
            assert segments.tolist() == padded([parts[n] for n in chosen], 0)
        else:
            assert segments is None
        places, lengths = stored.places(chosen)
        assert stored.ids[places].tolist() == [id for n in chosen for id in rows[n]]
        values = np.array([chance.randrange(5) for _ in stored.ids])
        expected = [values[stored.starts[n] : stored.starts[n + 1]].tolist() for n in chosen]
        assert spread(values[places], lengths, -1).tolist() == padded(expected, -1)


def test_pairs_that_are_read_apart_stand_behind_each_other(chance: random.Random) -> None:
    for _ in range(50):
        count = chance.randint(1, 8)
        sides = [[some_words(chance, 9, 1) for _ in range(count)] for _ in range(2)]
        pairs = PairRows(*(Rows.of(side) for side in sides))
        assert pairs.lengths.tolist() == [2 * max(map(len, both)) for both in zip(*sides, strict=True)]
        chosen = [chance.randrange(count) for _ in range(chance.randint(1, 6))]
        words, _ = pairs.batch(chosen)
        assert words.ids.tolist() == padded([side[n] for side in sides for n in chosen], PAD)


def test_no_rows_at_all() -> None:
    empty = Rows.of([])
    assert (len(empty), empty.lengths.tolist()) == (0, [])
    words, _ = Rows.of([[1, 2]]).batch([])
    assert len(words) == 0


@pytest.mark.parametrize("kind", ["text", "word", "span", "pair"])
def test_split_keeps_all_and_counts_what_each_part_has(chance: random.Random, kind: str) -> None:
    for _ in range(50):
        rows = [some_words(chance, 9, 3) for _ in range(chance.randint(1, 9))]
        stored = Rows.of(rows)
        seconds = [some_words(chance, 9, 3) for _ in rows]
        indices = np.arange(len(rows))
        words, _ = (PairRows(stored, Rows.of(seconds)) if kind == "pair" else stored).batch(indices)
        said: list[list[int]] = [[chance.choice([-1, 4, 5]) for _ in row] for row in rows]
        counted = len(rows)
        if kind in ("text", "pair"):
            labels = torch.tensor([row[0] for row in said])
        elif kind == "span":
            labels = torch.tensor([row[:2] for row in said])
        else:
            labels = torch.tensor(padded(said, -1))
            counted = int((labels != -1).sum())
        parts_of_text = torch.randint(2, words.ids.shape) if kind != "pair" else None
        batch = LabelledBatch(words, labels, counted, parts_of_text, tuple(indices.tolist()), corpus=3)
        pieces = batch.split(chance.randint(1, 5))
        assert sum(len(piece) for piece in pieces) == len(rows)
        assert sum(piece.tokens for piece in pieces) == counted, "a part counts what is in it"
        for piece in pieces:
            assert piece.corpus == 3
            mine = list(piece.indices)
            expected = [rows[n] for n in mine] + ([seconds[n] for n in mine] if kind == "pair" else [])
            assert piece.words.ids.tolist() == padded(expected, PAD)
            if kind == "word":
                assert piece.labels.tolist() == padded([said[n] for n in mine], -1)
                assert piece.tokens == sum(one != -1 for n in mine for one in said[n])
            else:
                assert piece.labels.tolist() == labels[mine].tolist()
                assert piece.tokens == len(piece)
            if parts_of_text is not None:
                assert piece.segments is not None
                assert torch.equal(piece.segments, parts_of_text[mine, : piece.words.ids.size(1)])
