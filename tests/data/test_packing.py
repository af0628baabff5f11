"""Packing keeps every pair, says of every token where it belongs, and fills up without touching anything."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_checks import random_pairs, some_lengths
from seeded import seed  # noqa: F401  fresh inputs in every run

from jumok.data.batch import END, PAD, PairBatch
from jumok.data.packing import NOTHING, PackedPairs, PackedSide

ROW = st.lists(st.integers(4, 40), max_size=7)
PAIRS = st.lists(st.tuples(ROW, ROW), min_size=1, max_size=6)


def equal(one: PairBatch, other: PairBatch) -> bool:
    same = [
        torch.equal(a, b)
        for mine, theirs in ((one.source, other.source), (one.target, other.target))
        for a, b in ((mine.ids, theirs.ids), (mine.lengths, theirs.lengths))
    ]
    return all(same) and (one.indices, one.corpus) == (other.indices, other.corpus)


def batch_of(pairs: list[tuple[list[int], list[int]]]) -> PairBatch:
    return PairBatch.of(*zip(*pairs, strict=True), indices=range(len(pairs)), corpus=2)


@settings(deadline=None)
@given(PAIRS, st.one_of(st.none(), st.tuples(st.integers(0, 60), st.integers(0, 60))))
def test_a_packed_batch_is_the_same_batch(
    pairs: list[tuple[list[int], list[int]]], budget: tuple[int, int] | None
) -> None:
    batch = batch_of(pairs)
    packed = PackedPairs.of(batch, budget)
    assert equal(packed.unpacked(), batch)
    assert (packed.tokens, len(packed)) == (batch.tokens, len(batch))
    for side, room, real in zip(
        (packed.source, packed.target), budget or (0, 0), (batch.source.tokens, batch.tokens), strict=True
    ):
        assert (side.table.size(1), side.tokens) == (max(room, real), real)
        assert side.longest == int(side.lengths.max())


@settings(deadline=None)
@given(PAIRS, st.integers(1, 7), st.booleans())
def test_parts_are_the_parts_of_the_batch(pairs: list[tuple[list[int], list[int]]], parts: int, filled: bool) -> None:
    batch = batch_of(pairs)
    packed = PackedPairs.of(batch, (99, 99) if filled else None)
    found, expected = packed.split(parts), batch.split(parts)
    assert len(found) == len(expected)
    assert all(equal(one.unpacked(), other) for one, other in zip(found, expected, strict=True))


@settings(deadline=None)
@given(PAIRS, st.booleans(), st.booleans())
def test_each_token_knows_its_sentences(pairs: list[tuple[list[int], list[int]]], filled: bool, doubled: bool) -> None:
    packed = PackedPairs.of(batch_of(pairs), (64, 80) if filled else None)
    if doubled:
        packed = packed.twice()
        pairs = pairs * 2
    for side, other in ((packed.source, packed.target), (packed.target, packed.source)):
        real = torch.zeros(side.table.size(1), dtype=torch.bool)
        for number in range(len(pairs)):
            start, stop = int(side.starts[number]), int(side.starts[number] + side.lengths[number])
            there = int(other.starts[number]), int(other.starts[number] + other.lengths[number])
            here = slice(start, stop)
            assert set(zip(side.begin[here].tolist(), side.end[here].tolist(), strict=True)) == {(start, stop)}
            assert set(zip(side.other_begin[here].tolist(), side.other_end[here].tolist(), strict=True)) == {there}
            assert side.positions[0, here].tolist() == list(range(stop - start))
            real[here] = True
        assert int(real.sum()) == side.tokens
        assert (side.begin == side.end)[~real].all()
        assert (side.other_begin == side.other_end)[~real].all()
        assert (side.ids[0, ~real] == PAD).all()
        for edge in (side.begin, side.end, side.other_begin, side.other_end):
            assert (edge.diff() >= 0).all()
    assert (packed.source.wanted == NOTHING).all()
    targets = [row for _, row in pairs]
    wanted = packed.target.wanted[packed.target.wanted != NOTHING].tolist()
    assert wanted == [token for row in targets for token in (*row, END)]


def test_a_text_alone() -> None:
    batch = random_pairs(some_lengths(4, 9))
    side = PackedSide.of(batch.source, 100)
    torch.testing.assert_close(side.table[:4], PackedPairs.of(batch, (100, 0)).source.table[:4])
    assert side.to("cpu").tokens == batch.source.tokens


def test_what_repeats_has_one_shape() -> None:
    """However many sentences there are: within a factor of two, and where none is very long."""
    shapes = set()
    for _ in range(10):
        packed = PackedPairs.of(random_pairs(some_lengths(int(torch.randint(15, 25, ())), 20)), (1200, 900))
        told = packed.repeating()
        assert told is not None
        for side, real in ((told.source, packed.source), (told.target, packed.target)):
            assert torch.equal(side.starts[: len(real)], real.starts)
            assert torch.equal(side.lengths[: len(real)], real.lengths)
            ends = side.starts + side.lengths
            assert torch.equal(side.starts[1:], ends[:-1]), "sentences and padding leave nothing out"
            assert int(ends[-1]) == side.table.size(1) == side.tokens
            assert int(side.lengths.max()) <= side.longest
        shapes.add((told.source.starts.shape, told.target.starts.shape, told.source.longest, told.target.longest))
    assert len(shapes) == 1
