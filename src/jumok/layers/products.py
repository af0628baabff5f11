"""Matrix products of float32 numbers on a CPU while a model learns.

PyTorch multiplies with MKL, which keeps to narrower instructions on processors that are not Intel's. oneDNN, which
PyTorch carries too, takes the widest there are: an eighth less time for y and ∂x on an AMD EPYC. The sums are the same
but for the order in which they are added up.
"""

from __future__ import annotations

import functools
import platform
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.layers.turned_native import turned, turned_with_sums

PROCESSORS = Path("/proc/cpuinfo")
LEAST = 2**25  # multiplications: below it oneDNN's preparations take longer than its kernels save


def suits(x: Tensor) -> bool:
    """Whether products with x go to oneDNN. The same on one machine in every process: a resumed run adds up alike."""
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    if x.dtype == torch.bfloat16:
        return has_onednn() and torch.cpu._is_avx512_bf16_supported()  # which PyTorch's own products go to as well
    return x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu") and other_than_intel()


@functools.cache
def has_onednn() -> bool:
    return torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@functools.cache
def other_than_intel() -> bool:
    if not has_onednn():
        return False
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        return False
    told = PROCESSORS.read_text(errors="replace") if PROCESSORS.exists() else platform.processor()
    return bool(told) and "GenuineIntel" not in told


def packed(weight_OI: Tensor, rows: int) -> Tensor:
    """W laid out as products with so many rows read it: worth its time where there are several of them."""
    return torch.ops.mkldnn._reorder_linear_weight(weight_OI, rows)


def times(x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """x Wᵀ + b; W may be packed."""
    return torch.ops.mkldnn._linear_pointwise(x_NI, weight_OI, bias_O, "none", [], "")


def linear_map(x: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
    """y = x Wᵀ + b, as F.linear has it, by whichever library is the faster one."""
    learns = torch.is_grad_enabled() and (x.requires_grad or weight_OI.requires_grad)
    small = x.dim() < 2 or x.numel() * weight_OI.size(0) < LEAST
    if small or x.dtype != weight_OI.dtype or not learns or not suits(x):
        return F.linear(x, weight_OI, bias_O)
    return _LinearMap.apply(x, weight_OI, bias_O)  # type: ignore[no-untyped-call]


class _LinearMap(torch.autograd.Function):
    """∂x = ∂y W,   ∂W = ∂yᵀ x,   ∂b = Σ ∂y"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight_OI)
        y_NO = times(x.flatten(0, -2), weight_OI, bias_O)
        # no view for autograd, since nobody else has y_NO: the next layer may write over it
        return torch.ops.aten._unsafe_view(y_NO, [*x.shape[:-1], weight_OI.size(0)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight_OI = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        dy_NO, x_NI = gradients[0].contiguous().flatten(0, -2), x.flatten(0, -2)
        dx = times(dy_NO, weight_OI.t()).view_as(x) if needs_x else None
        # oneDNN is quicker with few rows and many columns, so the smaller side makes the rows
        if not needs_weight or dy_NO.size(1) > x_NI.size(1):
            d_weight = turned(times(turned(x_NI), dy_NO.t())) if needs_weight else None
            return dx, d_weight, dy_NO.sum(dim=0) if needs_bias else None
        dy_ON, d_bias = turned_with_sums(dy_NO) if needs_bias else (turned(dy_NO), None)
        return dx, times(dy_ON, x_NI.t()), d_bias
