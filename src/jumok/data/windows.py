"""Which stretches of a text make up which batch, as a pure function of the update's number.

A text of n tokens is cut into windows of w tokens that follow each other; where the first one begins is drawn anew in
every epoch, from (seed, corpus, epoch), and so is the order of the windows. The text is a ring, so every epoch has the
same n // w windows, whatever the beginning; the fewer than w tokens that are left over lie elsewhere in each epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jumok.data.plan import round_robin
from jumok.data.shuffle import IntArray, Shuffle
from jumok.data.text_store import TextStore

ORDER, BEGINNING = 4, 5  # what a permutation is for, part of its key


@dataclass(frozen=True)
class TextBatch:
    """Windows of text side by side: at every place the model reads `ids` and is asked for `targets`."""

    ids: Tensor  # (B, T) int64
    targets: Tensor  # (B, T) int64, the token after each
    starts: tuple[int, ...] = ()  # where in the text each window's first target stands, for messages
    corpus: int = 0

    @property
    def tokens(self) -> int:
        """How many tokens the loss is taken over."""
        return self.targets.numel()

    def __len__(self) -> int:
        return self.ids.size(0)

    def to(self, device: torch.device | str) -> TextBatch:
        ids, targets = (part.to(device, non_blocking=True) for part in (self.ids, self.targets))
        return TextBatch(ids, targets, self.starts, self.corpus)

    def repeating(self) -> TextBatch:
        """What has the same shape in (nearly) every batch: all of it."""
        return TextBatch(self.ids, self.targets)

    def split(self, parts: int) -> list[TextBatch]:
        """The same windows in `parts` smaller batches (fewer, when there are fewer windows)."""
        size = -(-len(self) // parts)
        cuts = [slice(start, start + size) for start in range(0, len(self), size)]
        return [TextBatch(self.ids[cut], self.targets[cut], self.starts[cut], self.corpus) for cut in cuts]


def window_batch(ids: IntArray, starts: IntArray, width: int, corpus: int = 0) -> TextBatch:
    """Windows of `width` tokens that begin at `starts`, from a ring of tokens."""
    places_BT = (np.asarray(starts)[:, None] + np.arange(-1, width)) % len(ids)
    rows_BT = torch.from_numpy(ids[places_BT].astype(np.int64))
    return TextBatch(rows_BT[:, :-1], rows_BT[:, 1:], tuple(np.asarray(starts).tolist()), corpus)


class WindowPlan:
    """All batches of a run over texts. `lengths`: how much of each text is learned from, from its beginning."""

    def __init__(
        self,
        stores: Sequence[TextStore],
        lengths: Sequence[int],
        weights: Sequence[int],
        window: int,
        batch_tokens: int,
        seed: int,
        accumulate: int = 1,
    ) -> None:
        self.texts = [store.ids[:length] for store, length in zip(stores, lengths, strict=True)]
        self.seed, self.accumulate = seed, accumulate
        self.widths = [min(window, len(text)) for text in self.texts]
        self.windows = [len(text) // width for text, width in zip(self.texts, self.widths, strict=True)]
        # as many windows as fit into a batch, spread evenly over the batches of an epoch
        self.batches = [
            -(-count // max(1, batch_tokens // width)) for count, width in zip(self.windows, self.widths, strict=True)
        ]
        self._turns = round_robin(weights)
        self._per_round = np.bincount(self._turns, minlength=len(stores))

    @property
    def batches_per_epoch(self) -> int:
        return sum(self.batches)

    def at(self, update: int, only: Sequence[int] | None = None) -> list[TextBatch]:
        """The batches of an update (counted from 0); with `only`, those of them with these numbers."""
        numbers = range(self.accumulate) if only is None else only
        return [self._batch(update * self.accumulate + number) for number in numbers]

    def _batch(self, number: int) -> TextBatch:
        rounds, turn = divmod(number, len(self._turns))
        corpus = int(self._turns[turn])
        before = int((self._turns[:turn] == corpus).sum())
        epoch, place = divmod(rounds * int(self._per_round[corpus]) + before, self.batches[corpus])
        return window_batch(self.texts[corpus], self._starts(corpus, epoch, place), self.widths[corpus], corpus)

    def _starts(self, corpus: int, epoch: int, place: int) -> IntArray:
        text, width, windows = self.texts[corpus], self.widths[corpus], self.windows[corpus]
        beginning = Shuffle(len(text), self.seed, corpus, epoch, BEGINNING)([0])
        low, high = (number * windows // self.batches[corpus] for number in (place, place + 1))
        chosen = Shuffle(windows, self.seed, corpus, epoch, ORDER)(np.arange(low, high))
        return (beginning + chosen * width) % len(text)


def kept_back(store: TextStore, lines: int, share: float = 0.05) -> int:
    """Where the end of a text begins that is kept for validation: its last `lines`, at most this share of it, from the
    beginning of a line where that leaves anything."""
    earliest = min(len(store) - 1, int(np.ceil((1 - share) * len(store))))
    start = int(store.starts[max(0, store.lines - lines)])
    if start < earliest:
        later = store.starts[np.searchsorted(store.starts, earliest)]
        start = int(later) if later < len(store) else earliest
    return start
