# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""A head of a short row of a block of tokens and one more (layers/short_triton.py), as a class token is beside a grid
of patches. The block's are products of matrices; of the one they are sums over rows and columns, which a tile of 16
tokens would be too much for."""

from __future__ import annotations

import triton
import triton.language as tl

from jumok.layers.short_tiles import exponents, rows, write_rows, write_vector


@triton.jit
def _vector(pointer, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr):
    """(WIDTH_2,): a row of one head, in float32."""
    columns = tl.arange(0, WIDTH_2)
    return tl.load(pointer + columns, mask=columns < WIDTH, other=0.0).to(tl.float32)


@triton.jit
def _along(block, vector):
    """(block,): the product of every row with a vector."""
    return tl.sum(block.to(tl.float32) * vector[None, :], 1)


@triton.jit
def _across(block, weights):
    """(WIDTH_2,): the sum of all rows, each with its weight."""
    return tl.sum(block.to(tl.float32) * weights[:, None], 0)


@triton.jit
def forward_and_one(
    q, k, v, o, levels, factor, stride, out_stride,
    FIRST: tl.constexpr, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    a = tl.arange(0, FIRST)
    query = rows(q, a, FIRST, stride, WIDTH, WIDTH_2)
    key = rows(k, a, FIRST, stride, WIDTH, WIDTH_2)
    value = rows(v, a, FIRST, stride, WIDTH, WIDTH_2)
    query_1 = _vector(q + FIRST * stride, WIDTH, WIDTH_2)
    key_1 = _vector(k + FIRST * stride, WIDTH, WIDTH_2)
    value_1 = _vector(v + FIRST * stride, WIDTH, WIDTH_2)
    # what the one sees
    scores_1 = _along(key, query_1) * factor
    itself = tl.sum(query_1 * key_1, 0) * factor
    highest_1 = tl.maximum(tl.max(scores_1, 0), itself)
    p_1, p_itself = tl.exp2(scores_1 - highest_1), tl.exp2(itself - highest_1)
    weight_1 = tl.sum(p_1, 0) + p_itself
    seen_1 = (_across(value, p_1) + p_itself * value_1) / weight_1
    write_vector(o + FIRST * out_stride, seen_1, WIDTH, WIDTH_2)
    tl.store(levels + FIRST, highest_1 + tl.log2(weight_1))
    # what the block sees
    one = _along(query, key_1) * factor
    scores = exponents(query, key, factor, PRECISION)
    highest = tl.maximum(tl.max(scores, 1), one)
    p, p_one = tl.exp2(scores - highest[:, None]), tl.exp2(one - highest)
    weight = tl.sum(p, 1) + p_one
    seen = tl.dot(p.to(value.dtype), value, input_precision=PRECISION) + p_one[:, None] * value_1[None, :]
    write_rows(o, seen / weight[:, None], a, FIRST, out_stride, WIDTH, WIDTH_2)
    tl.store(levels + a, highest + tl.log2(weight))


@triton.jit
def backward_and_one(
    q, k, v, do, levels, dq, dk, dv, scale, factor, stride, out_stride,
    FIRST: tl.constexpr, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Writes dq, dk and dv; their sums over all tokens."""
    a = tl.arange(0, FIRST)
    query = rows(q, a, FIRST, stride, WIDTH, WIDTH_2)
    key = rows(k, a, FIRST, stride, WIDTH, WIDTH_2)
    value = rows(v, a, FIRST, stride, WIDTH, WIDTH_2)
    up = rows(do, a, FIRST, out_stride, WIDTH, WIDTH_2)
    level = tl.load(levels + a)
    query_1 = _vector(q + FIRST * stride, WIDTH, WIDTH_2)
    key_1 = _vector(k + FIRST * stride, WIDTH, WIDTH_2)
    value_1 = _vector(v + FIRST * stride, WIDTH, WIDTH_2)
    up_1 = _vector(do + FIRST * out_stride, WIDTH, WIDTH_2)
    level_1 = tl.load(levels + FIRST)
    # the one as a query: of the block's keys and of its own
    p_1 = tl.exp2(_along(key, query_1) * factor - level_1)
    dp_1 = _along(value, up_1)
    p_itself = tl.exp2(tl.sum(query_1 * key_1, 0) * factor - level_1)
    dp_itself = tl.sum(up_1 * value_1, 0)
    delta_1 = tl.sum(p_1 * dp_1, 0) + p_itself * dp_itself
    ds_1, ds_itself = p_1 * (dp_1 - delta_1), p_itself * (dp_itself - delta_1)
    dq_1 = (_across(key, ds_1) + ds_itself * key_1) * scale
    write_vector(dq + FIRST * stride, dq_1, WIDTH, WIDTH_2)
    # the one as a key of the block's queries
    p_one = tl.exp2(_along(query, key_1) * factor - level)
    dp_one = _along(up, value_1)
    dv_1 = _across(up, p_one) + p_itself * up_1
    write_vector(dv + FIRST * stride, dv_1, WIDTH, WIDTH_2)
    # the block
    p = tl.exp2(exponents(query, key, factor, PRECISION) - level[:, None])
    total_v = tl.dot(tl.trans(p.to(up.dtype)), up, input_precision=PRECISION) + p_1[:, None] * up_1[None, :]
    write_rows(dv, total_v, a, FIRST, stride, WIDTH, WIDTH_2)
    sum_v = tl.sum(total_v, 0) + dv_1
    dp = tl.dot(up, tl.trans(value), input_precision=PRECISION)
    delta = tl.sum(p * dp, 1) + p_one * dp_one
    ds = (p * (dp - delta[:, None])).to(up.dtype)
    ds_one = p_one * (dp_one - delta)
    total_q = tl.dot(ds, key, input_precision=PRECISION) + ds_one[:, None] * key_1[None, :]
    write_rows(dq, total_q * scale, a, FIRST, stride, WIDTH, WIDTH_2)
    sum_q = tl.sum(total_q, 0) * scale + dq_1
    total_k = tl.dot(tl.trans(ds), query, input_precision=PRECISION) + ds_1[:, None] * query_1[None, :]
    write_rows(dk, total_k * scale, a, FIRST, stride, WIDTH, WIDTH_2)
    dk_1 = (_across(query, ds_one) + ds_itself * query_1) * scale
    write_vector(dk + FIRST * stride, dk_1, WIDTH, WIDTH_2)
    return sum_q, tl.sum(total_k, 0) * scale + dk_1, sum_v
