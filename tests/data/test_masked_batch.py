"""Texts with hidden words: padded, packed, in parts or filled up, they ask for the same words at the same places."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401

from jumok.data.masked_batch import MaskedBatch
from jumok.data.masking import Hidden
from jumok.data.packing import NOTHING, PackedSide

Asked = list[tuple[tuple[int, ...], tuple[int, ...] | None, int | None, tuple[tuple[int, int], ...]]]


def made(generator: np.random.Generator, packed: bool, segmented: bool, size: int | None = None) -> MaskedBatch:
    rows = int(generator.integers(1, 9))
    lengths = generator.integers(2, 12, rows)
    total = int(lengths.sum())
    places = np.flatnonzero(generator.random(total) < 0.3)
    places = places if len(places) else np.array([total - 1])
    hidden = Hidden(generator.integers(5, 90, total), places, generator.integers(5, 90, len(places)))
    segments = generator.integers(0, 2, total) if segmented else None
    order = generator.integers(0, 2, rows) if segmented else None
    return MaskedBatch.of(hidden, lengths, segments, order, size, packed, tuple(range(rows)), 2)


def asked(batch: MaskedBatch) -> Asked:
    """Text by text: ids, segments, the order, and (column, wanted) for each hidden place."""
    lengths = batch.words.lengths.tolist()
    packed = isinstance(batch.words, PackedSide)
    width = batch.words.ids.size(1)
    starts = batch.words.starts.tolist() if isinstance(batch.words, PackedSide) else [n * width for n in range(99)]
    ids = batch.words.ids.flatten().tolist()
    parts = None if batch.segments is None else batch.segments.flatten().tolist()
    guesses = list(zip(batch.places.tolist(), batch.wanted.tolist(), strict=True))
    assert len(guesses) == batch.guesses == batch.tokens
    told, seen = [], 0
    for number, (start, length) in enumerate(zip(starts, lengths, strict=packed)):
        here = tuple((place - start, word) for place, word in guesses if start <= place < start + length)
        seen += len(here)
        told.append(
            (
                tuple(ids[start : start + length]),
                None if parts is None else tuple(parts[start : start + length]),
                None if batch.order is None else int(batch.order[number]),
                here,
            )
        )
    assert seen == len(guesses), "no place lies in the padding"
    return told


@pytest.mark.parametrize("segmented", [False, True])
def test_packed_asks_what_padded_asks(segmented: bool) -> None:
    for _ in range(60):
        draw = secrets.randbelow(2**31)
        padded, packed, filled = (
            made(np.random.default_rng(draw), kind, segmented, size)
            for kind, size in ((False, None), (True, None), (True, 128))
        )
        assert asked(padded) == asked(packed) == asked(filled), f"seed {draw}"
        assert (padded.filled, packed.filled, filled.filled) == (False, False, True)
        assert filled.words.ids.size(1) == 128
        assert padded.read == packed.read == filled.read == int(padded.words.lengths.sum())


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("segmented", [False, True])
def test_split_keeps_every_guess(packed: bool, segmented: bool) -> None:
    for _ in range(60):
        draw = secrets.randbelow(2**31)
        generator = np.random.default_rng(draw)
        batch = made(generator, packed, segmented, 128)
        parts = batch.split(int(generator.integers(1, 5)))
        assert [text for part in parts for text in asked(part)] == asked(batch), f"seed {draw}"
        assert sum(part.tokens for part in parts) == batch.tokens
        assert [index for part in parts for index in part.indices] == list(batch.indices)
        assert {part.corpus for part in parts} == {2}
        assert {isinstance(part.words, PackedSide) for part in parts} == {packed}


def test_repeating_only_pads() -> None:
    for _ in range(40):
        draw = secrets.randbelow(2**31)
        batch = made(np.random.default_rng(draw), True, True, 256)
        again = batch.repeating()
        assert again is not None
        assert isinstance(batch.words, PackedSide)
        assert isinstance(again.words, PackedSide)
        assert batch.order is not None
        assert again.order is not None
        assert batch.segments is not None
        assert again.segments is not None
        count, rows = len(batch.places), len(batch)
        assert torch.equal(again.words.table, batch.words.table), f"seed {draw}"
        assert torch.equal(again.segments, batch.segments)
        assert torch.equal(again.places[:count], batch.places)
        assert torch.equal(again.wanted[:count], batch.wanted)
        assert (again.wanted[count:] == NOTHING).all()
        assert len(again.places) % 128 == 0
        assert int(again.places.max()) < 256
        assert torch.equal(again.order[:rows], batch.order)
        assert (again.order[rows:] == NOTHING).all()
        assert len(again.order) == len(again.words.starts) == len(again.words.lengths)
        assert torch.equal(again.words.starts[:rows], batch.words.starts)


def test_what_is_not_filled_does_not_repeat() -> None:
    generator = np.random.default_rng(secrets.randbelow(2**31))
    assert made(generator, False, False).repeating() is None
    assert made(generator, True, False).repeating() is None
    assert made(generator, True, False, 1).repeating() is None, "it is larger than the row that was asked for"
