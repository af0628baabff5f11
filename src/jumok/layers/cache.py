"""The keys and values of what has been written so far, so that each step of a search computes only what is new.

All layers lie in one tensor (L, 2, B, C, G, D): choosing hypotheses is one copy, not one for each layer. Rows may
stand at different positions (sentences that joined a running batch later); where all stand at the same one, no mask is
needed. Steps write in place: a cache belongs to one search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.layers.multihead import KeyValue, Past


@dataclass(frozen=True)
class KeyValueCache:
    store: Tensor  # (L, 2, B, C, G, D)
    filled: int  # columns in use: the longest row's length
    lengths: Tensor | None = None  # (B,) tokens of each row; None while all rows have `filled`

    @classmethod
    def empty(cls, layers: int, rows: int, capacity: int, groups: int, head_width: int, like: Tensor) -> KeyValueCache:
        return cls(like.new_zeros(layers, 2, rows, capacity, groups, head_width), 0)

    def with_room(self, tokens: int) -> KeyValueCache:
        """Columns for so many more tokens. Growing doubles, so that it happens rarely."""
        capacity = self.store.size(3)
        if self.filled + tokens <= capacity:
            return self
        return replace(self, store=_widened(self.store, max(self.filled + tokens, 2 * capacity)))

    def past(self, layer: int) -> Past:
        return Past(self.store[layer, 0], self.store[layer, 1], self.filled, self.lengths)

    def advanced(self, tokens: int) -> KeyValueCache:
        lengths = None if self.lengths is None else self.lengths + tokens
        return replace(self, filled=self.filled + tokens, lengths=lengths)

    def positions(self, tokens: int) -> Tensor:
        """Where the next tokens stand: (T,), or (B, T) where rows differ."""
        new_T = torch.arange(tokens, device=self.store.device)
        return new_T + self.filled if self.lengths is None else self.lengths[:, None] + new_T

    def mask(self, tokens: int) -> Tensor | None:
        """(B, T, S) where each new token may look at when rows differ in length; else causality says all."""
        if self.lengths is None:
            return None
        columns_S = torch.arange(self.filled + tokens, device=self.store.device)
        return columns_S <= self.positions(tokens)[..., None]

    def select(self, rows: Tensor) -> KeyValueCache:
        """Only columns in use are copied."""
        layers, two, _, capacity, groups, head_width = self.store.shape
        # where rows differ, the next column is looked at before every row has written it: masked, but not if it is NaN
        new = self.store.new_empty if self.lengths is None else self.store.new_zeros
        store = new(layers, two, len(rows), capacity, groups, head_width)
        torch.index_select(self.store[:, :, :, : self.filled], 2, rows, out=store[:, :, :, : self.filled])
        return replace(self, store=store, lengths=None if self.lengths is None else self.lengths.index_select(0, rows))

    @staticmethod
    def join(parts: Sequence[KeyValueCache]) -> KeyValueCache:
        """The rows of all parts. Columns that only rows of the past needed are dropped."""
        lengths = [part._lengths() for part in parts]
        longest = [int(length_B.max()) if len(length_B) else 0 for length_B in lengths]
        filled, capacity = max(longest), max(part.store.size(3) for part in parts)
        store = torch.cat([_widened(part.store[:, :, :, : part.filled], capacity) for part in parts], dim=2)
        together_B = torch.cat(lengths)
        aligned = all(part.lengths is None for part in parts) and len(set(longest)) == 1
        return KeyValueCache(store, filled, None if aligned else together_B)

    def _lengths(self) -> Tensor:
        if self.lengths is not None:
            return self.lengths
        return torch.full((self.store.size(2),), self.filled, dtype=torch.long, device=self.store.device)


def _widened(store: Tensor, capacity: int) -> Tensor:
    return F.pad(store, (0, 0, 0, 0, 0, capacity - store.size(3)))


def stacked(layers: Sequence[KeyValue]) -> Tensor:
    """(L, 2, B, S, G, D) from the keys and values of each layer."""
    return torch.stack([torch.stack(pair) for pair in layers])


def join_coverage(parts: Sequence[tuple[Tensor | None, int]], width: int) -> Tensor | None:
    """Σ_t α_ts (B, width) of all parts, each given with its number of rows; one that did not count so far begins at 0.
    None: nobody counts."""
    counted = [covered for covered, _ in parts if covered is not None]
    if not counted:
        return None
    return torch.cat(
        [
            counted[0].new_zeros(rows, width) if covered is None else F.pad(covered, (0, width - covered.size(1)))
            for covered, rows in parts
        ]
    )
