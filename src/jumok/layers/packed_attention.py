"""Attention of packed sentences, by the kernel that suits.

On a GPU it is the kernel of layers/spans_triton.py, made for many short sentences; for long ones flash attention
(`varlen_attn`), which has no dropout. Everywhere else each sentence gets a row of its own again, padded, as in a batch
that was never packed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.varlen import varlen_attn

from jumok.data.packing import PackedSide
from jumok.layers.spans import Spans, end_to_end, mask_of, side_by_side

kernels: Any = None
if find_spec("triton") is not None:
    from jumok.layers import spans_triton as kernels

LONG = 512  # tokens in a sentence: beyond, the 128 × 128 tiles of flash attention are no waste
FLASH_OPTIONS = inspect.signature(varlen_attn).parameters  # they differ between versions of PyTorch

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]  # query, key and value (B, H, L, D), mask (B, S)


def packed_attention(
    query_NHD: Tensor,
    key_MGD: Tensor,
    value_MGD: Tensor,
    spans: Spans,
    scale: float,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    """a_i = Σ_j softmax_j(scale · q_i · k_j) v_j over low_i ≤ j < high_i: (N, H, D).

    Each of the G heads of keys and values serves H / G heads of queries. `seed` (one integer on the device) chooses the
    dropout mask; without one PyTorch's generator is asked. What comes out for padding is zero or nobody's business.
    """
    # under autocast rotary positions leave queries and keys in float32
    query_NHD, key_MGD = query_NHD.to(value_MGD.dtype), key_MGD.to(value_MGD.dtype)
    if suits_flash(query_NHD, spans, dropout):
        return _flash(query_NHD, key_MGD, value_MGD, spans, scale)
    if kernels is not None and kernels.runs(query_NHD):
        if dropout and seed is None:
            seed = torch.randint(2**31 - 1, (1,), device=query_NHD.device)
        return kernels.span_attention(query_NHD, key_MGD, value_MGD, spans, scale, dropout, seed)

    def attend(query_BHTD: Tensor, key_BHSD: Tensor, value_BHSD: Tensor, mask_BS: Tensor | None) -> Tensor:
        where = None if mask_BS is None else mask_BS[:, None, None]
        return F.scaled_dot_product_attention(
            query_BHTD, key_BHSD, value_BHSD, where, dropout, is_causal=spans.causal, scale=scale
        )

    return padded(query_NHD, key_MGD, value_MGD, spans, attend)


def padded(query_NHD: Tensor, key_MGD: Tensor, value_MGD: Tensor, spans: Spans, attend: Attend) -> Tensor:
    """What `attend` makes of the sentences laid side by side, packed again. The mask is None where the attention is
    causal: padding stands behind all that a real token sees."""
    query_BHTD = side_by_side(query_NHD, spans.queries)
    key_BHSD, value_BHSD = (
        side_by_side(_spread(x_MGD, query_NHD.size(1)), spans.keys) for x_MGD in (key_MGD, value_MGD)
    )
    mask_BS = None if spans.causal else mask_of(spans.keys)
    return end_to_end(attend(query_BHTD, key_BHSD, value_BHSD, mask_BS), spans.queries)


def _spread(x_MGD: Tensor, heads: int) -> Tensor:
    """(M, H, D): each group's keys for all of its query heads."""
    groups = x_MGD.size(1)
    return x_MGD if groups == heads else x_MGD.repeat_interleave(heads // groups, dim=1)


# ------------------------------------------------------------ long sentences


def suits_flash(query: Tensor, spans: Spans, dropout: float) -> bool:
    """Whether there are long sentences, and flash attention can do what is asked for."""
    halves = query.is_cuda and query.dtype in (torch.bfloat16, torch.float16)
    if not halves or dropout or torch.are_deterministic_algorithms_enabled():  # its gradient is not, the kernel's is
        return False
    return max(spans.queries.longest, spans.keys.longest) > LONG


def _flash(query_NHD: Tensor, key_MGD: Tensor, value_MGD: Tensor, spans: Spans, scale: float) -> Tensor:
    heads, width = query_NHD.shape[1:]
    options: dict[str, Any] = {}
    if spans.causal:
        options |= {"window_size": (-1, 0)} if "window_size" in FLASH_OPTIONS else {"is_causal": True}
    if "scale" in FLASH_OPTIONS:
        options["scale"] = scale
    else:  # it divides by √D by itself
        query_NHD = query_NHD * (scale * width**0.5)
    if "enable_gqa" in FLASH_OPTIONS:
        options["enable_gqa"] = key_MGD.size(1) != heads
    else:
        key_MGD, value_MGD = _spread(key_MGD, heads), _spread(value_MGD, heads)
    (queries, most_queries), (keys, most_keys) = _cumulative(spans.queries), _cumulative(spans.keys)
    seen = varlen_attn(query_NHD, key_MGD, value_MGD, queries, keys, most_queries, most_keys, **options)
    assert isinstance(seen, Tensor)
    return seen


def _cumulative(side: PackedSide) -> tuple[Tensor, int]:
    """Where sequences begin and the last one ends, and the longest. What lies between sentences counts as one too:
    the kernel leaves uninitialised what belongs to no sequence, in the gradients as well."""
    size = side.table.size(1)
    bounds = side.starts
    if side.tokens < size:
        bounds = torch.stack([side.starts, side.starts + side.lengths], dim=1).flatten()
    return F.pad(bounds, (0, 1), value=size).int(), max(side.longest, size - side.tokens)
