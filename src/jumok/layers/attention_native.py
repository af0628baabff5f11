"""Attention of short sentences on a CPU while a model learns: attention.c.

PyTorch's fused kernel works in tiles of hundreds of words, and sentences have some twenty; its gradient in bfloat16 is
slower than plain products. Here the numbers are those of `attention()` to rounding, and heads need not be brought
together before, nor apart afterwards.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.layers.c_library import c_library

SOURCE = Path(__file__).with_name("attention.c")
LONGEST = 128  # queries or keys: the weights are kept
WIDEST = 128  # numbers of a head
TOGETHER = 16  # numbers in the widest register
LEAST = 2**18  # multiplications: below it little is gained, and nobody has to wait for a compiler
NUMBER, POINTER = ctypes.c_longlong, ctypes.c_void_p


class Rows(ctypes.Structure):
    _fields_ = (("at", POINTER), ("batch", NUMBER), ("head", NUMBER), ("row", NUMBER))


class Attention(ctypes.Structure):
    """As in attention.c."""

    _fields_ = (
        *((name, NUMBER) for name in ("low", "batch", "heads", "queries", "keys", "width", "causal")),
        ("scale", ctypes.c_double), ("mask", POINTER),
        *((name, Rows) for name in ("query", "key", "value", "out", "d_query", "d_key", "d_value")),
        ("weights", POINTER),
    )  # fmt: skip


@lru_cache
def library() -> ctypes.CDLL | None:
    """None where there is no compiler, or it does not manage."""
    loaded = c_library(SOURCE)
    if loaded is not None:
        loaded.jumok_attention_room.restype = NUMBER
        loaded.jumok_attention_room.argtypes = [ctypes.POINTER(Attention)]
        loaded.jumok_attention.restype = None
        loaded.jumok_attention.argtypes = [ctypes.POINTER(Attention), NUMBER, NUMBER, POINTER]
    return loaded


def suits(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Whether it can be computed here: someone learns from it, it has heads, and sentences are short."""
    if query.dim() != 4 or query.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    learns = torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value))
    if not learns or (mask is not None and (mask.dim() != 2 or mask.dtype != torch.bool)):
        return False
    numbers = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else query.dtype
    known = value.dtype == numbers and numbers in (torch.float32, torch.bfloat16)
    width, short = query.size(-1), max(query.size(-2), key.size(-2)) <= LONGEST
    fits = short and width <= WIDEST and width % TOGETHER == 0 and value.size(-1) == width
    return known and fits and query.numel() * key.size(-2) >= LEAST and library() is not None


def native_attention(
    query_BHTD: Tensor, key_BHSD: Tensor, value_BHSD: Tensor, mask_BS: Tensor | None, scale: float, causal: bool
) -> Tensor:
    """(B, H, T, D), the heads of a word side by side in memory."""
    # under autocast rotary positions leave queries and keys in float32
    numbers = value_BHSD.dtype
    return _NativeAttention.apply(  # type: ignore[no-untyped-call]
        query_BHTD.to(numbers), key_BHSD.to(numbers), value_BHSD, mask_BS, scale, causal
    )


class _NativeAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, causal: bool
    ) -> Tensor:
        query, key, value = (_in_rows(x) for x in (query, key, value))
        mask = None if mask is None else mask.contiguous()
        padded = -(-key.size(2) // TOGETHER) * TOGETHER
        weights, out = torch.empty(*query.shape[:3], padded), _empty_like(query)
        _compute({"query": query, "key": key, "value": value, "out": out}, mask, weights, scale, causal)
        ctx.save_for_backward(query, key, value, mask, weights)
        ctx.scale, ctx.causal = scale, causal
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, mask, weights = ctx.saved_tensors
        given = {"query": query, "key": key, "value": value}
        made = {f"d_{name}": _empty_like(x) for name, x in given.items()}
        rows = {**given, **made, "out": _in_rows(gradients[0])}
        _compute(rows, mask, weights, ctx.scale, ctx.causal, back=True)
        return *made.values(), None, None, None


def _in_rows(x_BHTD: Tensor) -> Tensor:
    """The numbers of a head of a word lie together."""
    return x_BHTD if x_BHTD.stride(-1) == 1 else x_BHTD.contiguous()


def _empty_like(x_BHTD: Tensor) -> Tensor:
    batch, heads, words, width = x_BHTD.shape
    return x_BHTD.new_empty(batch, words, heads, width).transpose(1, 2)


def _compute(
    rows: dict[str, Tensor], mask: Tensor | None, weights: Tensor, scale: float, causal: bool, back: bool = False
) -> None:
    found = library()
    assert found is not None
    query, key = rows["query"], rows["key"]
    batch, heads, queries, width = query.shape
    what = Attention(
        query.dtype == torch.bfloat16, batch, heads, queries, key.size(2), width, causal, scale,
        None if mask is None else mask.data_ptr(), weights=weights.data_ptr(),
        **{name: Rows(x.data_ptr(), *x.stride()[:3]) for name, x in rows.items()},
    )  # fmt: skip
    parts = torch.get_num_threads()
    room = torch.empty(parts, found.jumok_attention_room(ctypes.byref(what)))
    found.jumok_attention(ctypes.byref(what), back, parts, room.data_ptr())
