# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""Attention over spans (layers/spans.py) in Triton: forward, and the gradient without atomic sums, so that equal inputs
give equal bits.

    s_ij = scale · q_i · k_j      p_ij = exp(s_ij − L_i) for low_i ≤ j < high_i      o_i = Σ_j z_ij p_ij v_j
    δ_i = do_i · o_i              ds_ij = p_ij (z_ij do_i · v_j − δ_i)
    dq_i = scale Σ_j ds_ij k_j    dk_j = scale Σ_i ds_ij q_i                         dv_j = Σ_i z_ij p_ij do_i

L_i is the logarithm of the sum of the exponentials, z_ij the dropout mask: 0 or 1 / (1 − dropout). A tile of queries
goes over the keys from the first one's `low` to the last one's `high` (Dao 2023, but only over what it sees); a tile of
keys over the queries from `first` to `last`. Exponentials are powers of two, as the hardware has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from jumok.layers.spans import Spans

LOG2E = tl.constexpr(1.4426950408889634)


@dataclass(frozen=True)
class Tiles:
    """How much a program takes at a time: `own` rows are its own, over `others` it goes in a loop."""

    own: int
    others: int
    warps: int = 4
    stages: int = 2


def tiles_of(query: Tensor) -> tuple[Tiles, Tiles, Tiles]:
    """For the forward pass, for dq, and for dk and dv: the fastest ones on an H200, for sentences as
    in WMT (benchmarks/attention_gpu.py --tiles); larger ones leave its registers."""
    narrow = query.size(-1) <= 64
    if query.element_size() == 4:
        small = Tiles(32, 16) if narrow else Tiles(32, 16, warps=8)
        return small, small, small
    if narrow:
        return (Tiles(64, 32, stages=3),) * 3
    return Tiles(64, 32), Tiles(64, 32), Tiles(32, 32)


def span_attention(
    query_NHD: Tensor,
    key_MGD: Tensor,
    value_MGD: Tensor,
    spans: Spans,
    scale: float,
    dropout: float = 0.0,
    seed: Tensor | None = None,
) -> Tensor:
    assert seed is not None or not dropout
    intervals = spans.low, spans.high, spans.first, spans.last
    return _forward_op(query_NHD, key_MGD, value_MGD, *intervals, seed, scale, dropout)[0]


# ------------------------------------------------------------ what PyTorch sees


@torch.library.custom_op("jumok::span_attention", mutates_args=())
def _forward_op(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    low: Tensor,
    high: Tensor,
    first: Tensor,
    last: Tensor,
    seed: Tensor | None,
    scale: float,
    dropout: float,
) -> tuple[Tensor, Tensor]:
    """The output, and for the gradient L / log 2 of each head and query."""
    return forward(query, key, value, low, high, seed, scale, dropout, tiles_of(query)[0])


@torch.library.custom_op("jumok::span_attention_gradient", mutates_args=())
def _backward_op(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    level: Tensor,
    low: Tensor,
    high: Tensor,
    first: Tensor,
    last: Tensor,
    seed: Tensor | None,
    scale: float,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor]:
    _, *tiles = tiles_of(query)
    return backward(gradient, query, key, value, out, level, low, high, first, last, seed, scale, dropout, *tiles)


@_forward_op.register_fake
def _(query, key, value, low, high, first, last, seed, scale, dropout):
    return query.new_empty(query.shape), query.new_empty(query.size(1), query.size(0), dtype=torch.float32)


@_backward_op.register_fake
def _(gradient, query, key, value, *rest):
    return tuple(x.new_empty(x.shape) for x in (query, key, value))


def _keep(ctx, inputs, output) -> None:
    query, key, value, low, high, first, last, seed, ctx.scale, ctx.dropout = inputs
    ctx.save_for_backward(query, key, value, *output, low, high, first, last, seed)


def _gradient(ctx, gradient: Tensor, _: Tensor | None):
    query, key, value, out, level, low, high, first, last, seed = ctx.saved_tensors
    gradients = _backward_op(
        gradient, query, key, value, out, level, low, high, first, last, seed, ctx.scale, ctx.dropout
    )
    return (*gradients, *[None] * 7)


_forward_op.register_autograd(_gradient, setup_context=_keep)


