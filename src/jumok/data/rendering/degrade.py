"""What a camera, a small size and a file format do to a picture: out of focus, coarse, noisy, compressed.

(B, C, H, W) of numbers from 0 to 255, before and after; each picture its own draws, and no shape depends on one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.images.augment_draws import some

REACH = 3  # pixels to each side that a blur mixes
LARGEST_GRAIN = 12.0  # levels: the deviation of a pixel in the noisiest pictures
COARSE = (0.75, 0.5, 0.35)  # sizes that pictures had before they were enlarged
# how coarsely JPEG keeps each frequency of lightness, at quality 50
QUANTA = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)


def blur(images: Tensor, strength: float) -> Tensor:
    """Out of focus, or moved while it was taken: a Gaussian that is as wide as drawn, across and down."""
    count, device = len(images), images.device
    drawn = torch.rand(3, count, device=device)
    wide_B = 0.2 + strength * 1.3 * drawn[0] ** 3
    far_B = strength * 0.9 * drawn[2]
    across_B = torch.where(drawn[1] < 0.15, wide_B + far_B, wide_B)
    down_B = torch.where((drawn[1] >= 0.15) & (drawn[1] < 0.3), wide_B + far_B, wide_B)
    return _blurred(_blurred(images, across_B, 3), down_B, 2)


def _blurred(images: Tensor, width_B: Tensor, dimension: int) -> Tensor:
    """Σ_d w_d x_(i+d), w_d ∝ exp(−d² / 2σ²)."""
    steps = torch.arange(-REACH, REACH + 1, device=images.device)
    weights_BK = torch.exp(-(steps**2) / (2 * width_B[:, None] ** 2))
    weights_BK = weights_BK / weights_BK.sum(dim=1, keepdim=True)
    pad = (REACH, REACH, 0, 0) if dimension == 3 else (0, 0, REACH, REACH)
    padded = F.pad(images, pad, mode="replicate")
    size = images.size(dimension)
    total = torch.zeros_like(images)
    for number in range(2 * REACH + 1):
        total = total + weights_BK[:, number, None, None, None] * padded.narrow(dimension, number, size)
    return total


def coarsen(images: Tensor, share: float) -> Tensor:
    """Some pictures were smaller once: made so, and enlarged again."""
    size = images.shape[2:]
    rows, chosen = some(len(images), share, images.device)
    parts = torch.tensor_split(images.index_select(0, rows), len(COARSE))
    made = []
    for part, scale in zip(parts, COARSE, strict=True):
        if not len(part):
            continue
        small = [max(4, round(side * scale)) for side in size]
        reduced = F.interpolate(part, small, mode="area")
        made.append(F.interpolate(reduced, size, mode="bilinear", align_corners=False))
    changed = torch.where(chosen[:, None, None, None], torch.cat(made), images.index_select(0, rows))
    return images.index_copy(0, rows, changed)


def noise(images: Tensor, strength: float) -> Tensor:
    """Grain: of each pixel by itself, the same in all channels or not."""
    count, device = len(images), images.device
    amount_B = strength * LARGEST_GRAIN * torch.rand(count, device=device) ** 3
    grain = torch.randn(images.shape, device=device)
    common = torch.randn(count, 1, *images.shape[2:], device=device)
    coloured_B = (torch.rand(count, device=device) < 0.5).float()[:, None, None, None]
    return images + amount_B[:, None, None, None] * (coloured_B * grain + (1 - coloured_B) * common)


def compress(images: Tensor, share: float, quanta: Tensor) -> Tensor:
    """JPEG's blocks of 8×8: the cosine transform, each frequency kept coarsely, and back. Whole blocks alone.
    `quanta` are those above, where the pictures are."""
    high, wide = images.shape[2] // 8 * 8, images.shape[3] // 8 * 8
    if not high or not wide:
        return images
    rows, chosen = some(len(images), share, images.device)
    part = images.index_select(0, rows)
    device = images.device
    steps = torch.arange(8, device=device)
    cosines = torch.cos(math.pi / 8 * (steps[None] + 0.5) * steps[:, None]) / 2
    cosines = torch.cat([cosines[:1] / math.sqrt(2), cosines[1:]])
    coarse_B = 1 + 39 * torch.rand(len(rows), device=device) ** 2  # in twelfths of the table above
    scale_B = (coarse_B / 12)[:, None, None, None, None, None]
    blocks = part[:, :, :high, :wide].reshape(*part.shape[:2], high // 8, 8, wide // 8, 8) - 128
    waves = torch.einsum("ui,bchiwj,vj->bchuwv", cosines, blocks, cosines)
    grid = (quanta[:, None, :] * scale_B).clamp(min=1)
    waves = torch.round(waves / grid) * grid
    back = torch.einsum("ui,bchuwv,vj->bchiwj", cosines, waves, cosines) + 128
    made = part.clone()
    made[:, :, :high, :wide] = back.flatten(4, 5).flatten(2, 3)
    return images.index_copy(0, rows, torch.where(chosen[:, None, None, None], made, part))
