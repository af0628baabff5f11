"""Words to be read: pictures of them, or the glyphs that pictures are composed of where the model learns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class WordBatch:
    """What both have: `ids` is `y_1 … y_n <eos> <pad> …`, as wide for every batch."""

    ids: Tensor  # (B, T)
    lengths: Tensor  # (B,) characters, without <eos>
    indices: tuple[int, ...] = field(default=(), kw_only=True)
    corpus: int = field(default=0, kw_only=True)

    @property
    def tokens(self) -> int:
        """What the loss is summed over: words."""
        return len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def _tensors(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def to(self, device: torch.device | str) -> Self:
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in self._tensors().items()}
        return replace(self, **moved)

    def split(self, parts: int) -> list[Self]:
        """The same words in `parts` smaller batches (fewer, when there are fewer words)."""
        size = -(-len(self) // parts)
        return [
            replace(
                self,
                **{name: tensor[start : start + size] for name, tensor in self._tensors().items()},
                indices=self.indices[start : start + size],
            )
            for start in range(0, len(self), size)
        ]

    def repeating(self) -> Self:
        """Without what only messages need: the shapes are the same every time."""
        return replace(self, indices=(), corpus=0)


@dataclass(frozen=True)
class PicturedWords(WordBatch):
    images: Tensor  # (B, C, H, W), uint8


@dataclass(frozen=True)
class WrittenWords(WordBatch):
    glyphs: Tensor  # (B, L), numbers of an atlas, 0 after the end
