# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""What kernels of short rows (layers/short_triton.py) read, write and multiply: rows of one head, some at a time."""

from __future__ import annotations

import triton
import triton.language as tl


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
def rows(pointer, r, tokens, stride, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr):
    """(block, WIDTH_2): the rows `r` of one head, zeros where there are none."""
    return tl.load(pointer + _place(r, stride, WIDTH_2), mask=_inside(r, tokens, WIDTH, WIDTH_2), other=0.0)


@triton.jit
def write_rows(pointer, values, r, tokens, stride, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr):
    inside = _inside(r, tokens, WIDTH, WIDTH_2)
    tl.store(pointer + _place(r, stride, WIDTH_2), values.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def write_vector(pointer, values, WIDTH: tl.constexpr, WIDTH_2: tl.constexpr):
    columns = tl.arange(0, WIDTH_2)
    tl.store(pointer + columns, values.to(pointer.dtype.element_ty), mask=columns < WIDTH)


@triton.jit
def exponents(x, y, factor, PRECISION: tl.constexpr):
    """scale · x · y / log 2: exponentials are powers of two, as the hardware has them."""
    return tl.dot(x, tl.trans(y), input_precision=PRECISION) * factor
