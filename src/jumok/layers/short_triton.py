# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""Attention of short rows of one length (layers/short_attention.py) in Triton: a program has all that a head of a row
needs, so each number is read once and written once, and nothing is added up across programs.

    s_ij = scale · q_i · k_j      p_ij = exp(s_ij − L_i)        o_i = Σ_j p_ij v_j
    dp_ij = do_i · v_j            δ_i = Σ_j p_ij dp_ij          ds_ij = p_ij (dp_ij − δ_i)
    dq_i = scale Σ_j ds_ij k_j    dk_j = scale Σ_i ds_ij q_i    dv_j = Σ_i p_ij do_i

L_i is the logarithm of the sum of the exponentials. A row of scores is there as a whole: δ needs no o. Queries, keys
and values come as one tensor, the product they are computed in, and so do their gradients. A tile must be a power of
two, so a row is cut in two blocks, a and b, 65 tokens in 64 and 16: a single tile of 128 × 128 would be waste to three
quarters. The tensor cores of Hopper multiply 64 rows at a time, so what belongs to block b stands in columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2E = tl.constexpr(1.4426950408889634)


@dataclass(frozen=True)
class Tiles:
    """How a program works: so many heads of a row one after another, in so many warps; while it computes one, `stages`
    − 1 others are on their way to it. With fewer registers for each thread more programs fit in at a time."""

    heads: int = 1
    warps: int = 4
    stages: int = 1
    registers: int | None = None


def blocks_of(tokens: int) -> tuple[int, int]:
    """The two tiles that a row is cut in; the second is 0 where one will do."""
    for size in (16, 32, 64):
        if tokens <= size:
            return size, 0
    return 64, max(16, triton.next_power_of_2(tokens - 64))


def tiles_of(qkv: Tensor) -> tuple[Tiles, Tiles]:
    """For the forward and for the backward pass (benchmarks/attention_short_gpu.py --tiles)."""
    if qkv.size(-1) > 64 or qkv.element_size() == 4:
        return Tiles(warps=8), Tiles(warps=8)
    # of 64 and 16: its own choice leaves room for two programs at a time, this one for three
    return Tiles(), Tiles(registers=168 if blocks_of(qkv.size(1)) == (64, 16) else None)


def short_attention(qkv_BT3HD: Tensor, scale: float) -> Tensor:
    return _forward_op(qkv_BT3HD, scale)[0]


# ------------------------------------------------------------ what PyTorch sees


