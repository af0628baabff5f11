"""Where the pixels go: cropped, mirrored, turned, sheared, moved, enlarged; each picture of a batch its own way.

A shift by whole pixels is a copy, exact. All else is one affine map from the places of the new picture to those of the
old one, as Pillow's `Image.transform` has it, between pixel centres at (x + ½, y + ½), read bilinearly:

    x' = a·x + b·y + c,  y' = d·x + e·y + f

Pictures are (B, C, H, W) of uint8, before and after.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.images.augment_colour import as_bytes
from jumok.data.images.augment_draws import in_parts, rectangles

Around = Literal["black", "mirror"]
STRETCH = 4 / 3  # of a part that is enlarged: width over height, or height over width, at most


def random_shift(images: Tensor, padding: int, flip: bool, beyond: Around = "black") -> Tensor:
    """With so much around, a part of the own size cut out anywhere; half of them mirrored, if so wished."""
    count, device = len(images), images.device
    down = torch.randint(0, 2 * padding + 1, (count,), device=device)
    right = torch.randint(0, 2 * padding + 1, (count,), device=device)
    mirrored = torch.randint(0, 2, (count,), device=device) if flip else torch.zeros_like(down)
    cut = shift if beyond == "black" else shift_into_itself
    return in_parts(lambda *drawn: cut(padding, *drawn), images, down, right, mirrored)


def shift(padding: int, images: Tensor, down: Tensor, right: Tensor, mirrored: Tensor) -> Tensor:
    """Cut out `down` and `right` of the padded picture's corner, in pixels; then mirrored where that is 1."""
    _, channels, height, width = images.shape
    padded = F.pad(images, (padding, padding, padding, padding))
    rows_BH = torch.arange(height, device=images.device) + down[:, None]
    columns = torch.arange(width, device=images.device)
    columns_BW = torch.where(mirrored[:, None] == 1, width - 1 - columns, columns) + right[:, None]
    place_BHW = rows_BH[:, :, None] * (width + 2 * padding) + columns_BW[:, None, :]
    return padded.flatten(2).gather(2, place_BHW.flatten(1)[:, None].expand(-1, channels, -1)).view(images.shape)


def shift_into_itself(padding: int, images: Tensor, down: Tensor, right: Tensor, mirrored: Tensor) -> Tensor:
    """The same with the picture's own mirror image around it, its outermost pixels not twice."""
    _, channels, height, width = images.shape
    rows_BH = _reflected(torch.arange(height, device=images.device) + down[:, None] - padding, height)
    columns = torch.arange(width, device=images.device)
    columns_BW = torch.where(mirrored[:, None] == 1, width - 1 - columns, columns) + right[:, None] - padding
    place_BHW = rows_BH[:, :, None] * width + _reflected(columns_BW, width)[:, None, :]
    return images.flatten(2).gather(2, place_BHW.flatten(1)[:, None].expand(-1, channels, -1)).view(images.shape)


def _reflected(places: Tensor, size: int) -> Tensor:
    """… 2 1 0 1 2 … size−2 size−1 size−2 …"""
    period = max(1, 2 * (size - 1))
    places = places % period
    return torch.minimum(places, period - places)


def random_part(images: Tensor, smallest: float) -> Tensor:
    """A part with at least this share of the area, enlarged to the size of the whole (Szegedy et al. 2015)."""
    height, width = images.shape[2:]
    high, wide = rectangles(len(images), (height, width), (smallest, 1.0), STRETCH, images.device)
    free = torch.rand(2, len(images), device=images.device)
    return part(images, free[0] * (height - high), free[1] * (width - wide), high, wide)


def part(images: Tensor, top: Tensor, left: Tensor, high: Tensor, wide: Tensor) -> Tensor:
    """The part of each picture with this corner and size, in pixels (not only whole ones), in the size of the whole."""
    height, width = images.shape[2:]
    none = torch.zeros_like(top)
    return warp(images, torch.stack((wide / width, none, left, none, high / height, top), 1), beyond="border")


def warp(images: Tensor, matrices: Tensor, beyond: Literal["zeros", "border", "reflection"] = "zeros") -> Tensor:
    """Each picture under its map a … f (B, 6); beyond the old picture's border is black, its last pixel, or its mirror
    image."""
    return in_parts(lambda *drawn: _warp(beyond, *drawn), images, matrices)


def _warp(beyond: str, images: Tensor, matrices: Tensor) -> Tensor:
    height, width = images.shape[2:]
    y = torch.arange(height, device=images.device)[:, None] + 0.5
    x = torch.arange(width, device=images.device) + 0.5
    # by hand: a matrix product would be computed in bfloat16 where the model is
    a, b, c, d, e, f = matrices[:, :, None, None].unbind(1)
    # grid_sample's places go from −1 to 1
    grid_BHW2 = torch.empty(len(images), height, width, 2, device=images.device)
    grid_BHW2[..., 0] = (a * x + c) * (2 / width) - 1 + b * (2 / width) * y
    grid_BHW2[..., 1] = (d * x + f) * (2 / height) - 1 + e * (2 / height) * y
    read = F.grid_sample(images.float(), grid_BHW2, "bilinear", beyond, align_corners=False)
    return as_bytes(read.round_())
