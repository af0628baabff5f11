"""Who sees whom when sentences lie end to end: for each query an interval of keys, for each key one of queries.

    query i sees key j  ⇔  low_i ≤ j < high_i          key j is seen only by queries i with first_j ≤ i < last_j

Along a row all four rise. So what the queries i … i + n see lies between low_i and high_(i+n): a kernel that takes
tiles of queries needs no table of sentences, and neither its grid nor any shape depends on how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jumok.data.packing import PackedSide


@dataclass(frozen=True)
class Spans:
    low: Tensor  # (N,) int32
    high: Tensor  # (N,) int32
    first: Tensor  # (M,) int32
    last: Tensor  # (M,) int32
    queries: PackedSide
    keys: PackedSide
    causal: bool = False

    @classmethod
    def own(cls, side: PackedSide) -> Spans:
        """Every token sees its whole sentence."""
        return cls(side.begin, side.end, side.begin, side.end, side, side)

    @classmethod
    def past(cls, side: PackedSide) -> Spans:
        """Every token sees its sentence up to itself."""
        here = torch.arange(side.table.size(1), dtype=torch.int32, device=side.table.device)
        # what stands behind the end is padding, which sees nothing
        return cls(
            side.begin, torch.minimum(here + 1, side.end), torch.minimum(here, side.end), side.end, side, side, True
        )

    @classmethod
    def across(cls, target: PackedSide, source: PackedSide) -> Spans:
        """Every token of the target sees the source sentence of its pair."""
        return cls(
            target.other_begin, target.other_end, source.other_begin, source.other_end, queries=target, keys=source
        )


def side_by_side(x_NHD: Tensor, side: PackedSide) -> Tensor:
    """(B, H, T, D): each sentence in a row of its own, for those who cannot do without. What stands in the padding is
    a token of another sentence: mask it."""
    columns_T = torch.arange(side.longest, device=x_NHD.device)
    index_BT = (side.starts[:, None] + columns_T).clamp(max=x_NHD.size(0) - 1)
    return x_NHD[index_BT].transpose(1, 2)


def end_to_end(x_BHTD: Tensor, side: PackedSide) -> Tensor:
    """(N, H, D): what `side_by_side` has laid out, back in one row; zeros for its padding."""
    row_N = torch.searchsorted(side.starts, side.begin, right=True) - 1
    x_NHD = x_BHTD.transpose(1, 2)[row_N, side.positions[0]]
    return torch.where((side.begin < side.end)[:, None, None], x_NHD, 0.0)


def mask_of(side: PackedSide) -> Tensor:
    """(B, S) True where there is a token of the sentence. A row that stands for none (a batch that repeats has some)
    has one too: where all is masked there are no weights, and their gradient is not a number."""
    return torch.arange(side.longest, device=side.lengths.device) < side.lengths.clamp(min=1)[:, None]


def spread(x_MGD: Tensor, heads: int) -> Tensor:
    """(M, H, D): each group's keys for all of its query heads."""
    groups = x_MGD.size(1)
    return x_MGD if groups == heads else x_MGD.repeat_interleave(heads // groups, dim=1)
