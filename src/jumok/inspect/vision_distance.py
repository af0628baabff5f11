"""How far each head looks, in pixels (Dosovitskiy et al. 2021, figure 7 right): the mean attention distance.

    d_lh = E_{image, patch t} [ Σ_s α_ts · |p_t − p_s| ]        p: the middle of a patch, in pixels

Only patches have a place, so t and s are patches and α is divided by what the patches have of it; `elsewhere` says how
much goes to the class token and registers instead.

Beside it stands a convolutional network: after layers of kernel k and stride s a pixel has seen a square of

    r_l = r_(l−1) + (k_l − 1) · j_(l−1)        j_l = j_(l−1) · s_l        r_0 = j_0 = 1

pixels, its receptive field. If it weighed all of that alike (within the image), d would be `field_distances`; trained
networks weigh the middle more (Luo et al. 2016), so they look less far. Of a head that looks at all patches alike, d is
`uniform`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jumok.errors import BadInput
from jumok.inspect.vision import every_layer, room
from jumok.models.vit import Looker

Layer = tuple[int, int]  # of a convolutional network: kernel and stride


@dataclass(frozen=True)
class HeadDistance:
    layer: int
    head: int
    pixels: float
    elsewhere: float  # the share of attention that goes to tokens of no patch


@dataclass(frozen=True)
class Distances:
    """All heads from the first layer to the last, and what they were measured on."""

    images: int
    image: tuple[int, int]
    grid: tuple[int, int]
    heads: tuple[HeadDistance, ...]
    uniform: float  # of a head that looks at all patches alike
    fields: tuple[int, ...]  # the receptive field of a CNN at each depth, in pixels
    field_distances: tuple[float, ...]  # if it weighed all of that alike
    max_difference: float

    @property
    def diagonal(self) -> float:
        return math.hypot(*self.image)

    @property
    def layers(self) -> int:
        return self.heads[-1].layer + 1

    def of_layer(self, layer: int) -> list[float]:
        return [one.pixels for one in self.heads if one.layer == layer]

    def spread(self, layer: int) -> tuple[float, float, float]:
        """Of the nearest head of a layer, the mean of all, and of the farthest."""
        pixels = self.of_layer(layer)
        return min(pixels), sum(pixels) / len(pixels), max(pixels)

    def to_json(self) -> dict[str, Any]:
        def told(layer: int) -> dict[str, Any]:
            heads = [one for one in self.heads if one.layer == layer]
            low, mean, high = self.spread(layer)
            return {
                "layer": layer, "pixels": [one.pixels for one in heads], "elsewhere": [one.elsewhere for one in heads],
                "lowest": low, "highest": high, "mean": mean,
                "lowest_share": low / self.diagonal, "highest_share": high / self.diagonal,
            }  # fmt: skip

        every = [told(layer) for layer in range(self.layers)]
        return {
            "format": 1, "images": self.images, "image": list(self.image), "grid": list(self.grid),
            "diagonal": self.diagonal, "uniform": self.uniform, "max_difference": self.max_difference,
            "first": every[0], "last": every[-1], "layers": every,
            "cnn": {"receptive_field": list(self.fields), "distance": list(self.field_distances)},
        }  # fmt: skip

    def summary(self) -> str:
        """A table for the terminal: a line for each layer."""
        height, width = self.image
        lines = [
            f"How far {len(self.heads)} heads look: mean attention distance over {self.images:,} "
            f"image{'s' * (self.images != 1)} of {height}×{width} pixels.",
            "",
            "layer   nearest    mean  farthest   share of the diagonal   CNN: field  if evenly",
        ]
        for layer in range(self.layers):
            low, mean, high = self.spread(layer)
            shares = f"{low / self.diagonal:.2f} to {high / self.diagonal:.2f}"
            field, evenly = self.fields[layer], self.field_distances[layer]
            lines.append(f"{layer:>5}{low:>10.1f}{mean:>8.1f}{high:>10.1f}{shares:>24}{field:>13}{evenly:>11.1f}")
        lines += [
            "",
            f"A head that looks at all patches alike: {self.uniform:.1f} pixels (of the image as the model sees it).",
            "Largest difference between what the recorded weights give and what the model computes: "
            f"{self.max_difference:.1e}.",
        ]
        return "\n".join(lines) + "\n"


def attention_distances(
    model: Looker, images: Tensor | Iterable[Tensor], layers: Sequence[Layer] | None = None
) -> Distances:
    """Of images (B, C, H, W), or of several such batches of one size. `layers` are the CNN's, kernel and stride, as
    many for each layer of the model; without them a residual network's (`residual_layers`)."""
    total_LH = shares_LH = torch.zeros(0)
    count, difference = 0, 0.0
    image = grid = (0, 0)
    for batch_BCHW in [images] if isinstance(images, Tensor) else images:
        if count and (batch_BCHW.size(-2), batch_BCHW.size(-1)) != image:
            raise BadInput("images of several sizes: distances are measured on images of one")
        image, grid = (batch_BCHW.size(-2), batch_BCHW.size(-1)), model.reader.grid(batch_BCHW)
        for some in torch.split(batch_BCHW, room(model, batch_BCHW)):
            sums_LH, others_LH, worst = _sums(model, some, image, grid)
            total_LH, shares_LH = (total_LH + sums_LH, shares_LH + others_LH) if count else (sums_LH, others_LH)
            count, difference = count + len(some), max(difference, worst)
    if not count:
        raise BadInput("there is no image to measure distances on: give one at least")
    heads = tuple(
        HeadDistance(layer, head, float(total_LH[layer, head]) / count, float(shares_LH[layer, head]) / count)
        for layer in range(total_LH.size(0))
        for head in range(total_LH.size(1))
    )
    deep = model.section.layers
    fields = _fields(layers, deep)
    evenly = tuple(even_distance(image, (1.0, 1.0), (field - 1) // 2) for field in fields)
    pitch = image[0] / grid[0], image[1] / grid[1]
    return Distances(count, image, grid, heads, even_distance(grid, pitch), fields, evenly, difference)


def _sums(
    model: Looker, images_BCHW: Tensor, image: tuple[int, int], grid: tuple[int, int]
) -> tuple[Tensor, Tensor, float]:
    """(L, H) each, summed over images: of distances and of what goes elsewhere."""
    added = model.reader.added
    distance_NN = patch_distances(grid, (image[0] / grid[0], image[1] / grid[1])).float()
    pixels, elsewhere, worst = [], [], 0.0
    for part in every_layer(model, images_BCHW):
        worst = max(worst, part.max_difference)
        for weights_BHTS in part.layers:
            own_BHNN = weights_BHTS[:, :, added:, added:]
            whole_BHN = own_BHNN.sum(dim=-1).double()
            # a head that looks past all patches (its weights there are 0 in float32) has no distance: as if at itself
            least = torch.finfo(torch.float32).tiny
            far_BHN = torch.einsum("bhts,ts->bht", own_BHNN, distance_NN).double() / whole_BHN.clamp(min=least)
            pixels.append(far_BHN.mean(dim=-1).sum(dim=0))
            elsewhere.append(weights_BHTS[:, :, added:, :added].sum(dim=-1).double().mean(dim=-1).sum(dim=0))
    return torch.stack(pixels), torch.stack(elsewhere), worst


def patch_distances(grid: tuple[int, int], pitch: tuple[float, float]) -> Tensor:
    """(N, N) between the middles of patches, by rows; `pitch` is how far neighbours are apart, down and across."""
    rows, columns = torch.meshgrid(
        torch.arange(grid[0], dtype=torch.float64) * pitch[0],
        torch.arange(grid[1], dtype=torch.float64) * pitch[1],
        indexing="ij",
    )
    places_N2 = torch.stack([rows.flatten(), columns.flatten()], dim=-1)
    return (places_N2[:, None] - places_N2[None]).norm(dim=-1)


def even_distance(grid: tuple[int, int], pitch: tuple[float, float], reach: int | None = None) -> float:
    """The mean distance between a place of a grid and all places at most `reach` rows and columns away, itself too.

    Rows and columns are chosen independently, so P(row offset) · P(column offset) is all that is needed.
    """
    shares, offsets = [], []
    for size, step in zip(grid, pitch, strict=True):
        place = np.arange(size)
        offset = place[None, :] - place[:, None]
        near = np.abs(offset) <= (size if reach is None else reach)
        each = near / near.sum(axis=1, keepdims=True) / size
        shares.append(np.bincount(np.abs(offset).ravel(), weights=each.ravel(), minlength=size))
        offsets.append(np.arange(size) * step)
    lengths = np.hypot(offsets[0][:, None], offsets[1][None, :])
    return float(shares[0] @ lengths @ shares[1])


# ---------------------------------------------------------------- beside a convolutional network


def receptive_field(layers: Sequence[Layer]) -> list[int]:
    """Pixels that are seen, along one side, after each of the layers (kernel, stride)."""
    seen, jump, fields = 1, 1, []
    for kernel, stride in layers:
        if kernel < 1 or stride < 1:
            raise BadInput(f"a layer of kernel {kernel} and stride {stride}: both are 1 or more")
        seen, jump = seen + (kernel - 1) * jump, jump * stride
        fields.append(seen)
    return fields


def residual_layers(depth: int) -> list[Layer]:
    """As deep as `depth` blocks of a residual network for small images (He et al. 2016, 4.2): a layer of 3×3, then
    blocks of two, in three stages of which the second and the third begin with a stride of 2."""
    stages = {round(depth * part / 3) for part in (1, 2)} - {0}
    layers = [(3, 1)]
    for block in range(depth):
        layers += [(3, 2 if block in stages else 1), (3, 1)]
    return layers


def _fields(layers: Sequence[Layer] | None, depth: int) -> tuple[int, ...]:
    """The receptive field at the depth of each layer of the model."""
    if layers is None:
        return tuple(receptive_field(residual_layers(depth))[2::2])
    if not layers or len(layers) % depth:
        raise BadInput(f"{len(layers)} layers of a CNN beside {depth} of the model: give as many for each of them")
    each = len(layers) // depth
    return tuple(receptive_field(layers)[each - 1 :: each])
