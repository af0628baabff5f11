"""The block that every Transformer of this house is a stack of: attention, feed-forward, Add & Norm around each.

post-norm (the paper):  x ← norm(x + dropout(sublayer(x)))
pre-norm (default):     x ← x + dropout(sublayer(norm(x)))

Deep vision models have two things more around a sublayer s: a learned factor for each channel (layer scale, Touvron et
al. 2021), and stochastic depth (Huang et al. 2016), which lets some rows of a batch pass it by as they learn:

    x ← x + z / (1 − p) · λ ⊙ s(norm(x)),   z = 0 with probability p, else 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.layers.dropout import Dropout
from jumok.layers.gelu import gelu, gelu_of_map
from jumok.layers.linear import for_products, linear, map_of
from jumok.layers.multihead import KeyValue, Look, MultiHeadAttention, Past
from jumok.layers.norm import Sum, norm_beside, suits, total


class BlockSection(Protocol):
    """What a recipe's section must say for a block to be built from it."""

    @property
    def width(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def key_value_heads(self) -> int | None: ...
    @property
    def feed_forward(self) -> int: ...
    @property
    def activation(self) -> str: ...
    @property
    def norm(self) -> str: ...
    @property
    def norm_kind(self) -> str: ...
    @property
    def dropout(self) -> float: ...
    @property
    def attention_dropout(self) -> float: ...
    @property
    def activation_dropout(self) -> float: ...


def build_norm(section: BlockSection) -> nn.Module:
    """LayerNorm: (x − μ) / σ · g + b (Ba et al. 2016).  RMSNorm: x / rms(x) · g (Zhang and Sennrich 2019)."""
    given: float | None = getattr(section, "norm_epsilon", None)  # BERT's checkpoints were made with another one
    if section.norm_kind == "layer":
        return nn.LayerNorm(section.width, eps=given or 1e-5)
    return nn.RMSNorm(section.width, eps=given or 1e-6)


class FeedForward(nn.Module):
    """f(x W_1 + b_1) W_2 + b_2 with f = ReLU, GELU or SiLU; SwiGLU (Shazeer 2020): (silu(x W_1) ⊙ x V) W_2."""

    def __init__(self, section: BlockSection) -> None:
        super().__init__()
        self.activation = section.activation
        self.inner = linear(section.width, section.feed_forward)
        self.gate = linear(section.width, section.feed_forward) if section.activation == "swiglu" else None
        self.outer = linear(section.feed_forward, section.width)
        self.dropout = Dropout(section.activation_dropout)

    def forward(self, x: Tensor, leaves_bias: bool = False) -> Tensor:
        activate = ACTIVATIONS[self.activation]
        if self.gate is not None:
            inner = activate(self.inner(x)) * self.gate(x)
        else:
            inner = gelu_of_map(x, self.inner) if self.activation == "gelu" else activate(self.inner(x))
        return map_of(self.outer, self.dropout(inner), leaves_bias)


# relu in place: nobody needs what it was given
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,
    "gelu": gelu,
    "silu": F.silu,
    "swiglu": F.silu,
}


class Sublayer(Protocol):
    def __call__(self, x: Tensor, /, leaves_bias: bool = False) -> Tensor:
        """`leaves_bias`: the gradient of the last map's bias is for the next norm to find."""


class AddNorm(nn.Module):
    """The residual connection with its normalisation and dropout, around whatever `sublayer` is."""

    def __init__(self, section: BlockSection, passed_by: float = 0.0) -> None:
        """`passed_by`: the share of rows that pass the sublayer by while the model learns."""
        super().__init__()
        self.pre = section.norm == "pre"
        self.norm = build_norm(section)
        self.dropout = Dropout(section.dropout)
        begin: float = getattr(section, "layer_scale", 0.0)
        self.scale = nn.Parameter(torch.full((section.width,), begin)) if begin else None
        self.passed_by = passed_by

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre:
            return self.dropout(self._weighed(sublayer(for_products(self.norm(x)))), onto=x)
        return self.norm(self.dropout(self._weighed(sublayer(for_products(x))), onto=x))

    def chained(self, x: Tensor | Sum, sublayer: Sublayer, last: nn.Linear) -> Tensor | Sum:
        """The same where the next one is like this: with pre-norm the sum is left to its norm, and with it, where
        nothing comes between, the gradient of the bias of the sublayer's `last` map."""
        if not self.pre:
            return self(total(x), sublayer)
        z, normed = norm_beside(self.norm, x)
        if self._plain() and last.bias is not None and suits(self.norm, z):
            return Sum(z, sublayer(normed, leaves_bias=True), last.bias)
        return Sum(z, self.dropout(self._weighed(sublayer(normed))))

    def _plain(self) -> bool:
        """Whether what the sublayer gives is added as it is."""
        return self.scale is None and not (self.training and (self.passed_by or self.dropout.p))

    def _weighed(self, y: Tensor) -> Tensor:
        """z / (1 − p) · λ ⊙ y"""
        if self.scale is not None:
            y = y * self.scale.to(y.dtype)
        if self.passed_by and self.training:
            rows = torch.rand(y.size(0), *[1] * (y.dim() - 1), device=y.device)
            y = y * ((rows >= self.passed_by) / (1 - self.passed_by)).to(y.dtype)
        return y


@dataclass(frozen=True)
class Source:
    """What a decoder block looks at besides its own text: this layer's keys and values of the source."""

    memory: KeyValue
    look: Look


class Block(nn.Module):
    """Self-attention, attention to the source where `cross` is on, feed-forward."""

    def __init__(
        self, section: BlockSection, kind: str, name: str, cross: bool = False, passed_by: float = 0.0
    ) -> None:
        """`kind` "self" (both ways) or "causal"; `name` is the block's place, as in "decoder.0"."""
        super().__init__()

        def attention(kind: str) -> MultiHeadAttention:
            groups = section.key_value_heads or section.heads
            return MultiHeadAttention(
                section.width, section.heads, groups, section.attention_dropout, kind, f"{name}.{kind}"
            )

        self.attention, self.attention_norm = attention(kind), AddNorm(section, passed_by)
        self.cross = attention("cross") if cross else None
        self.cross_norm = AddNorm(section) if cross else None
        self.feed_forward, self.feed_forward_norm = FeedForward(section), AddNorm(section, passed_by)

    def forward(self, x_BTD: Tensor, look: Look, source: Source | None = None, past: Past | None = None) -> Tensor:
        for around, sublayer, _ in self._sublayers(look, source, past):
            x_BTD = around(x_BTD, sublayer)
        return x_BTD

    def chained(self, x: Tensor | Sum, look: Look, source: Source | None, past: Past | None) -> Tensor | Sum:
        """The same between blocks that leave their last sum to the next one."""
        for around, sublayer, last in self._sublayers(look, source, past):
            x = around.chained(x, sublayer, last)
        return x

    def _sublayers(
        self, look: Look, source: Source | None, past: Past | None
    ) -> Iterator[tuple[AddNorm, Sublayer, nn.Linear]]:
        """With the norm around each, and its last map."""
        yield (
            self.attention_norm,
            lambda x, leaves_bias=False: self.attention(x, look, past=past, leaves_bias=leaves_bias),
            self.attention.output,
        )
        if self.cross is not None and self.cross_norm is not None:
            assert source is not None
            cross = self.cross
            yield (
                self.cross_norm,
                lambda x, leaves_bias=False: cross(x, source.look, source.memory, leaves_bias=leaves_bias),
                cross.output,
            )
        yield self.feed_forward_norm, self.feed_forward, self.feed_forward.outer
