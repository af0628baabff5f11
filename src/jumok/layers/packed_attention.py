"""Attention of packed sentences, by the kernel that suits.

On a GPU it is the kernel of layers/spans_triton.py, made for many short sentences; for long ones flash attention
(`varlen_attn`), which has no dropout. Everywhere else each sentence gets a row of its own again, padded, as in a batch
that was never packed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.layers.spans import Spans, end_to_end, mask_of, side_by_side, spread

LONG = 1024  # tokens in the mean sentence: from here on the 128 × 128 tiles of flash attention are no waste
WIDEST = 128  # numbers of a head that the kernel can take
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # Triton's own way to run kernels without a GPU
triton = find_spec("triton")
HAS_TRITON = triton is not None and triton.origin is not None  # and not just a folder of that name

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
        from jumok.layers.flash import flash_attention

        return flash_attention(query_NHD, key_MGD, value_MGD, spans, scale)
    if suits_kernel(query_NHD):
        from jumok.layers.spans_triton import span_attention

        if dropout and seed is None:
            seed = torch.randint(2**31 - 1, (1,), device=query_NHD.device)
        return span_attention(query_NHD, key_MGD, value_MGD, spans, scale, dropout, seed)

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
        side_by_side(spread(x_MGD, query_NHD.size(1)), spans.keys) for x_MGD in (key_MGD, value_MGD)
    )
    mask_BS = None if spans.causal else mask_of(spans.keys)
    return end_to_end(attend(query_BHTD, key_BHSD, value_BHSD, mask_BS), spans.queries)


def suits_flash(query: Tensor, spans: Spans, dropout: float) -> bool:
    """Whether sentences are long, and flash attention can do what is asked for."""
    halves = query.is_cuda and query.dtype in (torch.bfloat16, torch.float16)
    if not halves or dropout or torch.are_deterministic_algorithms_enabled():  # its gradient is not, the kernel's is
        return False
    queries, keys = spans.queries, spans.keys
    return queries.tokens >= LONG * len(queries) or keys.tokens >= LONG * len(keys)


def suits_kernel(query: Tensor) -> bool:
    known = query.dtype in (torch.bfloat16, torch.float16, torch.float32)
    return HAS_TRITON and (query.is_cuda or INTERPRETED) and known and query.size(-1) <= WIDEST
