"""Where a word stands. Attention itself does not know: it sums over a set.

Additive positions are added to the word vectors, rotary ones turn queries and keys, relative ones bias the scores.
Tables are computed once in float64 and kept in float32; they grow with the longest sequence seen and are not weights.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.errors import BadInput


class Table(nn.Module):
    """Rows for positions 0, 1, 2 …, as many as were asked for. Not stored with the model: it follows from a formula."""

    rows: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.former: list[Tensor] = []
        self.register_buffer("rows", self.formula(torch.arange(256, dtype=torch.float64)).float(), persistent=False)

    def formula(self, positions_P: Tensor) -> Tensor:
        raise NotImplementedError

    def reach(self, length: int) -> None:
        """Make sure that positions below `length` are there. Called with sizes known on the host: no waiting."""
        if length > self.rows.size(0):
            size = max(length, 2 * self.rows.size(0))
            rows = self.formula(torch.arange(size, dtype=torch.float64)).float()
            self.former.append(self.rows)  # a recorded CUDA graph may still read it there
            self.rows = rows.to(self.rows.device, self.rows.dtype)

    def forward(self, positions: Tensor) -> Tensor:
        return self.rows[positions]


class Sinusoidal(Table):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)),  PE(pos, 2i+1) = cos(pos / 10000^(2i/d))   (Vaswani et al. 2017, 3.5)

    `halves`: the same numbers with all sines first, as tensor2tensor and Marian have them.
    """

    def __init__(self, width: int, halves: bool = False) -> None:
        self.width, self.halves = width, halves
        super().__init__()

    def formula(self, positions_P: Tensor) -> Tensor:
        exponent = torch.arange(0, self.width, 2, dtype=torch.float64) / self.width
        angle_PW = positions_P[:, None] / 10000.0**exponent
        parts = [angle_PW.sin(), angle_PW.cos()]
        return torch.cat(parts, dim=-1) if self.halves else torch.stack(parts, dim=-1).flatten(1)


class Learned(nn.Embedding):
    """One vector for each position, learned as the words' are; there are `max_positions` and no more."""

    def __init__(self, width: int, max_positions: int) -> None:
        super().__init__(max_positions, width)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.02)

    def reach(self, length: int) -> None:
        if length > self.num_embeddings:
            raise BadInput(
                f"this model's learned positions end at {self.num_embeddings} tokens (model.max_positions), {length} "
                "were asked for: shorten the text or search.max_ratio and max_extra, or train with sinusoidal positions"
            )


