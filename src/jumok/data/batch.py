"""What a model is fed: one frozen dataclass per kind of batch.

Rows are padded on the right with `PAD`. A source row is `tokens <eos>`, a target row is `<sos> tokens <eos>`; the
decoder reads `target.ids[:, :-1]` and is asked for `target.ids[:, 1:]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jumok.text.special import END, PAD, SPECIAL_TOKENS, START, UNKNOWN

__all__ = ["END", "PAD", "SPECIAL_TOKENS", "START", "UNKNOWN", "PairBatch", "Sequences", "source_batch", "target_batch"]


@dataclass(frozen=True)
class Sequences:
    """Padded rows of token ids and how much of each row is real."""

    ids: Tensor  # (B, L) int64
    lengths: Tensor  # (B,) int64

    @classmethod
    def pad(cls, rows: Sequence[Sequence[int]]) -> Sequences:
        """Lay rows of unequal length side by side. A batch always has at least one column."""
        lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
        flat = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
        return cls.of_flat(flat, lengths)

    @classmethod
    def of_flat(cls, flat: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Sequences:
        """From all rows end to end. One vectorised copy: this is on the way of every training batch."""
        width = max(1, int(lengths.max())) if len(lengths) else 1
        ids = np.full((len(lengths), width), PAD, dtype=np.int64)
        ids[np.arange(width) < lengths[:, None]] = flat
        return cls(torch.from_numpy(ids), torch.from_numpy(lengths))

    @property
    def mask(self) -> Tensor:
        """(B, L) bool, True where the token is real."""
        return torch.arange(self.ids.size(1), device=self.ids.device)[None, :] < self.lengths[:, None]

    @property
    def tokens(self) -> int:
        return int(self.lengths.sum())

    def __len__(self) -> int:
        return self.ids.size(0)

    def to(self, device: torch.device | str) -> Sequences:
        return Sequences(self.ids.to(device, non_blocking=True), self.lengths.to(device, non_blocking=True))

    def twice(self) -> Sequences:
        """All rows, and all rows again."""
        return Sequences(self.ids.repeat(2, 1), self.lengths.repeat(2))

    def rows(self, start: int, stop: int) -> Sequences:
        lengths = self.lengths[start:stop]
        return Sequences(self.ids[start:stop, : max(1, int(lengths.max()))], lengths)


@dataclass(frozen=True)
class PairBatch:
    """Sentences and their translations. `indices` are the pair numbers in the corpus, for messages."""

    source: Sequences
    target: Sequences
    indices: tuple[int, ...] = ()
    corpus: int = 0

    @classmethod
    def of(
        cls,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        indices: Sequence[int] = (),
        corpus: int = 0,
    ) -> PairBatch:
        """From token ids without special tokens."""
        return cls(source_batch(sources), target_batch(targets), tuple(indices), corpus)

    @property
    def tokens(self) -> int:
        """How many tokens the loss is taken over: the target with its `<eos>`."""
        return self.target.tokens - len(self)

    def __len__(self) -> int:
        return len(self.source)

    def to(self, device: torch.device | str) -> PairBatch:
        return PairBatch(self.source.to(device), self.target.to(device), self.indices, self.corpus)

    def twice(self) -> PairBatch:
        """All pairs, and all pairs again."""
        return PairBatch(self.source.twice(), self.target.twice())

    def split(self, parts: int) -> list[PairBatch]:
        """The same sentences in `parts` smaller batches (fewer, when there are fewer sentences)."""
        size = -(-len(self) // parts)
        return [
            PairBatch(
                self.source.rows(start, start + size),
                self.target.rows(start, start + size),
                self.indices[start : start + size],
                self.corpus,
            )
            for start in range(0, len(self), size)
        ]


def source_batch(rows: Sequence[Sequence[int]]) -> Sequences:
    """Token ids as the encoder reads them: `tokens <eos>`."""
    return Sequences.pad([[*row, END] for row in rows])


def target_batch(rows: Sequence[Sequence[int]]) -> Sequences:
    """Token ids as the decoder reads and writes them: `<sos> tokens <eos>`."""
    return Sequences.pad([[START, *row, END] for row in rows])
