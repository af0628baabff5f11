# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""The gradient of a layer norm and of the residual connection beside it (layers/norm.py) in one pass.

A program takes every so-many-th block of rows; what it finds for dg, db and Σ ds it adds up for itself and writes once,
and the sums over programs are taken in an order that stays: equal inputs give equal bits.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

PROGRAMS = 1056  # eight for each multiprocessor of an H200: enough to keep its memory busy
BLOCK = 2048  # numbers that a program has at hand at a time


@torch.library.custom_op("jumok::norm_gradient", mutates_args=())
def norm_gradient(
    dy: Tensor, onward: Tensor, z: Tensor, weight: Tensor, mean: Tensor, rate: Tensor, narrow: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """dz of y = norm(z) and of z itself, which `onward` came back to; the same in the numbers `narrow`, empty where
    that is z's own; dg, db and Σ dz."""
    width = z.size(-1)
    count, width_2, twice = z.numel() // width, triton.next_power_of_2(width), narrow != z.dtype
    rows = max(1, BLOCK // width_2)
    programs = max(1, min(PROGRAMS, -(-count // rows)))
    dz, ds = _empty(z), _narrow(z, narrow)
    sums = torch.empty(programs, 3, width, device=z.device, dtype=torch.float32)
    tensors = [each.contiguous() for each in (dy, onward, z, weight, mean, rate)]
    _kernel[(programs,)](
        *tensors, dz, ds if twice else dz, sums, count, programs * rows,
        WIDTH=width, WIDTH_2=width_2, ROWS=rows, TWICE=twice, num_warps=8 if width_2 > 1024 else 4,
    )  # fmt: skip
    d_weight, d_bias, d_left = (each.to(weight.dtype, copy=True) for each in sums.sum(0))
    return dz, ds, d_weight, d_bias, d_left


@norm_gradient.register_fake
def _(dy, onward, z, weight, mean, rate, narrow):
    return _empty(z), _narrow(z, narrow), *(weight.new_empty(weight.shape) for _ in range(3))


def _empty(z: Tensor) -> Tensor:
    return torch.empty(z.shape, device=z.device, dtype=z.dtype)


def _narrow(z: Tensor, narrow: torch.dtype) -> Tensor:
    return torch.empty(z.shape if narrow != z.dtype else (0,), device=z.device, dtype=narrow)


@triton.jit
def _kernel(
    dy, onward, z, weight, mean, rate, dz, ds, sums, count, stride,
    WIDTH: tl.constexpr, WIDTH_2: tl.constexpr, ROWS: tl.constexpr, TWICE: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    columns = tl.arange(0, WIDTH_2)
    real = columns < WIDTH
    g = tl.load(weight + columns, mask=real, other=0.0).to(tl.float32)[None, :]
    total_g = tl.zeros((ROWS, WIDTH_2), dtype=tl.float32)
    total_b = tl.zeros((ROWS, WIDTH_2), dtype=tl.float32)
    total_z = tl.zeros((ROWS, WIDTH_2), dtype=tl.float32)
    for start in range(0, count, stride):
        r = start + program * ROWS + tl.arange(0, ROWS)
        there = r < count
        inside = there[:, None] & real[None, :]
        place = r.to(tl.int64)[:, None] * WIDTH + columns[None, :]
        values = tl.load(z + place, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        by = tl.load(onward + place, mask=inside, other=0.0).to(tl.float32)
        middle = tl.load(mean + r, mask=there, other=0.0)[:, None]
        scale = tl.load(rate + r, mask=there, other=0.0)[:, None]
        normed = tl.where(inside, (values - middle) * scale, 0.0)
        a = up * g
        first = tl.sum(a, 1)[:, None] / WIDTH
        second = tl.sum(a * normed, 1)[:, None] / WIDTH
        slope = tl.where(inside, by + scale * (a - first - normed * second), 0.0)
        tl.store(dz + place, slope.to(dz.dtype.element_ty), mask=inside)
        if TWICE:
            tl.store(ds + place, slope.to(ds.dtype.element_ty), mask=inside)
        total_g += up * normed
        total_b += up
        total_z += slope
    sums += program.to(tl.int64) * (3 * WIDTH)
    tl.store(sums + columns, tl.sum(total_g, 0), mask=real)
    tl.store(sums + WIDTH + columns, tl.sum(total_b, 0), mask=real)
    tl.store(sums + 2 * WIDTH + columns, tl.sum(total_z, 0), mask=real)
