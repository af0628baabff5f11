"""What experiments on the encoder share: a small Transformer encoder that gives every word of a text a label.

h = Stack(E[x] √d)        logits_t = W h_t + b        (layers/stack.py, layers/embedding.py: the house's own)
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from jumok.layers.embedding import Embedding
from jumok.layers.linear import linear
from jumok.layers.stack import Stack
from jumok.recipe import TransformerLanguageSection


class Labeller(nn.Module):
    """`options` are those of a Transformer's recipe: width, heads, layers, feed_forward, position …"""

    def __init__(self, words: int, labels: int, **options: Any) -> None:
        super().__init__()
        section = TransformerLanguageSection(dropout=0.0, **options)
        self.embedding = Embedding(words, section.width, padding=0)
        self.encoder = Stack(section, section.layers, "self", "encoder")
        self.head = linear(section.width, labels)

    def forward(self, ids_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """Hidden states (B, T, D); `head` makes labels of them."""
        return self.encoder(self.embedding(ids_BT), mask_BT)
