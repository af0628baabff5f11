"""A residual connection and the layer norm that comes next, with one gradient for both.

    z = x + s,   ẑ = (z − μ) r,   y = ẑ ⊙ g + b,   r = 1 / √(σ² + ε)                                   (Ba et al. 2016)
    dz = d + r (a − mean(a) − ẑ mean(a ⊙ ẑ)),   a = dy ⊙ g;      dg = Σ dy ⊙ ẑ,   db = Σ dy;      dx = ds = dz

s is what the sublayer before gave, d what comes back along the residual connection. In a program that is compiled for a
GPU, PyTorch's compiler goes over the rows three times, for dz, for dg and db, and for ds, which is narrower; where
there are many rows of few numbers, as in a model that looks at small images, these are what training waits for. There
one kernel (layers/norm_triton.py) does it all; the way forward stays the compiler's, which makes one pass of it.

The sublayer's last map has a bias, s = W u + c, whose gradient is Σ ds: rows that would be read once more. A sum that
`leaves` it (`Sum.bias`) has it from here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from jumok.layers.linear import for_products
from jumok.layers.packed_attention import HAS_TRITON, INTERPRETED

ON_A_GPU = True
WIDEST = 4096  # numbers of a row


class Sum(NamedTuple):
    """x + s, which the next norm adds up."""

    x: Tensor
    s: Tensor
    bias: Tensor | None = None  # c, which s has, and whose gradient it has not


def total(x: Tensor | Sum) -> Tensor:
    if not isinstance(x, Sum):
        return x
    added = x.x + x.s
    return added if x.bias is None else added + (x.bias - x.bias.detach())  # nothing but its gradient


def norm_beside(norm: nn.Module, x: Tensor | Sum) -> tuple[Tensor, Tensor]:
    """z, which goes on as it is, and norm(z) in the numbers that maps multiply in."""
    first, added, left = x if isinstance(x, Sum) else (x, None, None)
    if suits(norm, first):
        assert isinstance(norm, nn.LayerNorm)
        dtype = for_products(first[:0]).dtype
        z, y = NormBeside.apply(first, added, norm.weight, norm.bias, norm.eps, dtype, left)  # type: ignore[no-untyped-call]
        return z, y
    z = total(x)
    return z, for_products(norm(z))


def suits(norm: nn.Module, x: Tensor) -> bool:
    if not (ON_A_GPU and torch.compiler.is_compiling() and x.is_cuda and HAS_TRITON and torch.is_grad_enabled()):
        return False
    return isinstance(norm, nn.LayerNorm) and norm.bias is not None and x.size(-1) <= WIDEST


class NormBeside(torch.autograd.Function):
    """z and y of x and s, or of x alone, with the gradient of both, and of `left`, the bias that s leaves."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        s: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        epsilon: float,
        dtype: torch.dtype,
        left: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        z = x.clone() if s is None else x + s  # no copy is made: the compiler writes this one instead of x
        y, mean, rate = torch.native_layer_norm(z, weight.shape, weight, bias, epsilon)
        ctx.save_for_backward(z, weight, mean, rate)
        ctx.narrow = None if s is None else s.dtype
        ctx.left = None if left is None else left.dtype
        # PyTorch 2.11's compiler loses the gradient of an output that `to` gave back as it was
        return z, y if y.dtype == dtype else y.to(dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        onward, dy = gradients
        z, weight, mean, rate = ctx.saved_tensors
        dx, ds, d_weight, d_bias, d_left = gradient(dy, onward, z, weight, mean, rate, ctx.narrow)
        return dx, ds, d_weight, d_bias, None, None, None if ctx.left is None else d_left.to(ctx.left)


def gradient(
    dy: Tensor, onward: Tensor, z: Tensor, weight: Tensor, mean: Tensor, rate: Tensor, narrow: torch.dtype | None
) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]:
    """dx, ds in the numbers of s where there is one, dg, db and Σ ds; by the kernel where it can."""
    if HAS_TRITON and (z.is_cuda or INTERPRETED):
        from jumok.layers.norm_triton import norm_gradient

        another = narrow is not None and narrow != z.dtype
        dz, ds, *sums = norm_gradient(dy, onward, z, weight, mean, rate, narrow if another else z.dtype)
        return dz, ds if another else dz if narrow is not None else None, *sums
    dz, *sums = written_out(dy, onward, z, weight, mean, rate)
    return dz, None if narrow is None else dz.to(narrow), *sums


def written_out(
    dy: Tensor, onward: Tensor, z: Tensor, weight: Tensor, mean: Tensor, rate: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """dz, dg, db and Σ dz: the equations above."""
    rows = tuple(range(z.dim() - 1))
    normed = (z.float() - mean) * rate
    a = dy.float() * weight
    dz = onward.float() + rate * (a - a.mean(-1, keepdim=True) - normed * (a * normed).mean(-1, keepdim=True))
    return dz.to(z.dtype), (dy.float() * normed).sum(rows), dy.float().sum(rows), dz.sum(rows)
