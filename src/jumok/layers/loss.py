"""Cross-entropy over a vocabulary with label smoothing, without storing what the backward pass can recompute."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def smoothed_cross_entropy(logits_NV: Tensor, target_N: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """Two sums over N words: the smoothed loss (to learn from) and the plain one (to look at).

    plain     −log p(y)
    smoothed  (1 − ε) · −log p(y)  +  ε · mean_v −log p(v)        (Szegedy et al. 2016)
    """
    return _SmoothedCrossEntropy.apply(logits_NV, target_N, smoothing)  # type: ignore[no-untyped-call]


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The gradient has a closed form, ∂/∂logits = p − ((1 − ε) · onehot + ε / V): one pass, one buffer."""

    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, target_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        log_p_NV = torch.log_softmax(logits_NV, dim=-1, dtype=torch.float32)
        plain = -log_p_NV.gather(1, target_N[:, None]).sum()
        smoothed = plain
        if smoothing:
            smoothed = (1 - smoothing) * plain - smoothing / logits_NV.size(1) * log_p_NV.sum()
        ctx.save_for_backward(log_p_NV, target_N)
        ctx.smoothing, ctx.dtype = smoothing, logits_NV.dtype
        ctx.mark_non_differentiable(plain)
        return smoothed.clone() if smoothed is plain else smoothed, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        log_p_NV, target_N = ctx.saved_tensors
        smoothing: float = ctx.smoothing
        gradient_NV = log_p_NV.exp()
        if smoothing:
            gradient_NV -= smoothing / log_p_NV.size(1)
        gradient_NV[torch.arange(len(target_N), device=target_N.device), target_N] -= 1 - smoothing
        gradient_NV *= gradients[0]
        return gradient_NV.to(ctx.dtype), None, None
