"""Batches without padding: the sentences of a side lie end to end in one row.

What has to be known about each token (its sentence, its place there, the sentence it belongs to on the other side) is
one table of integers: it travels in one copy, and its shape says nothing about how many sentences there are. With a
budget rows are filled up to a fixed size by tokens that see nothing and are seen by none, so that shapes repeat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batch import PAD, START, PairBatch, Sequences

Integers = npt.NDArray[np.int64]
NOTHING = -1  # is wanted: of padding, and of a side that is only read
# the rows of the table
IDS, POSITION, BEGIN, STOP, OTHER_BEGIN, OTHER_STOP, WANTED = range(7)
FEW, SHORT = 64, 256  # sentences, and tokens in the longest: the least bounds that are told in batches that repeat


@dataclass(frozen=True)
class PackedSide:
    """N tokens of B sentences in one row. The intervals of padding are empty and lie at the end of the real tokens, so
    that all intervals rise along the row."""

    table: Tensor  # (7, N) int32
    starts: Tensor  # (B,) int64, where each sentence begins
    lengths: Tensor  # (B,) int64
    tokens: int  # real ones
    longest: int

    @classmethod
    def of(cls, side: Sequences, size: int | None = None) -> PackedSide:
        """A text by itself, filled up to `size` tokens."""
        return cls.of_flat(side.ids[side.mask].numpy(), side.lengths.numpy(), size)

    @classmethod
    def of_flat(cls, ids: Integers, lengths: Integers, size: int | None = None) -> PackedSide:
        """The same, from rows that lie end to end already."""
        return _lay(ids, lengths, lengths, None, size)

    @property
    def ids(self) -> Tensor:
        """(1, N)"""
        return self.table[IDS : IDS + 1]

    @property
    def positions(self) -> Tensor:
        """(1, N) each token's place in its sentence"""
        return self.table[POSITION : POSITION + 1]

    @property
    def begin(self) -> Tensor:
        """(N,) where each token's sentence begins …"""
        return self.table[BEGIN]

    @property
    def end(self) -> Tensor:
        """(N,) … and ends"""
        return self.table[STOP]

    @property
    def other_begin(self) -> Tensor:
        """(N,) where the sentence that belongs to it begins on the other side …"""
        return self.table[OTHER_BEGIN]

    @property
    def other_end(self) -> Tensor:
        """(N,) … and ends"""
        return self.table[OTHER_STOP]

    @property
    def wanted(self) -> Tensor:
        """(N,) int64: the token that should come next, or `NOTHING`"""
        return self.table[WANTED].long()

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device | str) -> PackedSide:
        table, starts, lengths = (t.to(device, non_blocking=True) for t in (self.table, self.starts, self.lengths))
        return PackedSide(table, starts, lengths, self.tokens, self.longest)

    def bounded(self) -> PackedSide:
        """The same row, told without its own sizes: `longest` is a bound, the padding is some more sentences."""
        size, longest = self.table.size(1), _power_of_two(max(self.longest, SHORT))
        padding = torch.arange(self.tokens, size, longest, device=self.starts.device)
        starts, lengths = torch.cat([self.starts, padding]), torch.cat([self.lengths, size - padding])
        return PackedSide(self.table, starts, lengths.clamp(max=longest), size, longest)

    def with_rows(self, rows: int) -> PackedSide:
        """As many sentences, by empty ones at the end."""
        missing, size = rows - len(self), self.table.size(1)
        starts, lengths = F.pad(self.starts, (0, missing), value=size), F.pad(self.lengths, (0, missing))
        return PackedSide(self.table, starts, lengths, self.tokens, self.longest)

    def twice(self, other_size: int) -> PackedSide:
        """The row, and the row again behind it; `other_size` is the other side's N."""
        size = self.table.size(1)
        shift = torch.zeros_like(self.table[:, :1])
        shift[BEGIN : STOP + 1] = size
        shift[OTHER_BEGIN : OTHER_STOP + 1] = other_size
        return PackedSide(
            torch.cat([self.table, self.table + shift], dim=1),
            torch.cat([self.starts, self.starts + size]),
            self.lengths.repeat(2),
            2 * self.tokens,
            self.longest,
        )