# ------------------------------------------------------------ launching


def forward(query, key, value, low, high, seed, scale, dropout, tiles: Tiles) -> tuple[Tensor, Tensor]:
    query, key, value = _rowwise(query, key, value)
    tokens, heads, _ = query.shape
    out, level = query.new_empty(query.shape), query.new_empty(heads, tokens, dtype=torch.float32)
    _forward[(triton.cdiv(tokens, tiles.own), heads)](
        query, key, value, low, high, low if seed is None else seed, out, level, scale, dropout, tokens, key.size(0),
        *_strides(query, key, value), TILE_M=tiles.own, TILE_N=tiles.others,
        **_constants(query, key, dropout, tiles),
    )  # fmt: skip
    return out, level


def backward(
    gradient, query, key, value, out, level, low, high, first, last, seed, scale, dropout,
    for_query: Tiles, for_key: Tiles,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    query, key, value = _rowwise(query, key, value)
    gradient, seed = gradient.contiguous(), low if seed is None else seed
    (tokens, heads, _), (keys, groups, _) = query.shape, key.shape
    dq, dk, dv = (x.new_empty(x.shape) for x in (query, key, value))
    delta = torch.empty_like(level)
    _gradient_of_queries[(triton.cdiv(tokens, for_query.own), heads)](
        gradient, query, key, value, out, level, delta, low, high, seed, dq, scale, dropout, tokens, keys,
        *_strides(query, key, value), TILE_M=for_query.own, TILE_N=for_query.others,
        **_constants(query, key, dropout, for_query),
    )  # fmt: skip
    _gradient_of_keys[(triton.cdiv(keys, for_key.own), groups)](  # after it: it reads δ
        gradient, query, key, value, level, delta, low, high, first, last, seed, dk, dv, scale, dropout, tokens, keys,
        *_strides(query, key, value), TILE_M=for_key.others, TILE_N=for_key.own,
        **_constants(query, key, dropout, for_key),
    )  # fmt: skip
    return dq, dk, dv


def _rowwise(*tensors: Tensor) -> list[Tensor]:
    """A head's numbers must lie side by side; tokens and heads may lie anywhere (parts of one projection, say)."""
    return [tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in tensors]


def _strides(*tensors: Tensor) -> list[int]:
    return [stride for tensor in tensors for stride in tensor.stride()[:2]]


def _constants(query: Tensor, key: Tensor, dropout: float, tiles: Tiles) -> dict[str, object]:
    heads, width = query.shape[1:]
    tf32 = query.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32
    return {
        "HEADS": heads,
        "GROUP": heads // key.size(1),
        "DROPOUT": dropout > 0,
        "WIDTH": width,
        "WIDTH_2": max(16, triton.next_power_of_2(width)),
        "PRECISION": "tf32" if tf32 else "ieee",
        "num_warps": tiles.warps,
        "num_stages": tiles.stages,
    }


# ------------------------------------------------------------ the kernels


@triton.jit
def _rows(pointer, r, tokens, stride, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr):
    """(tile, WIDTH_2): the rows `r` of one head, zeros where there are none."""
    d = tl.arange(0, WIDTH_2)
    inside = (r < tokens)[:, None]
    if WIDTH != WIDTH_2:
        inside = inside & (d < WIDTH)[None, :]
    return tl.load(pointer + r[:, None].to(tl.int64) * stride + d[None, :], mask=inside, other=0.0)


@triton.jit
def _write_rows(pointer, values, r, tokens, stride, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr):
    d = tl.arange(0, WIDTH_2)
    inside = (r < tokens)[:, None] & (d < WIDTH)[None, :]
    place = pointer + r[:, None].to(tl.int64) * stride + d[None, :]
    tl.store(place, values.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def _mixed(x):
    """Every bit of a 32-bit number reaches every other (Wellons 2018, "lowbias32", the least biased with two
    multiplications). Philox, for each score of three kernels, took longer than the attention itself."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _kept(seed, head, i, j, dropout):
    """z_ij for i and j that broadcast to a tile: 0 or 1 / (1 − dropout), a pure function of (seed, head, i, j)."""
    least = (dropout * 4294967296.0).to(tl.uint32)
    of_head = _mixed(seed.to(tl.uint32) + _mixed(head.to(tl.uint32) + 0x9E3779B9))
    of_row = _mixed(i.to(tl.uint32) ^ of_head)
    random = _mixed(of_row + j.to(tl.uint32) * 0x9E3779B1)
    return tl.where(random >= least, 1.0 / (1.0 - dropout), 0.0)


@triton.jit
def _forward(
    q, k, v, low, high, seed, out, level, scale, dropout, tokens, keys,
    q_token, q_head, k_token, k_head, v_token, v_head,
    HEADS: tl.constexpr, GROUP: tl.constexpr, DROPOUT: tl.constexpr, TILE_M: tl.constexpr,
    TILE_N: tl.constexpr, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    start_m, head = tl.program_id(0) * TILE_M, tl.program_id(1)
    group = head // GROUP
    m, n = start_m + tl.arange(0, TILE_M), tl.arange(0, TILE_N)
    inside = m < tokens
    low_m, high_m = tl.load(low + m, mask=inside, other=0), tl.load(high + m, mask=inside, other=0)
    begin, stop = tl.load(low + start_m), tl.load(high + tl.minimum(start_m + TILE_M, tokens) - 1)
    query = _rows(q + head * q_head, m, tokens, q_token, WIDTH, WIDTH_2)
    if DROPOUT:
        chosen = tl.load(seed)
    highest = tl.full((TILE_M,), -1e30, tl.float32)  # finite: a row may see nothing in a tile, or at all
    weight = tl.zeros((TILE_M,), tl.float32)
    seen = tl.zeros((TILE_M, WIDTH_2), tl.float32)
    for start_n in range(begin, stop, TILE_N):
        j = start_n + n
        key = _rows(k + group * k_head, j, keys, k_token, WIDTH, WIDTH_2)
        scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * (scale * LOG2E)
        open_ = (low_m[:, None] <= j[None, :]) & (j[None, :] < high_m[:, None])
        scores = tl.where(open_, scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        shrink = tl.exp2(highest - higher)
        p = tl.exp2(scores - higher[:, None])
        weight = weight * shrink + tl.sum(p, 1)
        if DROPOUT:
            p *= _kept(chosen, head, m[:, None], j[None, :], dropout)
        value = _rows(v + group * v_head, j, keys, v_token, WIDTH, WIDTH_2)
        seen = seen * shrink[:, None]
        seen += tl.dot(p.to(value.dtype), value, input_precision=PRECISION)
        highest = higher
    weight = tl.where(weight == 0.0, 1.0, weight)
    tl.store(level + head * tokens + m, highest + tl.log2(weight), mask=inside)
    _write_rows(out + head * WIDTH, seen / weight[:, None], m, tokens, HEADS * WIDTH, WIDTH, WIDTH_2)


@triton.jit
def _gradient_of_queries(
    gradient, q, k, v, out, level, delta, low, high, seed, dq, scale, dropout, tokens, keys,
    q_token, q_head, k_token, k_head, v_token, v_head,
    HEADS: tl.constexpr, GROUP: tl.constexpr, DROPOUT: tl.constexpr, TILE_M: tl.constexpr,
    TILE_N: tl.constexpr, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dq, and on the way δ."""
    start_m, head = tl.program_id(0) * TILE_M, tl.program_id(1)
    group = head // GROUP
    m, n = start_m + tl.arange(0, TILE_M), tl.arange(0, TILE_N)
    inside = m < tokens
    low_m, high_m = tl.load(low + m, mask=inside, other=0), tl.load(high + m, mask=inside, other=0)
    begin, stop = tl.load(low + start_m), tl.load(high + tl.minimum(start_m + TILE_M, tokens) - 1)
    query = _rows(q + head * q_head, m, tokens, q_token, WIDTH, WIDTH_2)
    up = _rows(gradient + head * WIDTH, m, tokens, HEADS * WIDTH, WIDTH, WIDTH_2)
    found = _rows(out + head * WIDTH, m, tokens, HEADS * WIDTH, WIDTH, WIDTH_2)
    level_m = tl.load(level + head * tokens + m, mask=inside, other=0.0)
    delta_m = tl.sum(up.to(tl.float32) * found.to(tl.float32), 1)
    tl.store(delta + head * tokens + m, delta_m, mask=inside)
    if DROPOUT:
        chosen = tl.load(seed)
    total = tl.zeros((TILE_M, WIDTH_2), tl.float32)
    for start_n in range(begin, stop, TILE_N):
        j = start_n + n
        key = _rows(k + group * k_head, j, keys, k_token, WIDTH, WIDTH_2)
        value = _rows(v + group * v_head, j, keys, v_token, WIDTH, WIDTH_2)
        scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * (scale * LOG2E)
        open_ = (low_m[:, None] <= j[None, :]) & (j[None, :] < high_m[:, None])
        p = tl.exp2(tl.where(open_, scores, float("-inf")) - level_m[:, None])
        dp = tl.dot(up, tl.trans(value), input_precision=PRECISION)
        if DROPOUT:
            dp *= _kept(chosen, head, m[:, None], j[None, :], dropout)
        ds = p * (dp - delta_m[:, None])
        total += tl.dot(ds.to(key.dtype), key, input_precision=PRECISION)
    _write_rows(dq + head * WIDTH, total * scale, m, tokens, HEADS * WIDTH, WIDTH, WIDTH_2)


@triton.jit
def _gradient_of_keys(
    gradient, q, k, v, level, delta, low, high, first, last, seed, dk, dv, scale, dropout, tokens, keys,
    q_token, q_head, k_token, k_head, v_token, v_head,
    HEADS: tl.constexpr, GROUP: tl.constexpr, DROPOUT: tl.constexpr, TILE_M: tl.constexpr,
    TILE_N: tl.constexpr, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dk and dv of a tile of keys, over all query heads that look at them. Tiles of scores are (keys, queries)."""
    start_n, group = tl.program_id(0) * TILE_N, tl.program_id(1)
    m, n = tl.arange(0, TILE_M), start_n + tl.arange(0, TILE_N)
    begin, stop = tl.load(first + start_n), tl.load(last + tl.minimum(start_n + TILE_N, keys) - 1)
    key = _rows(k + group * k_head, n, keys, k_token, WIDTH, WIDTH_2)
    value = _rows(v + group * v_head, n, keys, v_token, WIDTH, WIDTH_2)
    if DROPOUT:
        chosen = tl.load(seed)
    total_k = tl.zeros((TILE_N, WIDTH_2), tl.float32)
    total_v = tl.zeros((TILE_N, WIDTH_2), tl.float32)
    for head in range(group * GROUP, group * GROUP + GROUP):
        for start_m in range(begin, stop, TILE_M):
            i = start_m + m
            inside = i < tokens
            low_m, high_m = tl.load(low + i, mask=inside, other=0), tl.load(high + i, mask=inside, other=0)
            level_m = tl.load(level + head * tokens + i, mask=inside, other=0.0)
            delta_m = tl.load(delta + head * tokens + i, mask=inside, other=0.0)
            query = _rows(q + head * q_head, i, tokens, q_token, WIDTH, WIDTH_2)
            up = _rows(gradient + head * WIDTH, i, tokens, HEADS * WIDTH, WIDTH, WIDTH_2)
            scores = tl.dot(key, tl.trans(query), input_precision=PRECISION) * (scale * LOG2E)
            open_ = (low_m[None, :] <= n[:, None]) & (n[:, None] < high_m[None, :])
            p = tl.exp2(tl.where(open_, scores, float("-inf")) - level_m[None, :])
            dp = tl.dot(value, tl.trans(up), input_precision=PRECISION)
            kept = p
            if DROPOUT:
                z = _kept(chosen, head, i[None, :], n[:, None], dropout)
                kept, dp = p * z, dp * z
            total_v += tl.dot(kept.to(up.dtype), up, input_precision=PRECISION)
            ds = p * (dp - delta_m[None, :])
            total_k += tl.dot(ds.to(query.dtype), query, input_precision=PRECISION)
    groups: tl.constexpr = HEADS // GROUP
    _write_rows(dk + group * WIDTH, total_k * scale, n, keys, groups * WIDTH, WIDTH, WIDTH_2)
    _write_rows(dv + group * WIDTH, total_v, n, keys, groups * WIDTH, WIDTH, WIDTH_2)