class Rotary(Table):
    """Pairs of a query's (key's) numbers are turned by pos · θ_i, θ_i = 10000^(-2i/d) (Su et al. 2021, RoFormer):

        (x_i, x_(i+d/2)) → (x_i cos − x_(i+d/2) sin,  x_(i+d/2) cos + x_i sin)

    A product of two turned vectors then depends on their distance alone.
    """

    def __init__(self, head_width: int) -> None:
        self.head_width = head_width
        super().__init__()

    def formula(self, positions_P: Tensor) -> Tensor:
        exponent = torch.arange(0, self.head_width, 2, dtype=torch.float64) / self.head_width
        angle_PD = (positions_P[:, None] / 10000.0**exponent).repeat(1, 2)
        return torch.stack((angle_PD.cos(), angle_PD.sin()), dim=1)  # (P, 2, D)


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Turn x (B, T, H, D) by `turns`: (T, 2, D), or (B, T, 2, D) where each row stands elsewhere."""
    cos, sin = turns[..., 0, :].unsqueeze(-2), turns[..., 1, :].unsqueeze(-2)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class RelativeBias(nn.Module):
    """score + b_h[bucket(s − t)]: one learned number for each head and distance (Raffel et al. 2020, T5).

    Near distances have a bucket each, farther ones share buckets that grow logarithmically, and all beyond
    `farthest` share the last. A text that looks both ways has half of the buckets for each direction.
    """

    def __init__(self, heads: int, both_ways: bool, buckets: int = 32, farthest: int = 128) -> None:
        super().__init__()
        self.both_ways, self.buckets, self.farthest = both_ways, buckets, farthest
        self.weight = nn.Embedding(buckets, heads)
        nn.init.zeros_(self.weight.weight)

    def reach(self, length: int) -> None:
        """Any distance has a bucket."""

    def bucket(self, distance: Tensor) -> Tensor:
        """`distance` = s − t."""
        buckets, offset = self.buckets, torch.zeros_like(distance)
        if self.both_ways:
            buckets //= 2
            offset = (distance > 0).long() * buckets
            distance = distance.abs()
        else:
            distance = -distance.clamp(max=0)
        near = buckets // 2
        growth = torch.log(distance.clamp(min=1).float() / near) / math.log(self.farthest / near)
        far = (near + growth * (buckets - near)).long().clamp(max=buckets - 1)
        return offset + torch.where(distance < near, distance, far)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """(1 or B, H, T, S) for query positions (T,) or (B, T) and key positions (S,)."""
        distance = key_positions - query_positions[..., None]
        bias = self.weight(self.bucket(distance)).movedim(-1, -3)
        return bias if bias.dim() == 4 else bias[None]


class Grid(nn.Module):
    """A learned vector for each place of a grid of patches, (h, w, D). For another grid the vectors between are found
    by bicubic interpolation, so that a model can look at larger images than it has learned from.

    They begin about as large as the patches of an image that they are added to (a convolutional stem gives larger
    ones: `stem_norm` brings them to one size). The usual N(0, 0.02²) hides them behind patches at
    first: what learns from few images then stays a bag of patches for long (docs/vision.md).
    """

    def __init__(self, grid: tuple[int, int], width: int, antialias: bool) -> None:
        super().__init__()
        self.antialias = antialias
        self.weight = nn.Parameter(torch.empty(*grid, width))
        nn.init.normal_(self.weight, std=0.5)

    def forward(self, grid: tuple[int, int]) -> Tensor:
        return resampled(self.weight, grid, self.antialias)


def resampled(places_HWD: Tensor, grid: tuple[int, int], antialias: bool) -> Tensor:
    """Vectors of a grid brought to another one; as they are, where it is the same."""
    if tuple(places_HWD.shape[:2]) == grid:
        return places_HWD
    # channels last: for others PyTorch's antialiased way to a single column is wrong on a CPU (2.13)
    places_1DHW = places_HWD[None].permute(0, 3, 1, 2).float()
    found = F.interpolate(places_1DHW, grid, mode="bicubic", antialias=antialias, align_corners=False)
    return found[0].permute(1, 2, 0)


class SinusoidalGrid(nn.Module):
    """Half of the channels tell the row, half the column, as `Sinusoidal` tells a place in a text: all sines of the
    row, its cosines, then the column's. Nothing to learn, and any grid."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.kept: dict[tuple[tuple[int, int], str], Tensor] = {}

    def forward(self, grid: tuple[int, int], like: Tensor | None = None) -> Tensor:
        device = torch.device("cpu") if like is None else like.device
        if (grid, str(device)) not in self.kept:  # computed once: a recorded CUDA graph reads it there
            self.kept[grid, str(device)] = self.formula(grid).to(device)
        return self.kept[grid, str(device)]

    def formula(self, grid: tuple[int, int]) -> Tensor:
        exponent_W = torch.arange(self.width // 4, dtype=torch.float64) / (self.width // 4)
        parts = []
        for axis, size in enumerate(grid):
            angle_PW = torch.arange(size, dtype=torch.float64)[:, None] / 10000.0**exponent_W
            waves = torch.cat([angle_PW.sin(), angle_PW.cos()], dim=-1)
            parts.append((waves[:, None] if axis == 0 else waves[None]).expand(*grid, -1))
        return torch.cat(parts, dim=-1).float()
