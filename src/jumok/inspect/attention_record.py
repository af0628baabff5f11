"""One record of one attention: its weights, who looks at whom, and how far they explain what the layer returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from jumok.errors import BadInput
from jumok.inspect.attention import Attention
from jumok.inspect.tokens import Read, Tokens, places
from jumok.layers.attention import attention_weights
from jumok.layers.tap import Tap


@dataclass(frozen=True, eq=False)
class AttentionRecord:
    """One call of one tap: all target positions at once, or a single one where the decoder goes step by step; of a
    search, all steps of one hypothesis."""

    kind: str  # who looks at whom: "cross" is the target at the source, "self" a text at itself, "causal" at its past
    name: str  # which tap of the model
    call: int  # which call of the model's forward
    step: int  # the first target position of these weights in that call: the step of decoding
    weights: Tensor  # (B, T, S) or (B, H, T, S), float32, on the CPU
    max_difference: float  # between what the layer really returned and weights @ value
    layer: int = 0
    heads: tuple[int, ...] | None = None  # the numbers of the H heads; None: the attention has none
    read: tuple[Read, ...] = ()  # by row, where it is known
    sentence: int | None = None  # of a search: which sentence of it

    def queries(self, row: int = 0) -> Tokens:
        """The tokens that look, T of them less the padding: each named by the word it writes, where it writes one."""
        known = self.read[row].sides(self.kind)[0] if self.read else None
        last = self.step + self.weights.size(-2)
        return places(last).part(self.step) if known is None else known.part(self.step, last)

    def keys(self, row: int = 0) -> Tokens:
        """The tokens that are looked at."""
        known = self.read[row].sides(self.kind)[1] if self.read else None
        return places(self.weights.size(-1)) if known is None else known.part(0, self.weights.size(-1))

    def attention(self, row: int = 0, head: int | None = None, words: bool = True, score: float | None = None) -> Any:
        """One row of the batch as a picture (`Attention`), without its padding: one head, or the mean of all that were
        recorded; pieces merged into words, or each by itself."""
        if not -len(self.weights) <= row < len(self.weights):
            raise BadInput(f"row {row}: the batch has {len(self.weights)} rows, counted from 0")
        queries, keys = self.queries(row), self.keys(row)
        weights = self._of_head(self.weights[row], head)[: len(queries), : len(keys)]
        picture = Attention(keys.tokens, queries.tokens, weights.numpy(), score, self.kind, self._title(head))
        if not words:
            return picture
        return picture.merge(keys.words, queries.words, keys.text.split(), queries.text.split())

    def _of_head(self, weights: Tensor, head: int | None) -> Tensor:
        if self.heads is None:
            if head is not None:
                raise BadInput(f"head {head}: {self.name} has no heads. Leave it out")
            return weights
        if head is None:
            return weights.mean(dim=0)
        if head not in self.heads:
            raise BadInput(f"head {head}: of {self.name} heads {', '.join(map(str, self.heads))} were recorded")
        return weights[self.heads.index(head)]

    def _title(self, head: int | None) -> str:
        if self.heads is None:
            return ""
        return f"{self.name}, " + (f"mean of {len(self.heads)} heads" if head is None else f"head {head}")

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.weights.shape))
        return f"AttentionRecord({self.name}, {shape}, step {self.step}, max|Δ| {self.max_difference:.1e})"

    def _repr_html_(self) -> str:
        """In a notebook: the first row's picture."""
        return str(self.attention()._repr_html_())


@dataclass(frozen=True)
class Look:
    """What one call of a tap saw: the weights of the heads that were asked for, and how far they explain the output."""

    weights: Tensor  # (B, T, S) or (B, H, T, S), float32, on the CPU
    differences: list[float]  # max|Δ| of each row


@torch.no_grad()
def look(tap: Tap, given: dict[str, Any], output: Tensor, heads: Sequence[int] | None) -> Look:
    """α = softmax(score + bias) again, from the very queries and keys that the layer had, for these heads alone."""
    chosen = None if heads is None or tap.heads is None else list(heads)
    query, key, value, output = (_only(chosen, part) for part in (given["query"], given["key"], given["value"], output))
    mask, bias = (None if part is None else _only(chosen, part) for part in (given["mask"], given.get("bias")))
    weights = attention_weights(query, key, mask, given["scorer"], bias, given.get("causal", False))
    difference = (torch.matmul(weights, value) - output).abs().float().flatten(1)
    each = difference.amax(dim=1).tolist() if difference.size(1) else [0.0] * len(difference)
    return Look(weights.detach().to("cpu", torch.float32, copy=True), each)


def _only(heads: list[int] | None, part: Tensor) -> Tensor:
    """These heads of (B, H, …); what is the same for all heads stays."""
    return part if heads is None or part.dim() < 4 or part.size(1) == 1 else part[:, heads]
