"""The layout of a corpus for batching: an order by length, groups whose members may change places, batch boundaries.

Batches should be of pairs that are alike in both lengths, or padding is computed for nothing. Sorting by the target
alone leaves the sources ragged, so the plane of (target, source) lengths is tiled as in an R-tree packed by
"sort-tile-recursive" (Leutenegger et al. 1997): strips of target length, each sorted by source length, up and down in
turn so that neighbouring strips meet at similar lengths.

Groups are runs of this order that hold at least `MIXED` batches (more where lengths are equal anyway). Every place of a
group counts as wide as the group's longest member, so the boundaries hold for whatever order an epoch gives the group.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.store import TokenStore
from jumok.data.stored import Column, column

VERSION = 2
MIXED = 1  # on Multi30k (batches of 4096) 1 wastes 5.6 % on padding, 2 wastes 7.5 %, batches that never change 6.1 %
CHUNK = 1 << 18
IntArray = npt.NDArray[np.int64]
Lengths = npt.NDArray[Any]


@dataclass(frozen=True)
class Layout:
    order: Lengths  # pair numbers, sorted by length
    groups: IntArray  # where in the order each group starts, and the end
    boundaries: IntArray  # where in the order each batch starts, and the end

    @property
    def batches(self) -> int:
        return len(self.boundaries) - 1


def lay_out(store: TokenStore, batch_tokens: int, exclude: IntArray) -> Layout:
    """Computed once, never in memory as a whole, and kept in a file beside the store: later it is only mapped."""

    def make() -> list[Column]:
        sides = Sides(store, exclude)
        strips = sides.strips(batch_tokens)
        starts, widths = sides.runs(strips)
        groups, group_widths = merge(starts, widths, MIXED * batch_tokens)
        boundaries = cut(groups, group_widths, batch_tokens)
        order = int(starts[-1]), lambda out: sides.sort(strips, starts, out)
        return [order, column(groups), column(boundaries)]

    name = derived_name("layout", [VERSION, MIXED, batch_tokens], exclude)
    return Layout(*store.kept(name, make))


def lay_out_lengths(lengths: Lengths, batch_tokens: int) -> Layout:
    """Rows of one text each, as wide as they are long: sorted, which needs no file to be remembered."""
    order = np.argsort(lengths, kind="stable")
    widths, counts = np.unique(np.asarray(lengths, np.int64), return_counts=True)
    groups, group_widths = merge(np.concatenate([[0], np.cumsum(counts)]), widths, MIXED * batch_tokens)
    return Layout(order, groups, cut(groups, group_widths, batch_tokens))


def derived_name(what: str, about: list[int], exclude: IntArray) -> str:
    """A file's name that says what it was made from."""
    digest = hashlib.sha256(json.dumps([what, *about]).encode() + exclude.tobytes()).hexdigest()
    return f"{what}-{digest[:16]}.bin"


