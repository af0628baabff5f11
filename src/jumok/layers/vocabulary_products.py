"""The three matrix products of a chunk of words with the vocabulary: logits = h Wᵀ (+ b),  ∂h = g W,  ∂W += gᵀ h.

The plain way is what one reads first; on a CPU oneDNN does the same with W laid out for it once, not for every chunk.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jumok.layers import products
from jumok.layers.turned_native import turned


def products_of(weight_VD: Tensor, bias_V: Tensor | None, rows: int, total: torch.dtype) -> VocabularyProducts:
    """For chunks of so many rows; the gradients of all chunks are added up in `total`."""
    suits = rows * weight_VD.numel() >= products.LEAST and products.suits(weight_VD)
    kind = OneDNN if suits else VocabularyProducts
    return kind(weight_VD, bias_V, rows, total)


class VocabularyProducts:
    def __init__(self, weight_VD: Tensor, bias_V: Tensor | None, rows: int, total: torch.dtype) -> None:
        self.weight_VD, self.total = weight_VD, total
        self.bias_V = bias_V  # what is still to be added to the logits: the softmax does it, in its own precision
        self.room_CV = weight_VD.new_empty(rows, weight_VD.size(0))  # of all chunks, one after another
        self.d_weight: Tensor | None = None

    def logits(self, hidden_CD: Tensor) -> Tensor:
        """To be written over by whoever asked, until the next chunk."""
        return torch.mm(hidden_CD, self.weight_VD.t(), out=self.room_CV[: len(hidden_CD)])

    def d_hidden(self, gradient_CV: Tensor) -> Tensor:
        return torch.mm(gradient_CV, self.weight_VD)

    def add(self, gradient_CV: Tensor, hidden_CD: Tensor) -> None:
        """One more chunk of ∂W, added in the precision of the total."""
        if self.d_weight is None:
            self.d_weight = torch.zeros_like(self.weight_VD, dtype=self.total)
        if self.total == gradient_CV.dtype:
            self.d_weight.addmm_(gradient_CV.t(), hidden_CD)
        else:
            self.d_weight += torch.mm(gradient_CV.t(), hidden_CD)

    def gradient(self) -> Tensor:
        """∂W of all chunks, (V, D)."""
        return torch.zeros_like(self.weight_VD, dtype=self.total) if self.d_weight is None else self.d_weight


class OneDNN(VocabularyProducts):
    def __init__(self, weight_VD: Tensor, bias_V: Tensor | None, rows: int, total: torch.dtype) -> None:
        super().__init__(weight_VD, None, 0, total)
        self.added_V = bias_V  # in float32, before the logits are rounded
        self.rows, self.packed_VD = rows, products.packed(weight_VD, rows)
        self.packed_DV: Tensor | None = None  # only a model that learns needs it

    def logits(self, hidden_CD: Tensor) -> Tensor:
        return products.times(hidden_CD, self.packed_VD, self.added_V)

    def d_hidden(self, gradient_CV: Tensor) -> Tensor:
        if self.packed_DV is None:
            self.packed_DV = products.packed(self.weight_VD.t().contiguous(), self.rows)
        return products.times(gradient_CV, self.packed_DV)

    def add(self, gradient_CV: Tensor, hidden_CD: Tensor) -> None:
        """Transposed: few rows and many columns are quicker than the other way round."""
        chunk_DV = products.times(hidden_CD.t(), gradient_CV.t())
        if self.d_weight is None:
            self.d_weight = chunk_DV.to(self.total)
        else:
            self.d_weight += chunk_DV

    def gradient(self) -> Tensor:
        return super().gradient() if self.d_weight is None else turned(self.d_weight)
