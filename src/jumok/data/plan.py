"""Which sentences make up which batch, as a pure function of the update's number: a run's place is one integer.

Each corpus is laid out once by `layout.py`: sorted by length, cut into groups of sentences that may change places and
into batches. An epoch changes neither: it permutes the sentences inside each group and the order of the batches, both
with a `Shuffle` keyed by (seed, corpus, epoch). So every epoch has the same number of batches, batch m is found without
looking at any other, and every pair comes exactly once per epoch. For packing corpora are dealt (`dealing.py`) instead,
with the same properties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jumok.data.dealing import deal
from jumok.data.layout import IntArray, Layout, Lengths, cut, lay_out
from jumok.data.shuffle import Shuffle
from jumok.data.store import TokenStore
from jumok.errors import BadInput

HELD_OUT, BATCHES, GROUP = 1, 2, 3  # what a permutation is for, part of its key
HELD_OUT_SHARE = 20  # at most one pair in so many
FEW = 50  # kept back: from fewer nobody can tell two models apart
FEW_SAY_LITTLE = " (so few say little: --valid names more)"
KEPT_BACK = "kept back "  # how the key begins of a choice that older versions of jumok would not have made


@dataclass(frozen=True)
class MicroBatch:
    """The pairs of one batch: `stores[corpus].batch(indices, corpus)`."""

    corpus: int
    indices: IntArray


class Dealt(Protocol):
    """What knows by itself which rows make up each of its batches."""

    @property
    def batches(self) -> int: ...

    def pairs(self, place: int, key: tuple[int, ...]) -> IntArray:
        """The rows of a batch; `key` is the seed, the corpus and the epoch."""
        ...


class LayoutPlan:
    """All batches of a run over corpora that are laid out."""

    def __init__(
        self, layouts: Sequence[Layout | Dealt], weights: Sequence[int], seed: int, accumulate: int = 1
    ) -> None:
        self.seed, self.accumulate = seed, accumulate
        self.layouts = list(layouts)
        self._turns = round_robin(weights)
        # How often each turn's corpus had its turn before, within the round.
        self._before = np.zeros(len(self._turns), np.int64)
        for corpus in range(len(self.layouts)):
            mine = self._turns == corpus
            self._before[mine] = np.arange(mine.sum())
        self._per_round = np.bincount(self._turns, minlength=len(self.layouts))

    @property
    def batches_per_epoch(self) -> int:
        """Batches of all corpora together."""
        return sum(layout.batches for layout in self.layouts)

    def epoch_of(self, update: int) -> int:
        """How many times as many batches as there are had been seen before this update."""
        return update * self.accumulate // self.batches_per_epoch

    def at(self, update: int, only: Sequence[int] | None = None) -> list[MicroBatch]:
        """The batches of an update (counted from 0); with `only`, those of them with these numbers."""
        numbers = range(self.accumulate) if only is None else only
        return [self._micro_batch(update * self.accumulate + number) for number in numbers]

    def _micro_batch(self, number: int) -> MicroBatch:
        rounds, turn = divmod(number, len(self._turns))
        corpus = int(self._turns[turn])
        local = rounds * int(self._per_round[corpus]) + int(self._before[turn])
        epoch, place = divmod(local, self.layouts[corpus].batches)
        layout, key = self.layouts[corpus], (self.seed, corpus, epoch)
        if not isinstance(layout, Layout):
            return MicroBatch(corpus, layout.pairs(place, key))
        return MicroBatch(corpus, self._pairs(layout, place, key))

    def _pairs(self, layout: Layout, place: int, key: tuple[int, ...]) -> IntArray:
        batch = int(Shuffle(layout.batches, *key, BATCHES)([place])[0])
        start, stop = int(layout.boundaries[batch]), int(layout.boundaries[batch + 1])
        first, last = np.searchsorted(layout.groups, [start, stop - 1], side="right") - 1
        parts = []
        for group in range(int(first), int(last) + 1):
            low, high = int(layout.groups[group]), int(layout.groups[group + 1])
            positions = np.arange(max(start, low), min(stop, high)) - low
            parts.append(layout.order[low + Shuffle(high - low, *key, GROUP, group)(positions)])
        return np.concatenate(parts).astype(np.int64)


class Plan(LayoutPlan):
    """The same over pairs. `exclude` are pairs kept back for validation: of the first corpus, or by corpus."""

    def __init__(
        self,
        stores: Sequence[TokenStore],
        weights: Sequence[int],
        batch_tokens: int,
        seed: int,
        accumulate: int = 1,
        exclude: IntArray | Mapping[int, IntArray] | None = None,
        packed: bool = False,
    ) -> None:
        kept_back = exclude if isinstance(exclude, Mapping) else {} if exclude is None else {0: exclude}
        nothing = np.empty(0, np.int64)
        lay = deal if packed else lay_out
        layouts = [lay(store, batch_tokens, kept_back.get(corpus, nothing)) for corpus, store in enumerate(stores)]
        super().__init__(layouts, weights, seed, accumulate)


def round_robin(weights: Sequence[int]) -> IntArray:
    """Whose turn it is in each place of a round; corpus c has weights[c] turns, evenly spread.

    Turn i of a corpus with weight w is due at (i + 1/2) / w of the round.
    """
    weights = [weight // int(np.gcd.reduce(list(weights))) for weight in weights]
    due = np.concatenate([(np.arange(weight) + 0.5) / weight for weight in weights])
    turns: IntArray = np.repeat(np.arange(len(weights)), weights)
    return turns[np.argsort(due, kind="stable")]


def held_out(store: TokenStore, count: int, seed: int) -> IntArray:
    """Pairs to keep back for validation, spread over the corpus: at most 5 % of it, at least one, in rising order."""
    if len(store) < 2:
        raise BadInput(
            "the training data has a single sentence pair: none can be kept back for validation. "
            "Add pairs, or name validation data (data.valid)."
        )
    count = max(1, min(count, len(store) // HELD_OUT_SHARE))
    return np.sort(Shuffle(len(store), seed, HELD_OUT)(np.arange(count)))


def length_batches(source_lengths: Lengths, target_lengths: Lengths, batch_tokens: int) -> list[IntArray]:
    """All pairs in batches of similar length, longest last; nothing random. For validation."""
    source, target = np.asarray(source_lengths) + 1, np.asarray(target_lengths) + 2
    if not len(source):
        return []
    order = np.lexsort((source, target))
    widths = np.maximum(source, target)[order]
    boundaries = cut(np.arange(len(order) + 1), widths, batch_tokens)
    return np.split(order, boundaries[1:-1])
