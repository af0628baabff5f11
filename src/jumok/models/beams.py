"""Hypotheses of one sentence side by side: what they share is kept once, however often they change places.

Rows of a batch belong to sentences. Laid out as a rectangle, S sentences with G places each, the rows of one sentence
are so many queries against one block of keys: the source is never repeated, and the past is a list of entries that
grows by one for each place and step, with a table that says which row descends from which entries. To reorder
hypotheses is to reorder the rows of that table. Entries that no row descends from are dropped now and then: hypotheses
of a beam soon have most of their past in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

Integers = NDArray[np.int64]

NEVER = float("-inf")
FIRST_ENTRIES = 32  # that a past has room for at first; it grows by itself
WORTH = 0.75  # with so large a share of the sentences or entries still needed, the others are not worth dropping
PATIENCE = 8  # steps between two looks for entries that are no longer needed


@dataclass(frozen=True)
class Layout:
    """Which sentence each row belongs to, and the rectangle that makes."""

    owner: Integers  # (N,) the sentence, below S
    sentences: int  # S
    places: int  # G, as many as the sentence with most rows needs
    row: Tensor | None  # (S·G,) the row in each place; an empty place repeats another one. None: rows are in order
    place: Tensor | None  # (N,) the place of each row

    @classmethod
    def of(cls, owner: Integers, sentences: int) -> Layout:
        count_S = np.bincount(owner, minlength=sentences)
        places = int(count_S.max(initial=1))
        if len(owner) == sentences * places and bool((owner[1:] >= owner[:-1]).all()):
            return cls(owner, sentences, places, None, None)
        order = np.argsort(owner, kind="stable")
        first_S = np.cumsum(count_S) - count_S
        rank = np.empty_like(owner)
        rank[order] = np.arange(len(owner)) - np.repeat(first_S, count_S)
        place = owner * places + rank
        row = np.repeat(order[np.minimum(first_S, len(order) - 1)], places)
        row[place] = np.arange(len(owner))
        return cls(owner, sentences, places, torch.from_numpy(row), torch.from_numpy(place))

    def spread(self, x_N: Tensor) -> Tensor:
        """Rows (N, …) to their places (S·G, …)."""
        return x_N if self.row is None else x_N.index_select(0, self.row)

    def gather(self, x: Tensor) -> Tensor:
        """Places (S·G, …) back to rows (N, …)."""
        return x if self.place is None else x.index_select(0, self.place)

    def select(self, rows: Integers) -> tuple[Layout, Integers | None]:
        """Rows after rows; and which sentences to keep, once many have no row any more (None: all)."""
        owner = self.owner[rows]
        if np.array_equal(owner, self.owner):
            return self, None
        keep, owner_kept = np.unique(owner, return_inverse=True)
        if len(keep) > WORTH * self.sentences:
            return Layout.of(owner, self.sentences), None
        return Layout.of(owner_kept, len(keep)), keep

    @staticmethod
    def join(parts: Sequence[Layout]) -> Layout:
        first = np.cumsum([0, *(part.sentences for part in parts)])
        owner = np.concatenate([part.owner + start for part, start in zip(parts, first, strict=False)])
        return Layout.of(owner, int(first[-1]))


@dataclass(frozen=True)
class Source:
    """What the decoder sees of the sentences: keys and values of each layer."""

    layers: list[Tensor]  # each (2, H, S, L, D)
    closed: Tensor | None  # (S, L): 0, or -∞ where the sentence has ended. None: all are equally long
    layout: Layout

    def select(self, layout: Layout, keep: Integers | None) -> Source:
        if keep is None:
            return self if layout is self.layout else replace(self, layout=layout)
        kept = torch.from_numpy(keep)
        closed = None if self.closed is None else self.closed.index_select(0, kept)
        return Source([layer.index_select(2, kept) for layer in self.layers], closed, layout)

    @staticmethod
    def join(parts: Sequence[Source]) -> Source:
        width = max(part.layers[0].size(3) for part in parts)
        closed: list[Tensor] = []
        for part in parts:
            length = part.layers[0].size(3)
            table = torch.zeros(part.layout.sentences, length) if part.closed is None else part.closed
            closed.append(F.pad(table, (0, width - length), value=NEVER))
        layers = [
            torch.cat([F.pad(layer, (0, 0, 0, width - layer.size(3))) for layer in each], dim=2)
            for each in zip(*(part.layers for part in parts), strict=True)
        ]
        return Source(layers, torch.cat(closed), Layout.join([part.layout for part in parts]))


@dataclass(frozen=True)
class Past:
    """What has been written, as entries. Steps write in place: a past belongs to one search."""

    layers: list[Tensor]  # each (2, H, S, E, D): keys and values of entries
    used: int  # entries in use
    closed: Tensor | None  # (N, E): 0, or -∞ where a row does not descend from an entry. None: all rows from all
    position: Tensor | None  # (S, E): where in its sentence an entry's word stands, if anybody asks
    looked: int = 0  # entries in use when those no longer needed were last looked for

    @classmethod
    def empty(cls, layers: int, heads: int, sentences: int, width: int, capacity: int, positions: bool) -> Past:
        entries = min(capacity, FIRST_ENTRIES)
        stores = [torch.empty(2, heads, sentences, entries, width) for _ in range(layers)]
        return cls(stores, 0, None, torch.zeros(sentences, entries, dtype=torch.long) if positions else None)

    @property
    def room(self) -> int:
        return self.layers[0].size(3)

    def extended(self, layout: Layout, positions_N: Tensor) -> Past:
        """One more entry for each place, from which its row descends. The caller writes keys and values."""
        places, used = layout.places, self.used + layout.places
        past = self if used <= self.room else self._widened(max(used, 2 * self.room))
        if past.position is not None:
            past.position[:, self.used : used] = layout.spread(positions_N).view(-1, places)
        closed = past._table(len(layout.owner)) if past.closed is None and places > 1 else past.closed
        if closed is not None:
            new, own = closed[:, self.used : used], _diagonal(places)
            if layout.place is None:
                torch.unflatten(new, 0, (-1, places)).copy_(own)
            else:
                new.copy_(own.index_select(0, layout.place % places))
        return replace(past, used=used, closed=closed)

    def _table(self, rows: int) -> Tensor:
        """The table that `closed` stands for while it is None."""
        table = torch.full((rows, self.room), NEVER)
        table[:, : self.used] = 0.0
        return table

    def _widened(self, room: int) -> Past:
        more = room - self.room
        closed = None if self.closed is None else F.pad(self.closed, (0, more), value=NEVER)
        position = None if self.position is None else F.pad(self.position, (0, more))
        return replace(self, layers=[_roomy(x, self.used, room) for x in self.layers], closed=closed, position=position)

    def select(self, rows: Tensor, before: Layout, after: Layout, keep: Integers | None) -> Past:
        """Rows after rows; of the sentences only those to `keep` (None: all)."""
        closed = self._table(len(before.owner)) if self.closed is None and after.places > 1 else self.closed
        past = replace(self, closed=None if closed is None else closed.index_select(0, rows))
        if closed is not None and self.used - self.looked >= PATIENCE * after.places:
            past = replace(past, looked=self.used)
            entry_SE = past._needed(after)
            if entry_SE.shape[1] <= WORTH * self.used:
                return past._only(entry_SE, after, keep)
        if keep is None:
            return past
        kept = torch.from_numpy(keep)
        position = None if self.position is None else self.position.index_select(0, kept)
        return replace(past, layers=[layer.index_select(2, kept) for layer in self.layers], position=position)

    def _needed(self, layout: Layout) -> Integers:
        """(S, E) the entries of each sentence that some row descends from, and others to fill up."""
        assert self.closed is not None
        best_SE = torch.unflatten(layout.spread(self.closed[:, : self.used]), 0, (-1, layout.places)).amax(1).numpy()
        widest = max(1, int((best_SE == 0.0).sum(axis=1).max()))
        return np.argsort(-best_SE, axis=1, kind="stable")[:, :widest]

    def _only(self, entry_SE: Integers, layout: Layout, keep: Integers | None) -> Past:
        """The sentences to keep, each with these of its entries."""
        assert self.closed is not None
        sentence_S = np.arange(layout.sentences) if keep is None else keep
        chosen = torch.from_numpy((sentence_S[:, None] * self.room + entry_SE).ravel())
        used = entry_SE.shape[1]
        room = used + 2 * PATIENCE * layout.places
        stores = [
            _roomy(torch.unflatten(layer.flatten(2, 3).index_select(2, chosen), 2, (-1, used)), used, room)
            for layer in self.layers
        ]
        closed = torch.full((len(layout.owner), room), NEVER)
        closed[:, :used] = self.closed.gather(1, torch.from_numpy(entry_SE[layout.owner]))
        position = self.position
        if position is not None:
            position = F.pad(position.flatten().index_select(0, chosen).view(-1, used), (0, room - used))
        return Past(stores, used, closed, position, used)

    @staticmethod
    def join(parts: Sequence[Past], layouts: Sequence[Layout]) -> Past:
        """The rows of all parts. From the entries that other parts have more of, a row does not descend."""
        used, room = max(part.used for part in parts), max(part.room for part in parts)
        layers = [
            torch.cat([_roomy(layer, part.used, room, used) for layer, part in zip(each, parts, strict=True)], dim=2)
            for each in zip(*(part.layers for part in parts), strict=True)
        ]
        closed: list[Tensor] = []
        for part, layout in zip(parts, layouts, strict=True):
            table = part._table(len(layout.owner)) if part.closed is None else part.closed
            closed.append(F.pad(table, (0, room - part.room), value=NEVER))
        positions = [F.pad(part.position, (0, room - part.room)) for part in parts if part.position is not None]
        looked = max(part.looked for part in parts)
        return Past(layers, used, torch.cat(closed), torch.cat(positions) if positions else None, looked)


def _roomy(layer: Tensor, used: int, room: int, zeros: int = 0) -> Tensor:
    """The entries in use, with room for more; zeros up to an entry that nobody will write but all will look over."""
    two, heads, sentences, _, width = layer.shape
    wider = layer.new_empty(two, heads, sentences, room, width)
    wider[:, :, :, :used] = layer[:, :, :, :used]
    if zeros > used:
        wider[:, :, :, used:zeros] = 0.0
    return wider


@lru_cache
def _diagonal(size: int) -> Tensor:
    """0 on the diagonal, -∞ elsewhere."""
    return torch.full((size, size), NEVER).fill_diagonal_(0.0)
