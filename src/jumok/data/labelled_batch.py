"""Texts side by side and what should be said about them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jumok.data.batch import Sequences
from jumok.data.packing import NOTHING


@dataclass(frozen=True)
class LabelledBatch:
    """`labels` are (B,) for a text (whole numbers, or what is to be measured), (B, T) for each token, or (B, 2) for
    where an answer begins and ends. `counted` is how many things the loss is summed over."""

    words: Sequences
    labels: Tensor
    counted: int
    segments: Tensor | None = None  # (B, T): which text of its row a token belongs to
    indices: tuple[int, ...] = ()
    corpus: int = 0

    @property
    def tokens(self) -> int:
        return self.counted

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> LabelledBatch:
        segments = None if self.segments is None else self.segments.to(device, non_blocking=True)
        labels = self.labels.to(device, non_blocking=True)
        return LabelledBatch(self.words.to(device), labels, self.counted, segments, self.indices, self.corpus)

    def split(self, parts: int) -> list[LabelledBatch]:
        """The same texts in `parts` smaller batches (fewer, when there are fewer texts)."""
        size = -(-len(self) // parts)
        return [self._rows(start, start + size) for start in range(0, len(self), size)]

    def _rows(self, start: int, stop: int) -> LabelledBatch:
        words, labels = self._words(start, stop), self.labels[start:stop]
        width, wide = words.ids.size(1), self.words.ids.size(1)
        by_token = labels.dim() == 2 and labels.size(1) == wide  # an answer has two places, and no row so few tokens
        labels = labels[:, :width] if by_token else labels
        segments = None if self.segments is None else self.segments[start:stop, :width]
        counted = int((labels != NOTHING).sum()) if by_token else len(labels)
        return LabelledBatch(words, labels, counted, segments, self.indices[start:stop], self.corpus)

    def _words(self, start: int, stop: int) -> Sequences:
        """Where two texts are read apart, the second ones stand behind all first ones."""
        if len(self.words) == len(self):
            return self.words.rows(start, stop)
        stop = min(stop, len(self))
        first, second = (slice(begin + start, begin + stop) for begin in (0, len(self)))
        ids, lengths = (torch.cat([part[first], part[second]]) for part in (self.words.ids, self.words.lengths))
        return Sequences(ids[:, : max(1, int(lengths.max()))], lengths)
