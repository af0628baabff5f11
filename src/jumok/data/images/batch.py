"""Images side by side with the numbers of their classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class ImageBatch:
    images: Tensor  # (B, C, H, W), uint8
    labels: Tensor  # (B,)
    indices: tuple[int, ...] = ()
    corpus: int = 0

    @property
    def tokens(self) -> int:
        """What the loss is summed over."""
        return len(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> ImageBatch:
        images, labels = (each.to(device, non_blocking=True) for each in (self.images, self.labels))
        return replace(self, images=images, labels=labels)

    def split(self, parts: int) -> list[ImageBatch]:
        """The same images in `parts` smaller batches (fewer, when there are fewer images)."""
        size = -(-len(self) // parts)
        return [
            ImageBatch(
                self.images[start : start + size],
                self.labels[start : start + size],
                self.indices[start : start + size],
                self.corpus,
            )
            for start in range(0, len(self), size)
        ]

    def repeating(self) -> ImageBatch:
        """Without what only messages need: the shapes are the same every time."""
        return ImageBatch(self.images, self.labels)
