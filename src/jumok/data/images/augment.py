"""Pictures of a training batch changed, each in its own way, on the device where the model learns.

uint8 in, uint8 out: the operations are exact in whole levels, and a batch takes a quarter of the memory. All draws come
from the device's own generator, which the training loop sets for each batch: the same update sees the same pictures.
No shape depends on a draw and nothing waits for one, so an update can be recorded or compiled with all of it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jumok.data.images.augment_colour import random_colours
from jumok.data.images.augment_draws import inside, rectangles, some
from jumok.data.images.augment_geometry import random_part, random_shift
from jumok.data.images.rand_augment import RandAugment
from jumok.recipe.vision import Augmentation

ERASED = (0.02, 1 / 3)  # share of the area
STRETCH = 1 / 0.3


class Augment(nn.Module):
    """(B, C, H, W) of uint8, before and after; in eval mode nothing happens."""

    def __init__(self, section: Augmentation) -> None:
        super().__init__()
        self.section = section
        self.rand_augment: RandAugment | None = None
        if section.rand_augment:
            asked = section.rand_augment, section.magnitude, section.spread, section.beyond
            self.rand_augment = RandAugment(*asked)

    def forward(self, images: Tensor) -> Tensor:
        section = self.section
        if not self.training or not section.changes:
            return images
        if section.resized_crop:
            images = random_part(images, section.resized_crop)
        if section.crop or section.flip:
            images = random_shift(images, section.crop, section.flip, section.beyond)
        if section.colour:
            images = random_colours(images, section.colour)
        if self.rand_augment is not None:
            images = self.rand_augment(images)
        if section.erase:
            images = erase(images, section.erase)
        return images


def erase(images: Tensor, probability: float) -> Tensor:
    """A rectangle of some pictures covered with noise (Zhong et al. 2017): any level is as likely, in each channel."""
    count, (height, width), device = len(images), images.shape[2:], images.device
    rows, chosen = some(count, probability, device)
    high, wide = rectangles(len(rows), (height, width), ERASED, STRETCH, device)
    high, wide = high.round().clamp(min=1), wide.round().clamp(min=1)
    free = torch.rand(2, len(rows), device=device)
    top = (free[0] * (height - high + 1)).floor()
    left = (free[1] * (width - wide + 1)).floor()
    box = inside(top, top + high, left, left + wide, (height, width)) & chosen[:, None, None, None]
    part = images.index_select(0, rows)
    noise = torch.randint(0, 256, part.shape, dtype=torch.uint8, device=device)
    return images.index_copy(0, rows, torch.where(box, noise, part))
