"""Texts with hidden words, end to end or side by side, and what stands where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batch import Sequences
from jumok.data.masking import Hidden
from jumok.data.packing import FEW, NOTHING, PackedSide

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MaskedBatch:
    """What the model reads, and at which places (of all tokens, row after row) it must guess what."""

    words: Sequences | PackedSide
    places: Tensor  # (K,) int64
    wanted: Tensor  # (K,) int64; `NOTHING` where a place is only there to fill up
    guesses: int  # real ones
    segments: Tensor | None = None  # (B, T) or (1, N)
    order: Tensor | None = None  # (B,) 0: the second half follows the first, 1: it does not; `NOTHING`: no such row
    filled: bool = False  # packed into a row of the size that was asked for
    indices: tuple[int, ...] = ()
    corpus: int = 0

    @classmethod
    def of(
        cls,
        hidden: Hidden,
        lengths: Integers,
        segments: Integers | None,
        order: Integers | None,
        size: int | None = None,
        packed: bool = False,
        indices: tuple[int, ...] = (),
        corpus: int = 0,
    ) -> MaskedBatch:
        """From rows that lie end to end; packed, they are filled up to `size` tokens."""
        told = None if order is None else torch.from_numpy(order)
        wanted, parts = torch.from_numpy(hidden.wanted), None
        if packed:
            side = PackedSide.of_flat(hidden.ids, lengths, size)
            places = torch.from_numpy(hidden.places)
            if segments is not None:
                parts = F.pad(torch.from_numpy(segments), (0, side.table.size(1) - len(segments)))[None]
            filled = side.table.size(1) == size
            return cls(side, places, wanted, len(wanted), parts, told, filled, indices, corpus)
        words = Sequences.of_flat(hidden.ids, lengths)
        if segments is not None:
            parts = Sequences.of_flat(segments, lengths).ids
        # token n of row r stands at column n − (tokens of all rows before)
        ends = np.cumsum(lengths)
        row = np.searchsorted(ends, hidden.places, side="right")
        columns = hidden.places - (ends - lengths)[row]
        places = torch.from_numpy(row * words.ids.size(1) + columns)
        return cls(words, places, wanted, len(wanted), parts, told, False, indices, corpus)

    @property
    def tokens(self) -> int:
        """What the loss is summed over."""
        return self.guesses

    @property
    def read(self) -> int:
        """How many tokens the model reads."""
        return self.words.tokens

    def __len__(self) -> int:
        return len(self.words)

    def to(self, device: torch.device | str) -> MaskedBatch:
        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        places, wanted = self.places.to(device, non_blocking=True), self.wanted.to(device, non_blocking=True)
        rest = (moved(self.segments), moved(self.order), self.filled, self.indices, self.corpus)
        return MaskedBatch(self.words.to(device), places, wanted, self.guesses, *rest)

    def repeating(self) -> MaskedBatch | None:
        """The same for a recording: nothing but the contents of tensors changes from batch to batch, but for the
        number of guesses, which is rounded up."""
        if not self.filled or not isinstance(self.words, PackedSide):
            return None
        words = self.words.bounded()
        rows = 1 << (max(FEW, len(words)) - 1).bit_length()
        step = max(128, words.table.size(1) // 128)
        missing = -len(self.places) % step
        order = None if self.order is None else F.pad(self.order, (0, rows - len(self.order)), value=NOTHING)
        return MaskedBatch(
            words.with_rows(rows),
            F.pad(self.places, (0, missing)),
            F.pad(self.wanted, (0, missing), value=NOTHING),
            0,
            self.segments,
            order,
        )

    def split(self, parts: int) -> list[MaskedBatch]:
        """The same texts in `parts` smaller batches (fewer, when there are fewer texts)."""
        ids, lengths, segments = self._flat()
        starts, size = np.concatenate([[0], np.cumsum(lengths)]), -(-len(lengths) // parts)
        places = self.places.cpu().numpy()
        if not isinstance(self.words, PackedSide):
            row, column = np.divmod(places, self.words.ids.size(1))
            places = starts[row] + column
        wanted = self.wanted.cpu().numpy()
        order = None if self.order is None else self.order.cpu().numpy()
        pieces = []
        for first in range(0, len(lengths), size):
            low, high = int(starts[first]), int(starts[min(first + size, len(lengths))])
            here = (places >= low) & (places < high)
            piece = MaskedBatch.of(
                Hidden(ids[low:high], places[here] - low, wanted[here]),
                lengths[first : first + size],
                None if segments is None else segments[low:high],
                None if order is None else order[first : first + size],
                packed=isinstance(self.words, PackedSide),
                indices=self.indices[first : first + size],
                corpus=self.corpus,
            )
            pieces.append(piece.to(self.places.device))
        return pieces

    def _flat(self) -> tuple[Integers, Integers, Integers | None]:
        """Ids, lengths and segments, rows end to end."""
        lengths = self.words.lengths.cpu().numpy()
        if isinstance(self.words, PackedSide):
            real = slice(0, int(lengths.sum()))
            ids = self.words.ids[0, real].cpu().numpy().astype(np.int64)
            return ids, lengths, None if self.segments is None else self.segments[0, real].cpu().numpy()
        mask = self.words.mask
        segments = None if self.segments is None else self.segments[mask].cpu().numpy()
        return self.words.ids[mask].cpu().numpy(), lengths, segments
