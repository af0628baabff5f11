"""Cross-entropy over a vocabulary, with label smoothing and R-Drop, storing little for the backward pass."""

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


def r_drop(logits_2NV: Tensor, target_N: Tensor, smoothing: float, strength: float) -> tuple[Tensor, Tensor, Tensor]:
    """R-Drop (Liang et al. 2021): two passes with different dropout must agree. Three sums over N words.

    The first half of `logits_2NV` is one pass over the words, the second half the other. With L₁, L₂ the smoothed
    cross-entropies of the passes:

    loss   ½ (L₁ + L₂) + α/4 · (KL(p₁‖p₂) + KL(p₂‖p₁))     half of the paper's, the size of an ordinary loss
    plain  ½ (−log p₁(y) − log p₂(y))                       to look at
    kl     ½ (KL(p₁‖p₂) + KL(p₂‖p₁))                        to look at: the loss holds α/2 of it
    """
    return _RDrop.apply(logits_2NV, target_N, smoothing, strength)  # type: ignore[no-untyped-call]


class _RDrop(torch.autograd.Function):
    """Closed form again, with d = log p₁ − log p₂ and KL₁₂ = Σ_v p₁ d:

    ∂(KL₁₂ + KL₂₁)/∂logits₁ = p₁ · (d − KL₁₂) + p₁ − p₂, and the same with the passes exchanged. Only the
    log-probabilities are kept between forward and backward.
    """

    @staticmethod
    def forward(
        ctx: Any, logits_2NV: Tensor, target_N: Tensor, smoothing: float, strength: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        kept = torch.promote_types(logits_2NV.dtype, torch.float32)
        log_p_2NV = torch.log_softmax(logits_2NV, dim=-1, dtype=kept)
        target_2N = target_N.repeat(2)
        plain = -log_p_2NV.gather(1, target_2N[:, None]).sum() / 2
        loss = (1 - smoothing) * plain
        if smoothing:
            loss = loss - smoothing / (2 * log_p_2NV.size(1)) * log_p_2NV.sum()
        first_NV, second_NV = log_p_2NV.chunk(2)
        difference_NV = first_NV - second_NV
        divergence_2N = torch.cat(
            [torch.linalg.vecdot(first_NV.exp(), difference_NV), -torch.linalg.vecdot(second_NV.exp(), difference_NV)]
        )
        kl = divergence_2N.sum() / 2
        ctx.save_for_backward(log_p_2NV, target_2N, divergence_2N)
        ctx.smoothing, ctx.strength, ctx.dtype = smoothing, strength, logits_2NV.dtype
        ctx.mark_non_differentiable(plain, kl)
        return loss + strength / 2 * kl, plain, kl

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        log_p_2NV, target_2N, divergence_2N = ctx.saved_tensors
        smoothing: float = ctx.smoothing
        pull: float = ctx.strength / 2  # α/4, with the ½ of the last line taken out
        p_2NV = log_p_2NV.exp()
        first_NV, second_NV = log_p_2NV.chunk(2)
        difference_NV = (first_NV - second_NV) * pull
        # ½ [p · (1 + α/2 (d − KL + 1)) − α/2 · p of the other pass − the smoothed target]
        gradient_2NV = torch.cat([difference_NV, difference_NV.neg()])
        gradient_2NV += 1 + pull * (1 - divergence_2N[:, None])
        gradient_2NV *= p_2NV
        gradient_2NV.sub_(p_2NV.roll(len(p_2NV) // 2, 0), alpha=pull)
        if smoothing:
            gradient_2NV -= smoothing / log_p_2NV.size(1)
        gradient_2NV[torch.arange(len(target_2N), device=target_2N.device), target_2N] -= 1 - smoothing
        gradient_2NV *= gradients[0] / 2
        return gradient_2NV.to(ctx.dtype), None, None, None
