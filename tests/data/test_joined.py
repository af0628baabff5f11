"""Arrays that lie in several files: everything reads as from one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.joined import Joined, as_one


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


def test_one_part_is_itself() -> None:
    part = np.arange(3)
    assert as_one([part]) is part
