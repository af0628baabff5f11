"""Pictures mixed with others of their batch, and their labels with them.

Mixup (Zhang et al. 2018): λ · picture + (1 − λ) · other, with λ ~ Beta(α, α).
CutMix (Yun et al. 2019): a box of √(1 − λ) of both sides, around any point, comes from the other picture; what is
beyond the border is cut off, and the share is what of the picture is left, counted in pixels.

The other picture is the one before in the batch. Each picture has a λ of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from jumok.data.images.augment_draws import inside
from jumok.recipe.vision import Augmentation


class Mixed(NamedTuple):
    """The loss is share · loss(labels) + (1 − share) · loss(others)."""

    images: Tensor  # (B, C, H, W) of float32, 0 to 255
    labels: Tensor  # (B,) or whatever came in
    others: Tensor
    share: Tensor  # (B,) of float32: how much of the picture is what `labels` says


class Mix(nn.Module):
    """In eval mode nothing is mixed."""

    def __init__(self, section: Augmentation) -> None:
        super().__init__()
        self.section = section

    def forward(self, images: Tensor, labels: Tensor) -> Mixed:
        section, count, device = self.section, len(images), images.device
        if not self.training or not section.mixes:
            return Mixed(images.float(), labels, labels, torch.ones(count, device=device))
        mixed = torch.rand(count, device=device) < section.mix
        if section.mixup and section.cutmix:
            cut = torch.rand(count, device=device) < 0.5
        else:
            cut = torch.full((count,), bool(section.cutmix), device=device)
        own, share = images, torch.ones(count, device=device)
        if section.cutmix:
            kept = torch.where(mixed & cut, beta(section.cutmix, count, device), 1.0)
            own, share = cutmix(own, kept)
        blended = own.float()
        if section.mixup:
            kept = torch.where(mixed & ~cut, beta(section.mixup, count, device), 1.0)
            # where the share is 1 this is the picture itself, to the bit
            blended = torch.lerp(images.float().roll(1, 0), blended, kept[:, None, None, None])
            share = share * kept
        return Mixed(blended, labels, labels.roll(1, 0), share)


def cutmix(images: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Boxes that leave about the share `kept` (B,) of each picture; and what they leave, exactly."""
    height, width = images.shape[2:]
    free = torch.rand(2, len(images), device=images.device)
    sides = (1 - kept).clamp(min=0).sqrt()
    high, wide = (sides * height).floor(), (sides * width).floor()
    top = (free[0] * height).floor() - (high / 2).floor()
    left = (free[1] * width).floor() - (wide / 2).floor()
    bottom, right = (top + high).clamp(max=height), (left + wide).clamp(max=width)
    top, left = top.clamp(min=0), left.clamp(min=0)
    box = inside(top, bottom, left, right, (height, width))
    share = 1 - (bottom - top) * (right - left) / (height * width)
    return torch.where(box, images.roll(1, 0), images), share


def beta(alpha: float, count: int, device: torch.device) -> Tensor:
    """λ ~ Beta(α, α): (count,).

    λ is G / (G + G') of two gamma variables, and for a small α both of them are often 0 in float32. Since G(α) is
    G(α + 1) · U^(1/α), their logarithms can be had instead: λ = σ(log G − log G').
    """
    gamma = torch._standard_gamma(torch.full((2, count), alpha + 1.0, device=device)).log()
    waited = -torch.log1p(-torch.rand(2, count, device=device))  # −log U, never infinite
    return torch.sigmoid(gamma[0] - gamma[1] + (waited[1] - waited[0]) / alpha)
