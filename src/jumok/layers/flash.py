"""Flash attention (Dao 2023) over sequences that lie end to end, as PyTorch has it: for long sentences on a GPU.

A file of its own, because importing PyTorch's takes a second.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.varlen import varlen_attn

from jumok.data.packing import PackedSide
from jumok.layers.spans import Spans, spread

OPTIONS = frozenset(inspect.signature(varlen_attn).parameters)  # they differ between versions of PyTorch


def flash_attention(query_NHD: Tensor, key_MGD: Tensor, value_MGD: Tensor, spans: Spans, scale: float) -> Tensor:
    heads, width = query_NHD.shape[1:]
    options: dict[str, Any] = {}
    if spans.causal:
        options |= {"window_size": (-1, 0)} if "window_size" in OPTIONS else {"is_causal": True}
    if "scale" in OPTIONS:
        options["scale"] = scale
    else:  # it divides by √D by itself
        query_NHD = query_NHD * (scale * width**0.5)
    if "enable_gqa" in OPTIONS:
        options["enable_gqa"] = key_MGD.size(1) != heads
    else:
        key_MGD, value_MGD = spread(key_MGD, heads), spread(value_MGD, heads)
    padded = any(side.tokens < side.table.size(1) for side in (spans.queries, spans.keys))
    queries, most_queries = _cumulative(spans.queries, padded)
    keys, most_keys = _cumulative(spans.keys, padded)
    seen = varlen_attn(query_NHD, key_MGD, value_MGD, queries, keys, most_queries, most_keys, **options)
    assert isinstance(seen, Tensor)
    return seen


def _cumulative(side: PackedSide, padded: bool) -> tuple[Tensor, int]:
    """Where sequences begin and the last one ends, and the longest. What lies between sentences counts as one too
    where either side is padded: the kernel leaves uninitialised what belongs to no sequence, in the gradients as well,
    and both sides must have as many."""
    size = side.table.size(1)
    bounds = side.starts
    if padded:
        bounds = torch.stack([side.starts, side.starts + side.lengths], dim=1).flatten()
    return F.pad(bounds, (0, 1), value=size).int(), max(side.longest, size - side.tokens)
