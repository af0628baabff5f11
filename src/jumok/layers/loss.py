"""Cross-entropy over a vocabulary with label smoothing, from logits that are all there (layers/chunked_loss.py: never
all at once)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

IGNORED = -1  # as a target: no word, it counts nothing


def smoothed_cross_entropy(logits_NV: Tensor, target_N: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """Two sums over N words: the smoothed loss (to learn from) and the plain one (to look at).

    plain     −log p(y)
    smoothed  (1 − ε) · −log p(y)  +  ε · mean_v −log p(v)        (Szegedy et al. 2016)
    """
    return _SmoothedCrossEntropy.apply(logits_NV, target_N, smoothing)  # type: ignore[no-untyped-call]


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Only the log-probabilities are kept between forward and backward: one pass, one buffer."""

    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, target_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        log_p_NV = torch.log_softmax(logits_NV, dim=-1, dtype=wide(logits_NV.dtype))
        smoothed_N, plain_N = word_losses(log_p_NV, target_N, smoothing)
        ctx.save_for_backward(log_p_NV, target_N)
        ctx.smoothing, ctx.dtype = smoothing, logits_NV.dtype
        smoothed, plain = smoothed_N.sum(), plain_N.sum()
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        log_p_NV, target_N = ctx.saved_tensors
        gradient_NV = logit_gradient_(log_p_NV.exp(), target_N, ctx.smoothing)
        gradient_NV *= gradients[0]
        return gradient_NV.to(ctx.dtype), None, None


def wide(dtype: torch.dtype) -> torch.dtype:
    """What a softmax is computed in: float32, or what is wider."""
    return torch.promote_types(dtype, torch.float32)


def word_losses(log_p_NV: Tensor, target_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The smoothed and the plain loss of each word."""
    real_N, place_N1 = _targets(target_N)
    plain_N = -log_p_NV.gather(1, place_N1)[:, 0] * real_N
    if not smoothing:
        return plain_N, plain_N
    return (1 - smoothing) * plain_N - smoothing * log_p_NV.mean(dim=1) * real_N, plain_N


def logit_gradient_(p_NV: Tensor, target_N: Tensor, smoothing: float) -> Tensor:
    """∂ smoothed / ∂ logits = p − ((1 − ε) · onehot + ε / V), written over p."""
    real_N, place_N1 = _targets(target_N)
    if smoothing:
        p_NV -= smoothing / p_NV.size(1)
    p_NV.scatter_add_(1, place_N1, torch.full_like(place_N1, smoothing - 1, dtype=p_NV.dtype))
    asks = p_NV.device.type == "cpu" and not torch.compiler.is_compiling()  # which costs less than to multiply
    if not asks or not real_N.all():
        p_NV *= real_N[:, None]
    return p_NV


def _targets(target_N: Tensor) -> tuple[Tensor, Tensor]:
    """Which words are real, and where each one stands in the vocabulary (somewhere, if it is none)."""
    real_N = target_N != IGNORED
    return real_N, (target_N * real_N)[:, None]
