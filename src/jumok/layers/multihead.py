"""Multi-head attention (Vaswani et al. 2017, 3.2).

    head_h = attention(x W_h^Q, m W_h^K, m W_h^V),   score = q · k / √d_k        out = [head_1; …; head_H] W^O

Grouped queries (Ainslie et al. 2023): G < H heads of keys and values, each shared by H / G query heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from jumok.layers.attention import ScaledDot, attention_weights, slow_when_fused
from jumok.layers.linear import linear, map_of
from jumok.layers.packed_attention import packed_attention, padded
from jumok.layers.position import rotate
from jumok.layers.products import linear_map
from jumok.layers.short_attention import short_attention
from jumok.layers.short_attention import suits as suits_short
from jumok.layers.spans import Spans
from jumok.layers.tap import Tap


class KeyValue(NamedTuple):
    """What can be looked at: projected once, looked at by any number of queries."""

    key: Tensor  # (B, S, G, D)
    value: Tensor  # (B, S, G, D)


@dataclass(frozen=True)
class Look:
    """Who may look where, and how positions come in. The same for all layers of a stack."""

    mask: Tensor | None = None  # (B, S) or (B, T, S), True where looking is allowed
    causal: bool = False
    bias: Tensor | None = None  # (1 or B, H, T, S), added to the scores
    turns: Tensor | None = None  # rotary angles of the queries, and of the keys that come with them
    spans: Spans | None = None  # of sentences end to end in one row, instead of mask; a bias is for them side by side
    coverage: list[Tensor] | None = None  # asked for: each layer appends its weights (B, T, S), the mean over heads


@dataclass(frozen=True)
class Past:
    """A layer's keys and values so far, in a buffer of fixed size: positions below `filled` are in use.

    `rows` is None where all rows stand at the same place; else each row's new keys go to its own positions.
    """

    key: Tensor  # (B, C, G, D)
    value: Tensor
    filled: int
    rows: Tensor | None = None  # (B,) position of the first new key in each row

    def extended(self, new: KeyValue) -> KeyValue:
        """Write the new keys and values into the buffer; all that is there now. In place: nobody else has it."""
        for buffer, fresh in ((self.key, new.key), (self.value, new.value)):
            if self.rows is None:
                buffer[:, self.filled : self.filled + fresh.size(1)] = fresh
            else:
                rows_B = torch.arange(len(self.rows), device=self.rows.device)
                columns_BT = self.rows[:, None] + torch.arange(fresh.size(1), device=self.rows.device)
                buffer[rows_B[:, None], columns_BT] = fresh
        end = self.filled + new.key.size(1)
        return KeyValue(self.key[:, :end], self.value[:, :end])


class MultiHeadAttention(nn.Module):
    def __init__(self, width: int, heads: int, groups: int, dropout: float, kind: str, name: str) -> None:
        super().__init__()
        self.heads, self.groups, self.head_width, self.dropout = heads, groups, width // heads, dropout
        self.query = linear(width, width)
        self.key = linear(width, groups * self.head_width)
        self.value = linear(width, groups * self.head_width)
        self.output = linear(width, width)
        self.scorer = ScaledDot(self.head_width, self.head_width, self.head_width, 0)
        self.tap = Tap(kind, name, heads)

    def project(self, m_BSD: Tensor, turns: Tensor | None = None) -> KeyValue:
        """Keys and values of what will be looked at."""
        key = self.key(m_BSD).unflatten(-1, (self.groups, self.head_width))
        value = self.value(m_BSD).unflatten(-1, (self.groups, self.head_width))
        return KeyValue(key if turns is None else rotate(key, turns), value)

    def forward(
        self,
        x_BTD: Tensor,
        look: Look,
        memory: KeyValue | None = None,
        past: Past | None = None,
        leaves_bias: bool = False,
    ) -> Tensor:
        """x looks at `memory`; without one at itself, and at its past where it has one. `leaves_bias`: the gradient
        of W^O's bias is for another to find."""
        if memory is None and past is None and self._short(x_BTD, look):
            return map_of(self.output, self._short_rows(x_BTD), leaves_bias)
        if memory is None:
            query, memory = self._own(x_BTD, look.turns)
            if past is not None:
                memory = past.extended(memory)
        else:
            query = self.query(x_BTD).unflatten(-1, (self.heads, self.head_width))
        if look.spans is not None:
            seen_NHD = self._packed(query.squeeze(0), memory, look, look.spans)
            return map_of(self.output, seen_NHD.flatten(1)[None], leaves_bias)
        query_BHTD, key_BHSD, value_BHSD = query.transpose(1, 2), self._spread(memory.key), self._spread(memory.value)
        if look.coverage is not None:
            weights = attention_weights(query_BHTD, key_BHSD, look.mask, self.scorer, look.bias, look.causal)
            look.coverage.append(weights.mean(dim=1))
        dropout = self.dropout if self.training else 0.0
        seen_BHTD = self.tap(query_BHTD, key_BHSD, value_BHSD, look.mask, self.scorer, look.bias, look.causal, dropout)
        return map_of(self.output, seen_BHTD.transpose(1, 2).flatten(2), leaves_bias)

    @staticmethod
    def in_one(x: Tensor) -> bool:
        """Whether queries, keys and values of x come from one product while a model learns."""
        return x.is_cuda

    def _own(self, x_BTD: Tensor, turns: Tensor | None) -> tuple[Tensor, KeyValue]:
        """Queries, keys and values of the same words. On a GPU from one product: three narrow ones leave it half idle,
        and their gradients of x would have to be added up."""
        if self.training and self.in_one(x_BTD):
            widths = [one.out_features for one in (self.query, self.key, self.value)]
            parts = torch.split(self._product(x_BTD), widths, dim=-1)
            query, key, value = (part.reshape(*part.shape[:-1], -1, self.head_width) for part in parts)
            own = KeyValue(key if turns is None else rotate(key, turns), value)
        else:
            query = self.query(x_BTD).unflatten(-1, (self.heads, self.head_width))
            own = self.project(x_BTD, turns)
        return query if turns is None else rotate(query, turns), own

    def _product(self, x_BTD: Tensor) -> Tensor:
        """Queries, keys and values side by side."""
        return linear_map(x_BTD, *self._in_one())

    def _in_one(self) -> tuple[Tensor, Tensor]:
        """W and b of the product that queries, keys and values come from."""
        maps = (self.query, self.key, self.value)
        return torch.cat([one.weight for one in maps]), torch.cat([one.bias for one in maps])

    def _short_rows(self, x_BTD: Tensor) -> Tensor:
        """What short rows see, (B, T, D). The kernel adds up the gradient of the product's bias with the rest."""
        weight, bias = self._in_one()
        qkv_BT3HD = linear_map(x_BTD, weight, bias.detach()).view(*x_BTD.shape[:2], 3, self.heads, self.head_width)
        assert self.scorer.inner_scale is not None
        return short_attention(qkv_BT3HD, self.scorer.inner_scale, bias.view(3, self.heads, -1)).flatten(2)

    def _short(self, x_BTD: Tensor, look: Look) -> bool:
        """Whether all there is to it is short rows that see themselves: one kernel takes the product whole."""
        asked = look.causal or any(x is not None for x in (look.mask, look.bias, look.turns, look.spans, look.coverage))
        learns = self.training and self.in_one(x_BTD) and not self.dropout
        plain = learns and not asked and self.groups == self.heads and not self.tap.watched
        return plain and suits_short(x_BTD, self.head_width)

    def _packed(self, query_NHD: Tensor, memory: KeyValue, look: Look, spans: Spans) -> Tensor:
        dropout, scale = self.dropout if self.training else 0.0, self.scorer.inner_scale
        packed = query_NHD, memory.key.squeeze(0), memory.value.squeeze(0), spans  # a view: [0] has a gradient to fill
        if look.bias is None and scale is not None and not self.tap.watched and not slow_when_fused(query_NHD):
            return packed_attention(*packed, scale, dropout)

        def attend(query_BHTD: Tensor, key_BHSD: Tensor, value_BHSD: Tensor, mask_BS: Tensor | None) -> Tensor:
            return self.tap(query_BHTD, key_BHSD, value_BHSD, mask_BS, self.scorer, look.bias, spans.causal, dropout)

        return padded(*packed, attend)

    def _spread(self, x_BSGD: Tensor) -> Tensor:
        """(B, H, S, D): each group's keys for all of its query heads."""
        x_BGSD = x_BSGD.transpose(1, 2)
        return x_BGSD if self.groups == self.heads else x_BGSD.repeat_interleave(self.heads // self.groups, dim=1)
