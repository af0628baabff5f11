# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""A head of a short row in one or two blocks of tokens (layers/short_triton.py): products of matrices throughout."""

from __future__ import annotations

import triton
import triton.language as tl

from jumok.layers.short_tiles import exponents, rows, write_rows


@triton.jit
def _seen(
    query, key_a, value_a, key_b, value_b, tokens, factor,
    FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """o and L / log 2 of a block of queries, which see both blocks of keys."""
    scores_a = exponents(query, key_a, factor, PRECISION)
    if SECOND == 0 and not FULL:
        scores_a = tl.where((tl.arange(0, FIRST) < tokens)[None, :], scores_a, float("-inf"))
    highest = tl.max(scores_a, 1)
    if SECOND:
        scores_b = exponents(query, key_b, factor, PRECISION)
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
def forward_of_blocks(
    q, k, v, o, levels, tokens, factor, stride, out_stride,
    FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    a = tl.arange(0, FIRST)
    query_a = rows(q, a, tokens, stride, WIDTH, WIDTH_2)
    key_a = rows(k, a, tokens, stride, WIDTH, WIDTH_2)
    value_a = rows(v, a, tokens, stride, WIDTH, WIDTH_2)
    key_b, value_b = key_a, value_a
    if SECOND:
        b = FIRST + tl.arange(0, SECOND)
        query_b = rows(q, b, tokens, stride, WIDTH, WIDTH_2)
        key_b = rows(k, b, tokens, stride, WIDTH, WIDTH_2)
        value_b = rows(v, b, tokens, stride, WIDTH, WIDTH_2)
    seen_a, level_a = _seen(query_a, key_a, value_a, key_b, value_b, tokens, factor, FIRST, SECOND, FULL, PRECISION)
    tl.store(levels + a, level_a, mask=a < tokens)
    write_rows(o, seen_a, a, tokens, out_stride, WIDTH, WIDTH_2)
    if SECOND:
        seen_b, level_b = _seen(query_b, key_a, value_a, key_b, value_b, tokens, factor, FIRST, SECOND, FULL, PRECISION)
        tl.store(levels + b, level_b, mask=b < tokens)
        write_rows(o, seen_b, b, tokens, out_stride, WIDTH, WIDTH_2)


@triton.jit
def _slopes(
    query, up, level, key_a, value_a, key_b, value_b, tokens, factor,
    FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """p and ds of a block of queries with both blocks of keys. Where there is no query, q and do are 0, so ds
    is; where there is no key, k and v are, and p must be, which could be infinite."""
    p_a = tl.exp2(exponents(query, key_a, factor, PRECISION) - level[:, None])
    if SECOND == 0 and not FULL:
        p_a = tl.where((tl.arange(0, FIRST) < tokens)[None, :], p_a, 0.0)
    dp_a = tl.dot(up, tl.trans(value_a), input_precision=PRECISION)
    delta = tl.sum(p_a * dp_a, 1)
    p_b, dp_b = p_a, dp_a
    if SECOND:
        p_b = tl.exp2(exponents(query, key_b, factor, PRECISION) - level[:, None])
        if not FULL:
            p_b = tl.where((FIRST + tl.arange(0, SECOND) < tokens)[None, :], p_b, 0.0)
        dp_b = tl.dot(up, tl.trans(value_b), input_precision=PRECISION)
        delta += tl.sum(p_b * dp_b, 1)
    ds_a, ds_b = p_a * (dp_a - delta[:, None]), p_b * (dp_b - delta[:, None])
    return p_a.to(up.dtype), ds_a.to(up.dtype), p_b.to(up.dtype), ds_b.to(up.dtype)


@triton.jit
def backward_of_blocks(
    q, k, v, do, levels, dq, dk, dv, tokens, scale, factor, stride, out_stride,
    FIRST: tl.constexpr, SECOND: tl.constexpr, FULL: tl.constexpr, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Writes dq, dk and dv; their sums over all tokens. Where there is no token they are 0."""
    a = tl.arange(0, FIRST)
    query_a = rows(q, a, tokens, stride, WIDTH, WIDTH_2)
    key_a = rows(k, a, tokens, stride, WIDTH, WIDTH_2)
    value_a = rows(v, a, tokens, stride, WIDTH, WIDTH_2)
    up_a = rows(do, a, tokens, out_stride, WIDTH, WIDTH_2)
    level_a = tl.load(levels + a, mask=a < tokens, other=0.0)
    key_b, value_b = key_a, value_a
    if SECOND:
        b = FIRST + tl.arange(0, SECOND)
        query_b = rows(q, b, tokens, stride, WIDTH, WIDTH_2)
        key_b = rows(k, b, tokens, stride, WIDTH, WIDTH_2)
        value_b = rows(v, b, tokens, stride, WIDTH, WIDTH_2)
        up_b = rows(do, b, tokens, out_stride, WIDTH, WIDTH_2)
        level_b = tl.load(levels + b, mask=b < tokens, other=0.0)

    p_a, ds_a, p_b, ds_b = _slopes(
        query_a, up_a, level_a, key_a, value_a, key_b, value_b, tokens, factor, FIRST, SECOND, FULL, PRECISION
    )
    total_q = tl.dot(ds_a, key_a, input_precision=PRECISION)
    if SECOND:
        total_q += tl.dot(ds_b, key_b, input_precision=PRECISION)
    write_rows(dq, total_q * scale, a, tokens, stride, WIDTH, WIDTH_2)
    sum_q = tl.sum(total_q, 0)
    total_k = tl.dot(tl.trans(ds_a), query_a, input_precision=PRECISION)
    total_v = tl.dot(tl.trans(p_a), up_a, input_precision=PRECISION)

    if SECOND:
        last_k = tl.dot(tl.trans(ds_b), query_a, input_precision=PRECISION)
        last_v = tl.dot(tl.trans(p_b), up_a, input_precision=PRECISION)
        p_a, ds_a, p_b, ds_b = _slopes(
            query_b, up_b, level_b, key_a, value_a, key_b, value_b, tokens, factor, FIRST, SECOND, FULL, PRECISION
        )
        last_q = tl.dot(ds_a, key_a, input_precision=PRECISION)
        last_q += tl.dot(ds_b, key_b, input_precision=PRECISION)
        total_k += tl.dot(tl.trans(ds_a), query_b, input_precision=PRECISION)
        total_v += tl.dot(tl.trans(p_a), up_b, input_precision=PRECISION)
        last_k += tl.dot(tl.trans(ds_b), query_b, input_precision=PRECISION)
        last_v += tl.dot(tl.trans(p_b), up_b, input_precision=PRECISION)
        write_rows(dq, last_q * scale, b, tokens, stride, WIDTH, WIDTH_2)
        write_rows(dk, last_k * scale, b, tokens, stride, WIDTH, WIDTH_2)
        write_rows(dv, last_v, b, tokens, stride, WIDTH, WIDTH_2)

    write_rows(dk, total_k * scale, a, tokens, stride, WIDTH, WIDTH_2)
    write_rows(dv, total_v, a, tokens, stride, WIDTH, WIDTH_2)
    sum_k, sum_v = tl.sum(total_k, 0), tl.sum(total_v, 0)
    if SECOND:
        sum_q += tl.sum(last_q, 0)
        sum_k += tl.sum(last_k, 0)
        sum_v += tl.sum(last_v, 0)
    return sum_q * scale, sum_k * scale, sum_v
