"""Arrays that lie in several files: everything reads as from one."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.joined import WILL_NEED, Joined, as_one


def parts_of(lengths: list[int]) -> tuple[list[np.ndarray], np.ndarray]:
    whole = np.arange(sum(lengths), dtype=np.uint16) * 7 + 1
    return np.split(whole, np.cumsum(lengths)[:-1]), whole


lengths = st.lists(st.integers(0, 9), min_size=1, max_size=8)


@settings(deadline=None)
@given(lengths=lengths, data=st.data())
def test_stretches_and_places(lengths: list[int], data: st.DataObject) -> None:
    parts, whole = parts_of(lengths)
    joined = Joined(parts)
    assert len(joined) == len(whole)
    start, stop = (data.draw(st.integers(-2, len(whole) + 2)) for _ in range(2))
    for cut in (slice(start, stop), slice(start, None), slice(None, stop)):
        assert np.asarray(joined[cut]).tolist() == whole[cut].tolist()
        assert len(joined[cut]) == len(whole[cut])
    if len(whole):
        places = np.array(data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=12)), dtype=np.int64)
        for shaped in (places, places.reshape(-1, 1)):
            assert np.array_equal(joined[shaped], whole[shaped])
        assert joined[places].dtype == whole.dtype


@settings(deadline=None)
@given(lengths=lengths, data=st.data())
def test_copies_of_stretches(lengths: list[int], data: st.DataObject) -> None:
    parts, whole = parts_of(lengths)
    ends = np.cumsum(lengths)
    chosen = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=6))  # as sentences lie in shards
    starts, sizes = (ends - lengths)[chosen], np.array(lengths, dtype=np.int64)[chosen]
    out = np.zeros(int(sizes.sum()), np.int64)
    Joined(parts).copy(starts, sizes, out, np.cumsum(sizes) - sizes)
    expected = [whole[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    assert out.tolist() == np.concatenate([*expected, np.empty(0)]).tolist()


class Noting:
    """In the place of a mapped file: what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, ...]] = []

    def madvise(self, *what: int) -> None:
        self.told.append(what)


@pytest.mark.skipif(WILL_NEED is None, reason="this system cannot be told")
def test_the_pages_of_every_stretch_are_announced(tmp_path: Path) -> None:
    parts = []
    for number, length in enumerate((40_000, 1, 9_000)):
        np.zeros(length, np.uint16).tofile(tmp_path / str(number))
        parts.append(np.asarray(np.memmap(tmp_path / str(number), dtype=np.uint16, mode="r")))
    joined = Joined(parts)
    starts, lengths = np.array([0, 39_000, 40_000, 40_001, 45_000, 48_990]), np.array([5, 1000, 1, 3000, 0, 11])
    joined.scattered()
    joined.announce(starts, lengths)  # the system takes it
    joined.maps = [Noting(), Noting(), Noting()]  # type: ignore[list-item]
    joined.announce(starts, lengths)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        number = int(np.searchsorted([40_000, 40_001], start, side="right"))
        told, first = joined.maps[number].told.pop(0), 2 * (start - [0, 40_000, 40_001][number])  # type: ignore[union-attr]
        assert told[0] == WILL_NEED
        assert told[1] % mmap.PAGESIZE == 0, "or the system refuses"
        assert told[1] <= first < told[1] + mmap.PAGESIZE
        assert told[1] + told[2] == first + 2 * length


def test_what_lies_in_no_file_need_not_be_announced() -> None:
    joined = Joined(parts_of([3, 4])[0])
    joined.scattered()
    joined.announce(np.array([0, 3]), np.array([3, 4]))
    assert np.asarray(joined).tolist() == parts_of([7])[1].tolist()


def test_one_part_is_itself() -> None:
    part = np.arange(3)
    assert as_one([part]) is part
