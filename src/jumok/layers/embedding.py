"""Word vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Embedding(nn.Embedding):
    """E[y] · √d, with E ~ N(0, 1/d) (Vaswani et al. 2017, 3.4).

    What comes out has unit variance, while E itself has the size an output layer wants that shares it. The factor also
    lets the vectors of rare words learn at the pace of the rest under Adam. Padding is the zero vector.
    """

    def __init__(self, vocabulary: int, width: int, padding: int) -> None:
        super().__init__(vocabulary, width, padding_idx=padding)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)
        assert self.padding_idx is not None
        with torch.no_grad():
            self.weight[self.padding_idx].zero_()

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) * self.embedding_dim**0.5
