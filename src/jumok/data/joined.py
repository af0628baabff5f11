"""Several memory-mapped files, one after another, read as one long array.

A file that is larger than memory is read from the disk again and again, here and there. The system reads ahead of every
touch, which then only wastes the disk's time; and it waits for one piece before it asks for the next. So who knows what
will be read says so (`scattered`, `announce`): of a store that is not in memory, 25,000 tokens then take 20 to 40 ms
and not 250 to 500 (on the virtual disk of a busy machine).
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Sequence
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[Any]
# what a system can be told; not every one can
RANDOM: int | None = getattr(mmap, "MADV_RANDOM", None)
WILL_NEED: int | None = getattr(mmap, "MADV_WILLNEED", None)


class Joined:
    """The parts end to end. What it costs to read something does not depend on how many parts there are."""

    def __init__(self, parts: Sequence[IntArray]) -> None:
        self.parts = [part for part in parts if len(part)] or [parts[0]]
        self.bounds = np.concatenate([[0], np.cumsum([len(part) for part in self.parts])])
        self.maps = [_map_of(part) for part in self.parts]

    def __len__(self) -> int:
        return int(self.bounds[-1])

    @overload
    def __getitem__(self, places: slice) -> IntArray: ...
    @overload
    def __getitem__(self, places: IntArray) -> IntArray: ...
    def __getitem__(self, places: slice | IntArray) -> IntArray:
        """A stretch (without copying; still joined, where it lies in several parts), or the values at places."""
        if isinstance(places, slice):
            start, stop, _ = places.indices(len(self))
            first, last = self._part_of(np.array([start, max(start, stop - 1)]))
            ends = zip(self.parts[first : last + 1], self.bounds[first : last + 1].tolist(), strict=True)
            return as_one([part[max(0, start - begin) : max(0, stop - begin)] for part, begin in ends])
        flat = places.ravel()
        part = self._part_of(flat)
        found = np.empty(flat.shape, self.parts[0].dtype)
        by_part = np.argsort(part, kind="stable")
        for chosen in np.split(by_part, np.flatnonzero(np.diff(part[by_part])) + 1):
            number = int(part[chosen[0]]) if len(chosen) else 0
            found[chosen] = self.parts[number][flat[chosen] - self.bounds[number]]
        return found.reshape(places.shape)

    def _part_of(self, places: IntArray) -> IntArray:
        return np.minimum(np.searchsorted(self.bounds, places, side="right") - 1, len(self.parts) - 1)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> IntArray:
        return np.concatenate(self.parts).astype(dtype or self.parts[0].dtype, copy=False)

    def copy(self, starts: IntArray, lengths: IntArray, into: IntArray, at: IntArray) -> None:
        """Stretches, each within one part, to places of another array.

        A loop, because array operations part by part take longer as soon as there are as many parts as stretches.
        """
        part = self._part_of(starts)
        numbers = (part, starts - self.bounds[part], lengths, at)
        for number, start, length, place in zip(*(one.tolist() for one in numbers), strict=True):
            into[place : place + length] = self.parts[number][start : start + length]

    def scattered(self) -> None:
        """Reads will come from here and there: nothing is to be read ahead by itself."""
        if RANDOM is not None:
            with contextlib.suppress(OSError):  # it is advice
                for one in self.maps:
                    if one is not None:
                        one.madvise(RANDOM)

    def announce(self, starts: IntArray, lengths: IntArray) -> None:
        """These stretches will be read soon: the disk may fetch them all at once."""
        if WILL_NEED is None:
            return
        part, size = self._part_of(starts), self.parts[0].itemsize
        first = (starts - self.bounds[part]) * size
        begin = first - first % mmap.PAGESIZE
        numbers = (part, begin, first + lengths * size - begin)
        with contextlib.suppress(OSError):
            for number, start, length in zip(*(one.tolist() for one in numbers), strict=True):
                if (one := self.maps[number]) is not None:
                    one.madvise(WILL_NEED, start, length)


def _map_of(array: Any) -> mmap.mmap | None:
    """The mapped file that an array lies in, where it does."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None


def as_one(parts: Sequence[IntArray]) -> IntArray:
    """One part as it is; several as a `Joined`, which knows of an array what reading windows needs."""
    return parts[0] if len(parts) == 1 else cast(IntArray, Joined(parts))