@dataclass(frozen=True)
class PackedPairs:
    """Sentences and their translations, each side packed. The target is what the decoder reads, `<sos> tokens`, beside
    what it should write, `tokens <eos>`."""

    source: PackedSide
    target: PackedSide
    indices: tuple[int, ...] = ()
    corpus: int = 0
    filled: bool = False  # both rows are of the size that was asked for

    @classmethod
    def of(cls, batch: PairBatch, budget: tuple[int, int] | None = None) -> PackedPairs:
        """The same pairs. With a budget of (source, target) tokens both rows are filled up to it; a batch that is
        larger keeps its own size. The batch must be on the CPU."""
        source, target = batch.source, batch.target
        source_size, target_size = budget or (None, None)
        real_BT = target.mask
        read, wanted = target.ids[:, :-1][real_BT[:, 1:]].numpy(), target.ids[:, 1:][real_BT[:, 1:]].numpy()
        source_lengths, target_lengths = source.lengths.numpy(), target.lengths.numpy() - 1
        sides = (
            _lay(source.ids[source.mask].numpy(), source_lengths, target_lengths, None, source_size),
            _lay(read, target_lengths, source_lengths, wanted, target_size),
        )
        return cls(*sides, batch.indices, batch.corpus, tuple(side.table.size(1) for side in sides) == budget)

    @property
    def tokens(self) -> int:
        """How many tokens the loss is taken over: the target with its `<eos>`."""
        return self.target.tokens

    def __len__(self) -> int:
        return len(self.source)

    def to(self, device: torch.device | str) -> PackedPairs:
        return PackedPairs(self.source.to(device), self.target.to(device), self.indices, self.corpus, self.filled)

    def repeating(self) -> PackedPairs | None:
        """The same pairs for a recording or a compiled program: nothing but the contents of tensors changes from batch
        to batch, within bounds that are powers of two. None where rows are not of a size that was asked for."""
        if not self.filled:
            return None
        source, target = self.source.bounded(), self.target.bounded()
        rows = _power_of_two(max(FEW, len(source), len(target)))
        return PackedPairs(source.with_rows(rows), target.with_rows(rows))

    def twice(self) -> PackedPairs:
        """All pairs, and all pairs again."""
        source, target = self.source, self.target
        return PackedPairs(source.twice(target.table.size(1)), target.twice(source.table.size(1)))

    def unpacked(self) -> PairBatch:
        """The pairs as they were, on the CPU."""
        here = self.to("cpu")
        source_ids, wanted = here.source.table[IDS].numpy(), here.target.table[WANTED].numpy()
        sources = [source_ids[start:stop].tolist() for start, stop in _bounds(here.source)]
        targets = [[START, *wanted[start:stop].tolist()] for start, stop in _bounds(here.target)]
        return PairBatch(Sequences.pad(sources), Sequences.pad(targets), self.indices, self.corpus)

    def split(self, parts: int) -> list[PackedPairs]:
        """The same sentences in `parts` smaller batches (fewer, when there are fewer sentences), without padding."""
        device = self.source.table.device
        return [PackedPairs.of(part).to(device) for part in self.unpacked().split(parts)]


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _bounds(side: PackedSide) -> list[tuple[int, int]]:
    pairs = torch.stack([side.starts, side.starts + side.lengths], dim=1).tolist()
    return cast(list[tuple[int, int]], pairs)


def _lay(
    ids: Integers, lengths: Integers, other_lengths: Integers, wanted: Integers | None, size: int | None
) -> PackedSide:
    tokens, other_tokens = int(lengths.sum()), int(other_lengths.sum())
    ends, other_ends = np.cumsum(lengths), np.cumsum(other_lengths)
    starts, row_N = ends - lengths, np.repeat(np.arange(len(lengths)), lengths)
    table = np.empty((7, max(tokens, size or 0)), np.int32)
    table[:, tokens:] = np.array([PAD, 0, tokens, tokens, other_tokens, other_tokens, NOTHING])[:, None]
    real = table[:, :tokens]
    real[IDS] = ids
    real[POSITION] = np.arange(tokens) - starts[row_N]
    real[BEGIN], real[STOP] = starts[row_N], ends[row_N]
    real[OTHER_BEGIN], real[OTHER_STOP] = (other_ends - other_lengths)[row_N], other_ends[row_N]
    real[WANTED] = NOTHING if wanted is None else wanted
    longest = int(lengths.max()) if len(lengths) else 0
    return PackedSide(
        torch.from_numpy(table), torch.from_numpy(starts), torch.from_numpy(lengths.copy()), tokens, longest
    )