@torch.library.custom_op("jumok::short_attention", mutates_args=())
def _forward_op(qkv: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """The output (B, T, H, D), and for the gradient L / log 2 of each head and query (B, H, T)."""
    return forward(qkv, scale, tiles_of(qkv)[0])


@torch.library.custom_op("jumok::short_attention_gradient", mutates_args=())
def _backward_op(gradient: Tensor, qkv: Tensor, level: Tensor, scale: float) -> Tensor:
    return backward(gradient, qkv, level, scale, tiles_of(qkv)[1])


@_forward_op.register_fake
def _(qkv, scale):
    batch, tokens, _, heads, width = qkv.shape
    return qkv.new_empty(batch, tokens, heads, width), qkv.new_empty(batch, heads, tokens, dtype=torch.float32)


@_backward_op.register_fake
def _(gradient, qkv, level, scale):
    return qkv.new_empty(qkv.shape)


def _keep(ctx, inputs, output) -> None:
    qkv, ctx.scale = inputs
    ctx.save_for_backward(qkv, output[1])


def _gradient(ctx, gradient: Tensor, _: Tensor | None):
    return _backward_op(gradient, *ctx.saved_tensors, ctx.scale), None


_forward_op.register_autograd(_gradient, setup_context=_keep)


# ------------------------------------------------------------ launching


def forward(qkv: Tensor, scale: float, tiles: Tiles) -> tuple[Tensor, Tensor]:
    qkv = qkv.contiguous()
    batch, tokens, _, heads, width = qkv.shape
    out, level = qkv.new_empty(batch, tokens, heads, width), qkv.new_empty(batch, heads, tokens, dtype=torch.float32)
    _forward[(batch * heads // tiles.heads,)](qkv, out, level, scale, tokens, **_constants(qkv, tiles))
    return out, level


def backward(gradient: Tensor, qkv: Tensor, level: Tensor, scale: float, tiles: Tiles) -> Tensor:
    gradient, qkv = gradient.contiguous(), qkv.contiguous()
    batch, tokens, _, heads, _ = qkv.shape
    d_qkv = torch.empty_like(qkv)
    grid = (batch * heads // tiles.heads,)
    _backward[grid](gradient, qkv, level, d_qkv, scale, tokens, **_constants(qkv, tiles))
    return d_qkv


def _constants(qkv: Tensor, tiles: Tiles) -> dict[str, object]:
    _, tokens, _, heads, width = qkv.shape
    first, second = blocks_of(tokens)
    tf32 = qkv.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32
    return {
        "HEADS": heads,
        "TOGETHER": tiles.heads,
        "FIRST": first,
        "SECOND": second,
        "FULL": tokens == first + second,
        "WIDTH": width,
        "WIDTH_2": max(16, triton.next_power_of_2(width)),
        "PRECISION": "tf32" if tf32 else "tf32x3",  # exact to float32, nearly; "ieee" takes minutes to compile
        "num_warps": tiles.warps,
        "num_stages": tiles.stages,
        "maxnreg": tiles.registers,
    }


# ------------------------------------------------------------ the kernels


@triton.jit
def _place(r, stride, WIDTH_2: tl.constexpr):
    return r[:, None] * stride + tl.arange(0, WIDTH_2)[None, :]


@triton.jit
def _inside(r, tokens, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr):
    inside = (r < tokens)[:, None]
    if WIDTH != WIDTH_2:
        inside = inside & (tl.arange(0, WIDTH_2) < WIDTH)[None, :]
    return inside


@triton.jit
def _rows(pointer, r, tokens, stride, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr):
    """(block, WIDTH_2): the rows `r` of one head, zeros where there are none."""
    return tl.load(pointer + _place(r, stride, WIDTH_2), mask=_inside(r, tokens, WIDTH, WIDTH_2), other=0.0)


@triton.jit
def _write_rows(pointer, values, r, tokens, stride, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr):
    inside = _inside(r, tokens, WIDTH, WIDTH_2)
    tl.store(pointer + _place(r, stride, WIDTH_2), values.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def _exponents(x, y, factor, PRECISION: tl.constexpr):
    """scale · x · y / log 2: exponentials are powers of two, as the hardware has them."""
    return tl.dot(x, tl.trans(y), input_precision=PRECISION) * factor


@triton.jit
def _seen(
    query, key_a, value_a, key_b, value_b, tokens, factor,
    FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """o and L / log 2 of a block of queries, which see both blocks of keys."""
    scores_a = _exponents(query, key_a, factor, PRECISION)
    if SECOND == 0 and not FULL:
        scores_a = tl.where((tl.arange(0, FIRST) < tokens)[None, :], scores_a, float("-inf"))
    highest = tl.max(scores_a, 1)
    if SECOND:
        scores_b = _exponents(query, key_b, factor, PRECISION)
        if not FULL:
            scores_b = tl.where((FIRST + tl.arange(0, SECOND) < tokens)[None, :], scores_b, float("-inf"))
        highest = tl.maximum(highest, tl.max(scores_b, 1))
    p_a = tl.exp2(scores_a - highest[:, None])
    weight = tl.sum(p_a, 1)
    seen = tl.dot(p_a.to(value_a.dtype), value_a, input_precision=PRECISION)
    if SECOND:
        p_b = tl.exp2(scores_b - highest[:, None])
        weight += tl.sum(p_b, 1)
        seen += tl.dot(p_b.to(value_b.dtype), value_b, input_precision=PRECISION)
    return seen / weight[:, None], highest + tl.log2(weight)


@triton.jit
def _seen_turned(
    query, key_a, value_a, key_b, value_b, tokens, factor,
    FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The same of the second block, its queries as columns, o too."""
    scores_a = _exponents(key_a, query, factor, PRECISION)
    scores_b = _exponents(key_b, query, factor, PRECISION)
    if not FULL:
        scores_b = tl.where((FIRST + tl.arange(0, SECOND) < tokens)[:, None], scores_b, float("-inf"))
    highest = tl.maximum(tl.max(scores_a, 0), tl.max(scores_b, 0))
    p_a, p_b = tl.exp2(scores_a - highest[None, :]), tl.exp2(scores_b - highest[None, :])
    weight = tl.sum(p_a, 0) + tl.sum(p_b, 0)
    seen = tl.dot(tl.trans(value_a), p_a.to(value_a.dtype), input_precision=PRECISION)
    seen += tl.dot(tl.trans(value_b), p_b.to(value_b.dtype), input_precision=PRECISION)
    return seen / weight[None, :], highest + tl.log2(weight)


@triton.jit
def _forward(
    qkv, out, level, scale, tokens,
    HEADS: tl.constexpr, TOGETHER: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr,
    WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    groups: tl.constexpr = HEADS // TOGETHER
    all_: tl.constexpr = HEADS * WIDTH  # numbers of a token's queries, keys or values
    image, group = (tl.program_id(0) // groups).to(tl.int64), tl.program_id(0) % groups
    factor = scale * LOG2E
    a = tl.arange(0, FIRST)
    for number in range(TOGETHER):
        head = group * TOGETHER + number
        q = qkv + image * tokens * (3 * all_) + head * WIDTH
        k = q + all_
        v = k + all_
        o = out + image * tokens * all_ + head * WIDTH
        levels = level + (image * HEADS + head) * tokens
        query_a = _rows(q, a, tokens, 3 * all_, WIDTH, WIDTH_2)
        key_a = _rows(k, a, tokens, 3 * all_, WIDTH, WIDTH_2)
        value_a = _rows(v, a, tokens, 3 * all_, WIDTH, WIDTH_2)
        key_b, value_b = key_a, value_a
        if SECOND:
            b = FIRST + tl.arange(0, SECOND)
            query_b = _rows(q, b, tokens, 3 * all_, WIDTH, WIDTH_2)
            key_b = _rows(k, b, tokens, 3 * all_, WIDTH, WIDTH_2)
            value_b = _rows(v, b, tokens, 3 * all_, WIDTH, WIDTH_2)
        seen_a, level_a = _seen(query_a, key_a, value_a, key_b, value_b, tokens, factor, FIRST, SECOND, FULL, PRECISION)
        tl.store(levels + a, level_a, mask=a < tokens)
        _write_rows(o, seen_a, a, tokens, all_, WIDTH, WIDTH_2)
        if SECOND:
            if SECOND == FIRST:  # as many rows: no need to turn them
                seen_b, level_b = _seen(
                    query_b, key_a, value_a, key_b, value_b, tokens, factor, FIRST, SECOND, FULL, PRECISION
                )
            else:
                seen_b, level_b = _seen_turned(
                    query_b, key_a, value_a, key_b, value_b, tokens, factor, FIRST, SECOND, FULL, PRECISION
                )
                seen_b = tl.trans(seen_b)
            tl.store(levels + b, level_b, mask=b < tokens)
            _write_rows(o, seen_b, b, tokens, all_, WIDTH, WIDTH_2)


@triton.jit
def _slopes(
    query, up, level, key_a, value_a, key_b, value_b, tokens, factor,
    FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """p and ds of the first block of queries with both blocks of keys. Where there is no query, q and do are 0, so ds
    is; where there is no key, k and v are, and p must be, which could be infinite."""
    p_a = tl.exp2(_exponents(query, key_a, factor, PRECISION) - level[:, None])
    if SECOND == 0 and not FULL:
        p_a = tl.where((tl.arange(0, FIRST) < tokens)[None, :], p_a, 0.0)
    dp_a = tl.dot(up, tl.trans(value_a), input_precision=PRECISION)
    delta = tl.sum(p_a * dp_a, 1)
    p_b, dp_b = p_a, dp_a
    if SECOND:
        p_b = tl.exp2(_exponents(query, key_b, factor, PRECISION) - level[:, None])
        if not FULL:
            p_b = tl.where((FIRST + tl.arange(0, SECOND) < tokens)[None, :], p_b, 0.0)
        dp_b = tl.dot(up, tl.trans(value_b), input_precision=PRECISION)
        delta += tl.sum(p_b * dp_b, 1)
    ds_a, ds_b = p_a * (dp_a - delta[:, None]), p_b * (dp_b - delta[:, None])
    return p_a.to(up.dtype), ds_a.to(up.dtype), p_b.to(up.dtype), ds_b.to(up.dtype)


@triton.jit
def _slopes_turned(
    query, up, level, key_a, value_a, key_b, value_b, tokens, factor,
    FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The same of the second block, its queries as columns."""
    p_a = tl.exp2(_exponents(key_a, query, factor, PRECISION) - level[None, :])
    p_b = tl.exp2(_exponents(key_b, query, factor, PRECISION) - level[None, :])
    if not FULL:
        p_b = tl.where((FIRST + tl.arange(0, SECOND) < tokens)[:, None], p_b, 0.0)
    dp_a = tl.dot(value_a, tl.trans(up), input_precision=PRECISION)
    dp_b = tl.dot(value_b, tl.trans(up), input_precision=PRECISION)
    delta = tl.sum(p_a * dp_a, 0) + tl.sum(p_b * dp_b, 0)
    ds_a, ds_b = p_a * (dp_a - delta[None, :]), p_b * (dp_b - delta[None, :])
    return p_a.to(up.dtype), ds_a.to(up.dtype), p_b.to(up.dtype), ds_b.to(up.dtype)


@triton.jit
def _backward(
    gradient, qkv, level, d_qkv, scale, tokens,
    HEADS: tl.constexpr, TOGETHER: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr,
    WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    groups: tl.constexpr = HEADS // TOGETHER
    all_: tl.constexpr = HEADS * WIDTH
    image, group = (tl.program_id(0) // groups).to(tl.int64), tl.program_id(0) % groups
    factor = scale * LOG2E
    a = tl.arange(0, FIRST)
    for number in range(TOGETHER):
        head = group * TOGETHER + number
        place = image * tokens * (3 * all_) + head * WIDTH
        q, k, v = qkv + place, qkv + place + all_, qkv + place + 2 * all_
        dq, dk, dv = d_qkv + place, d_qkv + place + all_, d_qkv + place + 2 * all_
        do = gradient + image * tokens * all_ + head * WIDTH
        levels = level + (image * HEADS + head) * tokens
        query_a = _rows(q, a, tokens, 3 * all_, WIDTH, WIDTH_2)
        key_a = _rows(k, a, tokens, 3 * all_, WIDTH, WIDTH_2)
        value_a = _rows(v, a, tokens, 3 * all_, WIDTH, WIDTH_2)
        up_a = _rows(do, a, tokens, all_, WIDTH, WIDTH_2)
        level_a = tl.load(levels + a, mask=a < tokens, other=0.0)
        key_b, value_b = key_a, value_a
        if SECOND:
            b = FIRST + tl.arange(0, SECOND)
            query_b = _rows(q, b, tokens, 3 * all_, WIDTH, WIDTH_2)
            key_b = _rows(k, b, tokens, 3 * all_, WIDTH, WIDTH_2)
            value_b = _rows(v, b, tokens, 3 * all_, WIDTH, WIDTH_2)
            up_b = _rows(do, b, tokens, all_, WIDTH, WIDTH_2)
            level_b = tl.load(levels + b, mask=b < tokens, other=0.0)

        p_a, ds_a, p_b, ds_b = _slopes(
            query_a, up_a, level_a, key_a, value_a, key_b, value_b, tokens, factor, FIRST, SECOND, FULL, PRECISION
        )
        total_q = tl.dot(ds_a, key_a, input_precision=PRECISION)
        if SECOND:
            total_q += tl.dot(ds_b, key_b, input_precision=PRECISION)
        _write_rows(dq, total_q * scale, a, tokens, 3 * all_, WIDTH, WIDTH_2)
        total_k = tl.dot(tl.trans(ds_a), query_a, input_precision=PRECISION)
        total_v = tl.dot(tl.trans(p_a), up_a, input_precision=PRECISION)

        if SECOND:  # totals of the second block have tokens as columns
            last_k = tl.dot(tl.trans(query_a), ds_b, input_precision=PRECISION)
            last_v = tl.dot(tl.trans(up_a), p_b, input_precision=PRECISION)
            p_a, ds_a, p_b, ds_b = _slopes_turned(
                query_b, up_b, level_b, key_a, value_a, key_b, value_b, tokens, factor, FIRST, SECOND, FULL, PRECISION
            )
            total_k += tl.dot(ds_a, query_b, input_precision=PRECISION)
            total_v += tl.dot(p_a, up_b, input_precision=PRECISION)
            last_q = tl.dot(tl.trans(key_a), ds_a, input_precision=PRECISION)
            last_q += tl.dot(tl.trans(key_b), ds_b, input_precision=PRECISION)
            last_k += tl.dot(tl.trans(query_b), tl.trans(ds_b), input_precision=PRECISION)
            last_v += tl.dot(tl.trans(up_b), tl.trans(p_b), input_precision=PRECISION)
            _write_rows(dq, tl.trans(last_q) * scale, b, tokens, 3 * all_, WIDTH, WIDTH_2)
            _write_rows(dk, tl.trans(last_k) * scale, b, tokens, 3 * all_, WIDTH, WIDTH_2)
            _write_rows(dv, tl.trans(last_v), b, tokens, 3 * all_, WIDTH, WIDTH_2)

        _write_rows(dk, total_k * scale, a, tokens, 3 * all_, WIDTH, WIDTH_2)
        _write_rows(dv, total_v, a, tokens, 3 * all_, WIDTH, WIDTH_2)
