"""GELU (Hendrycks and Gimpel 2016): x Φ(x), where Φ is the normal distribution's.

In a program that is compiled for a GPU the error function is what its kernel waits for: it takes longer than reading
and writing the numbers. There Φ comes from one exponential, and the gradient Φ(x) + x φ(x) from the same one:

    Φ(−|x|) = ½ t (a₁ + a₂ t + … + a₅ t⁴) e^(−x²/2),   t = 1 / (1 + p |x| / √2)

(Abramowitz and Stegun 1964, 7.1.26; off by at most 7.5e-8, less than float32 rounds numbers near 1.)
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

P = 0.3275911
A = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def gelu(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling() and x.is_cuda:
        found: Tensor = OneExponential.apply(x)  # type: ignore[no-untyped-call]
        return found
    return F.gelu(x)


def normal(x: Tensor) -> tuple[Tensor, Tensor]:
    """Φ(x) and √(2π) φ(x), in float32."""
    x = x.float()
    bell = torch.exp(-0.5 * x * x)
    t = 1 / (1 + P * math.sqrt(0.5) * x.abs())
    tail = 0.5 * bell * t * (A[0] + t * (A[1] + t * (A[2] + t * (A[3] + t * A[4]))))
    return torch.where(x > 0, 1 - tail, tail), bell


class OneExponential(torch.autograd.Function):
    """x Φ(x) with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        y = x.float() * normal(x)[0]
        # PyTorch 2.11's compiler loses the gradient of an output that `to` gave back as it was
        return y if y.dtype == x.dtype else y.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        (x,) = ctx.saved_tensors
        share, bell = normal(x)
        slope = share + x.float() * bell * (1 / math.sqrt(2 * math.pi))
        return (gradients[0].float() * slope).to(x.dtype)
