"""GELU (Hendrycks and Gimpel 2016): x Φ(x), where Φ is the normal distribution's.

In a program that is compiled for a GPU the error function is what its kernel waits for: it takes longer than reading
and writing the numbers. There Φ comes from one exponential, and the gradient Φ(x) + x φ(x) from the same one:

    Φ(−|x|) = ½ t (a₁ + a₂ t + … + a₅ t⁴) e^(−x²/2),   t = 1 / (1 + p |x| / √2)

(Abramowitz and Stegun 1964, 7.1.26; off by at most 7.5e-8, less than float32 rounds numbers near 1.)

What GELU is taken of is a product with a bias, x = W u + b. The bias's gradient is Σ dx over all rows, for which dx
would be read again: `gelu_of_map` adds it up while it writes dx (layers/gelu_triton.py).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.layers.packed_attention import HAS_TRITON, INTERPRETED
from jumok.layers.products import linear_map

ON_A_GPU = True  # of the sums; the exponential is on
P = 0.3275911
A = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def gelu(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling() and x.is_cuda:
        found: Tensor = OneExponential.apply(x)  # type: ignore[no-untyped-call]
        return found
    return F.gelu(x)


def gelu_of_map(u: Tensor, layer: nn.Linear) -> Tensor:
    """GELU(W u + b)."""
    if not sums_suit(u, layer):
        return gelu(layer(u))
    # the product has its bias, and the bias its gradient from elsewhere
    found: Tensor = WithSums.apply(linear_map(u, layer.weight, layer.bias.detach()), layer.bias)  # type: ignore[no-untyped-call]
    return found


def sums_suit(u: Tensor, layer: nn.Linear) -> bool:
    learns = torch.is_grad_enabled() and layer.bias is not None and layer.bias.requires_grad
    return ON_A_GPU and HAS_TRITON and learns and torch.compiler.is_compiling() and u.is_cuda


def normal(x: Tensor) -> tuple[Tensor, Tensor]:
    """Φ(x) and √(2π) φ(x), in float32."""
    x = x.float()
    bell = torch.exp(-0.5 * x * x)
    t = 1 / (1 + P * math.sqrt(0.5) * x.abs())
    tail = 0.5 * bell * t * (A[0] + t * (A[1] + t * (A[2] + t * (A[3] + t * A[4]))))
    return torch.where(x > 0, 1 - tail, tail), bell


def value(x: Tensor) -> Tensor:
    """x Φ(x)"""
    y = x.float() * normal(x)[0]
    # PyTorch 2.11's compiler loses the gradient of an output that `to` gave back as it was
    return y if y.dtype == x.dtype else y.to(x.dtype)


def gradient(dy: Tensor, x: Tensor) -> Tensor:
    """dy (Φ(x) + x φ(x))"""
    share, bell = normal(x)
    return (dy.float() * (share + x.float() * bell * (1 / math.sqrt(2 * math.pi)))).to(x.dtype)


def gradient_with_sums(dy: Tensor, x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """dx, and Σ dx over all rows; by the kernel where it can."""
    if HAS_TRITON and (x.is_cuda or INTERPRETED):
        from jumok.layers.gelu_triton import gelu_gradient

        return gelu_gradient(dy, x.contiguous(), dtype)
    dx = gradient(dy, x)
    return dx, dx.float().sum(tuple(range(x.dim() - 1))).to(dtype)


class OneExponential(torch.autograd.Function):
    """x Φ(x) with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return value(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient(gradients[0], x)


class WithSums(torch.autograd.Function):
    """x Φ(x), where x has been given its bias: with the gradient of both."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.dtype = bias.dtype
        return value(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor]:
        (x,) = ctx.saved_tensors
        return gradient_with_sums(gradients[0], x, ctx.dtype)
