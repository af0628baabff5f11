"""Batches for packing: each a fair sample of all lengths, so that all are of nearly the same size.

Sentences that lie end to end need no neighbours of their own length. What counts is that every batch holds the same
number of tokens on both sides, for then all shapes repeat. So the corpus is sorted by length and dealt like cards: of
every M neighbours in that order each of the M batches gets one: batch m gets number (shuffled m + r_g) mod M of group
g, with r_g drawn anew for every group and epoch. The sum over a batch hardly varies (stratified sampling), every pair
comes once per epoch, and batch m is found without looking at any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jumok.data.layout import IntArray, Lengths, Sides, derived_name
from jumok.data.shuffle import Shuffle, draws
from jumok.data.store import TokenStore
from jumok.data.stored import Column, column

VERSION = 1
PLAYERS, CARDS = 6, 7  # what is drawn, part of the key
FINE = 512  # target widths that are told apart when sorting
ROOM = 0.02  # of a row is left for what varies
STEP = 128  # rows are a multiple of it: the tiles of a GPU


@dataclass(frozen=True)
class Deal:
    """A corpus dealt into `batches`."""

    order: Lengths  # pair numbers, sorted by length
    batches: int
    budget: tuple[int, int]  # tokens of a source row and of a target row

    def pairs(self, place: int, key: tuple[int, ...]) -> IntArray:
        """The pairs of a batch: its card of each round."""
        player = Shuffle(self.batches, *key, PLAYERS)([place])
        rounds = np.arange(-(-len(self.order) // self.batches))
        cards = (player + draws(len(rounds), self.batches, *key, CARDS)) % self.batches
        places = rounds * self.batches + cards
        places = places[places < len(self.order)]  # in the last round there may be fewer cards than players
        found: IntArray = np.asarray(self.order[places], dtype=np.int64)
        return found


def deal(store: TokenStore, batch_tokens: int, exclude: IntArray) -> Deal:
    """As many batches as are needed for the larger side to fit into `batch_tokens`. Computed once, and kept beside the
    store."""

    def make() -> list[Column]:
        sides = Sides(store, exclude)
        strips = np.arange(sides.targets) // -(-sides.targets // FINE)
        starts, _ = sides.runs(strips)
        source_tokens = target_tokens = 0
        for _, source, target in sides.chunks():
            source_tokens += int(source.sum())
            target_tokens += int(target.sum()) - len(target)  # the decoder does not read the last word
        room = max(1.0, batch_tokens * (1 - ROOM))
        batches = max(1, min(int(starts[-1]), -int(-max(source_tokens, target_tokens) // room)))
        sizes = [-int(-(tokens / batches * (1 + ROOM)) // STEP) * STEP for tokens in (source_tokens, target_tokens)]
        order = int(starts[-1]), lambda out: sides.sort(strips, starts, out)
        return [order, column(np.array([batches, *sizes]))]

    name = derived_name("deal", [VERSION, FINE, round(1 / ROOM), STEP, batch_tokens], exclude)
    order, numbers = store.kept(name, make)
    batches, source, target = numbers.tolist()
    return Deal(order, batches, (source, target))


def deal_lengths(lengths: Lengths, batch_tokens: int) -> Deal:
    """Rows of one text each."""
    tokens, room = int(np.asarray(lengths, np.int64).sum()), max(1.0, batch_tokens * (1 - ROOM))
    batches = max(1, min(len(lengths), -int(-tokens // room)))
    size = -int(-(tokens / batches * (1 + ROOM)) // STEP) * STEP
    return Deal(np.argsort(lengths, kind="stable"), batches, (size, size))
