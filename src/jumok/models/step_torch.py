"""The operations of one decoding step around the matrix products, in plain PyTorch: what they mean, and how they run
where there is no Triton. models/step_triton.py has the same functions, each as one kernel.

R sentences with K hypotheses each stand in fixed slots, N = R·K. H heads (G of keys and values) are D wide, V tokens.
Everything stays on the device and nothing depends on a number that only the device knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.layers.block import ACTIVATIONS
from jumok.layers.position import rotate


@dataclass(frozen=True)
class Norm:
    """LayerNorm, or RMSNorm where there is no bias."""

    weight: Tensor
    bias: Tensor | None
    epsilon: float


@dataclass(frozen=True)
class Past:
    """Where the hypotheses stand and where their past lies.

    A hypothesis that changes its slot leaves its keys behind: `ancestry` says in which slot of its sentence each column
    was written, so that nothing is ever copied.
    """

    cache: Tensor  # (L, 2, R, C, K, G, D)
    ancestry: Tensor  # (R, K, C) int32
    position: Tensor  # (1,) int64, the column of the new token
    relative: Tensor | None  # (H, C) added to the scores, of this step
    turns: Tensor | None  # (C, 2, D) rotary angles
    open: Tensor | None = None  # made by `prepare`


def prepare(past: Past) -> Past:
    """What all layers of this step share: a bias (R, 1 or H, K, C·K), 0 where a hypothesis wrote, else -inf."""
    _, _, rows, capacity, beam, _, _ = past.cache.shape
    slots_K = torch.arange(beam, device=past.cache.device)
    columns_C = torch.arange(capacity, device=past.cache.device)
    own_RKCK = (past.ancestry[..., None] == slots_K) & (columns_C[:, None] < past.position)
    own_RKCK |= (slots_K[:, None, None] == slots_K) & (columns_C[:, None] == past.position)
    bias = torch.zeros(rows, 1, beam, capacity, beam, dtype=past.cache.dtype, device=past.cache.device)
    if past.relative is not None:
        bias = bias + past.relative[:, None, :, None].to(bias.dtype)
    bias = bias.masked_fill(~own_RKCK[:, None], float("-inf")).flatten(3)
    return Past(past.cache, past.ancestry, past.position, past.relative, past.turns, bias)


def self_attention(qkv_NX: Tensor, bias_X: Tensor, past: Past, layer: int, heads: int) -> Tensor:
    """Write this step's keys and values into the cache; (N, H·D) what each hypothesis sees of its own past."""
    _, _, rows, _, beam, groups, head_width = past.cache.shape
    parts = (qkv_NX + bias_X).view(rows, beam, -1, head_width)
    query, key, value = torch.split_with_sizes(parts, [heads, groups, groups], dim=2)
    if past.turns is not None:
        turns = past.turns.index_select(0, past.position)
        query, key = rotate(query, turns), rotate(key, turns)
    keys, values = past.cache[layer]
    keys.index_copy_(1, past.position, key[:, None])
    values.index_copy_(1, past.position, value[:, None])
    assert past.open is not None
    return _attend(query, keys.flatten(1, 2), values.flatten(1, 2), past.open)


def cross_attention(
    query_NX: Tensor, bias_X: Tensor, memory: Tensor, lengths_R: Tensor, layer: int, heads: int
) -> Tensor:
    """(N, H·D) what each hypothesis sees of its sentence's memory (R, S, L, 2, G, D), which its beam shares."""
    rows, width, _, _, _, head_width = memory.shape
    query_RKHD = (query_NX + bias_X).view(rows, -1, heads, head_width)
    open_RS = torch.arange(width, device=memory.device) < lengths_R[:, None]
    return _attend(query_RKHD, memory[:, :, layer, 0], memory[:, :, layer, 1], open_RS[:, None, None])


def _attend(query_RKHD: Tensor, key_RSGD: Tensor, value_RSGD: Tensor, mask: Tensor) -> Tensor:
    key, value = key_RSGD.transpose(1, 2), value_RSGD.transpose(1, 2)
    share = query_RKHD.size(2) // key.size(1)
    if share > 1:
        key, value = key.repeat_interleave(share, dim=1), value.repeat_interleave(share, dim=1)
    seen_RHKD = F.scaled_dot_product_attention(query_RKHD.transpose(1, 2), key, value, attn_mask=mask)
    return seen_RHKD.transpose(1, 2).flatten(2).flatten(0, 1)


def normalise(x_NW: Tensor, norm: Norm) -> Tensor:
    if norm.bias is None:
        return F.rms_norm(x_NW, norm.weight.shape, norm.weight, norm.epsilon)
    return F.layer_norm(x_NW, norm.weight.shape, norm.weight, norm.bias, norm.epsilon)


def add_norm(x_NW: Tensor, y_NW: Tensor, bias_W: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
    """x + y + bias, and the norm of it."""
    total_NW = x_NW + (y_NW + bias_W)
    return total_NW, normalise(total_NW, norm)


def activate(inner_NF: Tensor, bias_F: Tensor, activation: str) -> Tensor:
    """f(inner + bias); swiglu has the gate behind the inner part."""
    biased = inner_NF + bias_F
    if activation != "swiglu":
        return ACTIVATIONS[activation](biased)
    inner, gate = biased.chunk(2, dim=-1)
    return F.silu(inner) * gate
