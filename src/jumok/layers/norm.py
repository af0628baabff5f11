"""A residual connection and the layer norm that comes next, with one gradient for both.

    z = x + s,   ẑ = (z − μ) r,   y = ẑ ⊙ g + b,   r = 1 / √(σ² + ε)                                   (Ba et al. 2016)
    dz = d + r (a − mean(a) − ẑ mean(a ⊙ ẑ)),   a = dy ⊙ g;      dg = Σ dy ⊙ ẑ,   db = Σ dy;      dx = ds = dz

s is what the sublayer before gave, d what comes back along the residual connection. In a program that is compiled for a
GPU, PyTorch's compiler goes over the rows three times, for dz, for dg and db, and for ds, which is narrower; where
there are many rows of few numbers, as in a model that looks at small images, these are what training waits for. There
one kernel (layers/norm_triton.py) does it all; the way forward stays the compiler's, which makes one pass of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from jumok.layers.linear import for_products
from jumok.layers.packed_attention import HAS_TRITON, INTERPRETED

# a model has to have learned with it on a card: see benchmarks/cifar.py
ON_A_GPU = False
WIDEST = 4096  # numbers of a row


class Sum(NamedTuple):
    """x + s, which the next norm adds up."""

    x: Tensor
    s: Tensor


def total(x: Tensor | Sum) -> Tensor:
    return x.x + x.s if isinstance(x, Sum) else x


def norm_beside(norm: nn.Module, x: Tensor | Sum) -> tuple[Tensor, Tensor]:
    """z, which goes on as it is, and norm(z) in the numbers that maps multiply in."""
    first, added = x if isinstance(x, Sum) else (x, None)
    if suits(norm, first):
        assert isinstance(norm, nn.LayerNorm)
        dtype = for_products(first[:0]).dtype
        z, y = NormBeside.apply(first, added, norm.weight, norm.bias, norm.eps, dtype)  # type: ignore[no-untyped-call]
        return z, y
    z = total(x)
    return z, for_products(norm(z))


def suits(norm: nn.Module, x: Tensor) -> bool:
    if not (ON_A_GPU and torch.compiler.is_compiling() and x.is_cuda and HAS_TRITON and torch.is_grad_enabled()):
        return False
    return isinstance(norm, nn.LayerNorm) and norm.bias is not None and x.size(-1) <= WIDEST


class NormBeside(torch.autograd.Function):
    """z and y of x and s, or of x alone, with the gradient of both."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, s: Tensor | None, weight: Tensor, bias: Tensor, epsilon: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        z = x.clone() if s is None else x + s  # no copy is made: the compiler writes this one instead of x
        y, mean, rate = torch.native_layer_norm(z, weight.shape, weight, bias, epsilon)
        ctx.save_for_backward(z, weight, mean, rate)
        ctx.narrow = None if s is None else s.dtype
        # PyTorch 2.11's compiler loses the gradient of an output that `to` gave back as it was
        return z, y if y.dtype == dtype else y.to(dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        onward, dy = gradients
        z, weight, mean, rate = ctx.saved_tensors
        dx, ds, d_weight, d_bias = gradient(dy, onward, z, weight, mean, rate, ctx.narrow)
        return dx, ds, d_weight, d_bias, None, None


def gradient(
    dy: Tensor, onward: Tensor, z: Tensor, weight: Tensor, mean: Tensor, rate: Tensor, narrow: torch.dtype | None
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """dx, ds in the numbers of s where there is one, dg and db; by the kernel where it can."""
    if HAS_TRITON and (z.is_cuda or INTERPRETED):
        from jumok.layers.norm_triton import norm_gradient

        another = narrow is not None and narrow != z.dtype
        dz, ds, d_weight, d_bias = norm_gradient(dy, onward, z, weight, mean, rate, narrow if another else z.dtype)
        return dz, ds if another else dz if narrow is not None else None, d_weight, d_bias
    dz, d_weight, d_bias = written_out(dy, onward, z, weight, mean, rate)
    return dz, None if narrow is None else dz.to(narrow), d_weight, d_bias


def written_out(
    dy: Tensor, onward: Tensor, z: Tensor, weight: Tensor, mean: Tensor, rate: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """dz, dg and db: the equations above."""
    rows = tuple(range(z.dim() - 1))
    normed = (z.float() - mean) * rate
    a = dy.float() * weight
    dz = rate * (a - a.mean(-1, keepdim=True) - normed * (a * normed).mean(-1, keepdim=True))
    return (onward.float() + dz).to(z.dtype), (dy.float() * normed).sum(rows), dy.float().sum(rows)
