# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""The gradient of GELU and the sums of its columns (layers/gelu.py) in one pass.

A program has some columns of every so-many-th block of rows; what it adds up it writes once, and the sums over programs
are taken in an order that stays: equal inputs give equal bits.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from jumok.layers.gelu import A, P

PROGRAMS = 1056  # eight for each multiprocessor of an H200: enough to keep its memory busy
COLUMNS, ROWS = 128, 16  # that a program has at hand at a time

SLOPE, BELL = tl.constexpr(P * math.sqrt(0.5)), tl.constexpr(1 / math.sqrt(2 * math.pi))
A1, A2, A3, A4, A5 = (tl.constexpr(a) for a in A)


@torch.library.custom_op("jumok::gelu_gradient", mutates_args=())
def gelu_gradient(dy: Tensor, x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """dx = dy (Φ(x) + x φ(x)) of rows x, and Σ dx over all of them in `dtype`."""
    width = x.size(-1)
    count, across = x.numel() // width, triton.cdiv(width, COLUMNS)
    down = max(1, min(PROGRAMS // across, triton.cdiv(count, ROWS)))
    dx, sums = torch.empty_like(x), torch.empty(down, width, device=x.device, dtype=torch.float32)
    _kernel[(across, down)](dy.contiguous(), x, dx, sums, count, down * ROWS, WIDTH=width, COLUMNS=COLUMNS, ROWS=ROWS)
    return dx, sums.sum(0).to(dtype, copy=True)


@gelu_gradient.register_fake
def _(dy, x, dtype):
    return torch.empty_like(x), x.new_empty(x.size(-1), dtype=dtype)


@triton.jit
def _kernel(dy, x, dx, sums, count, stride, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    real = columns < WIDTH
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, count, stride):
        rows = start + tl.program_id(1) * ROWS + tl.arange(0, ROWS)
        inside = (rows < count)[:, None] & real[None, :]
        place = rows.to(tl.int64)[:, None] * WIDTH + columns[None, :]
        values = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        bell = tl.exp(-0.5 * values * values)
        t = 1 / (1 + SLOPE * tl.abs(values))
        tail = 0.5 * bell * t * (A1 + t * (A2 + t * (A3 + t * (A4 + t * A5))))
        slope = tl.where(values > 0, 1 - tail, tail) + values * bell * BELL
        found = (up * slope).to(dx.dtype.element_ty)
        tl.store(dx + place, found, mask=inside)
        total += found.to(tl.float32)
    tl.store(sums + tl.program_id(1).to(tl.int64) * WIDTH + columns, tl.sum(total, 0), mask=real)