class Sides:
    """Lengths of the pairs as they will be padded, read in chunks."""

    def __init__(self, store: TokenStore, exclude: IntArray) -> None:
        self.store, self.exclude = store, np.sort(exclude)
        self.sources = self._longest(store.source_lengths) + 2
        self.targets = self._longest(store.target_lengths) + 3

    @staticmethod
    def _longest(lengths: Lengths) -> int:
        return int(lengths.max())

    def chunks(self) -> Iterator[tuple[IntArray, Lengths, Lengths]]:
        """Pair numbers, source widths (with <eos>) and target widths (with <sos> and <eos>)."""
        for start in range(0, len(self.store), CHUNK):
            numbers = np.arange(start, min(start + CHUNK, len(self.store)))
            numbers = np.delete(numbers, self._excluded(start) - start)
            yield numbers, self.store.source_lengths[numbers] + 1, self.store.target_lengths[numbers] + 2

    def _excluded(self, start: int) -> IntArray:
        low, high = np.searchsorted(self.exclude, [start, start + CHUNK])
        return self.exclude[low:high]

    def strips(self, batch_tokens: int) -> IntArray:
        """For each target width the number of its strip. As many strips as a strip will have groups, of equal cost."""
        cost = np.zeros(self.targets, np.float64)
        for _, source, target in self.chunks():
            cost += np.bincount(target, np.maximum(source, target), minlength=self.targets)
        total = cost.sum()
        count = max(1, round(np.sqrt(total / (MIXED * batch_tokens))))
        middle = np.cumsum(cost) - cost / 2
        strips = np.minimum((middle / max(total, 1) * count).astype(np.int64), count - 1)
        return np.unique(strips, return_inverse=True)[1]

    def keys(self, strips: IntArray, source: Lengths, target: Lengths) -> IntArray:
        strip = strips[target]
        return strip * self.sources + np.where(strip % 2 == 0, source, self.sources - 1 - source)

    def runs(self, strips: IntArray) -> tuple[IntArray, IntArray]:
        """Where in the order the pairs of each key start (and the end), and the widest side of each key."""
        counts = np.zeros((int(strips.max()) + 1) * self.sources, np.int64)
        widths = np.zeros_like(counts)
        for _, source, target in self.chunks():
            keys = self.keys(strips, source, target)
            counts += np.bincount(keys, minlength=len(counts))
            np.maximum.at(widths, keys, np.maximum(source, target))
        return np.concatenate([[0], np.cumsum(counts)]), widths

    def sort(self, strips: IntArray, starts: IntArray, out: Lengths) -> None:
        """Counting sort into `out`, chunk by chunk."""
        free = starts[:-1].copy()
        for numbers, source, target in self.chunks():
            keys = self.keys(strips, source, target)
            by_key = np.argsort(keys, kind="stable")
            keys, numbers = keys[by_key], numbers[by_key]
            first = np.searchsorted(keys, keys)
            out[free[keys] + np.arange(len(keys)) - first] = numbers
            free += np.bincount(keys, minlength=len(free))


def merge(starts: IntArray, widths: IntArray, tokens: int) -> tuple[IntArray, IntArray]:
    """Join neighbouring runs into groups that hold at least `tokens`; an unfinished last one joins the one before."""
    groups, group_widths, widest = [0], [], 0
    for run in np.flatnonzero(np.diff(starts)):
        widest = max(widest, int(widths[run]))
        if (int(starts[run + 1]) - groups[-1]) * widest >= tokens:
            groups.append(int(starts[run + 1]))
            group_widths.append(widest)
            widest = 0
    if widest and group_widths:
        groups[-1], group_widths[-1] = int(starts[-1]), max(widest, group_widths[-1])
    elif widest:
        groups.append(int(starts[-1]))
        group_widths.append(widest)
    return np.array(groups), np.array(group_widths)


def cut(starts: IntArray, widths: IntArray, tokens: int) -> IntArray:
    """Batch boundaries: as many pairs as fit, rows × widest ≤ tokens; a pair wider than that is a batch by itself.

    `starts` are the places where the width changes (and the end), `widths` those of the runs between them.
    """
    boundaries, widest = [0], 0
    for run, width in enumerate(widths.tolist()):
        begin, end = int(starts[run]), int(starts[run + 1])
        if begin > boundaries[-1] and (begin + 1 - boundaries[-1]) * max(widest, width) > tokens:
            boundaries.append(begin)  # not even one of the new run fits beside the old ones
        widest = width if begin == boundaries[-1] else max(widest, width)
        rows = max(1, tokens // widest)
        if end - boundaries[-1] >= rows:
            boundaries.append(boundaries[-1] + rows)
            rows = max(1, tokens // width)
            boundaries.extend(range(boundaries[-1] + rows, end + 1, rows))
            widest = width
    if boundaries[-1] < int(starts[-1]):
        boundaries.append(int(starts[-1]))
    return np.array(boundaries)
