"""R-Drop (Liang et al. 2021): a batch goes through the model twice, and the two predictions are drawn together."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jumok.layers.loss import IGNORED, logit_gradient_, wide, word_losses


def r_drop(logits_2NV: Tensor, target_N: Tensor, smoothing: float, strength: float) -> tuple[Tensor, Tensor, Tensor]:
    """Two passes with different dropout must agree. Three sums over N words.

    The first half of `logits_2NV` is one pass over the words, the second half the other. With L₁, L₂ the smoothed
    cross-entropies of the passes:

    loss   ½ (L₁ + L₂) + α/4 · (KL(p₁‖p₂) + KL(p₂‖p₁))     half of the paper's, the size of an ordinary loss
    plain  ½ (−log p₁(y) − log p₂(y))                       to look at
    kl     ½ (KL(p₁‖p₂) + KL(p₂‖p₁))                        to look at: the loss holds α/2 of it
    """
    return _RDrop.apply(logits_2NV, target_N, smoothing, strength)  # type: ignore[no-untyped-call]


class _RDrop(torch.autograd.Function):
    """Only the log-probabilities are kept between forward and backward."""

    @staticmethod
    def forward(
        ctx: Any, logits_2NV: Tensor, target_N: Tensor, smoothing: float, strength: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        log_p_2NV = torch.log_softmax(logits_2NV, dim=-1, dtype=wide(logits_2NV.dtype))
        losses_3N, divergence_2N = agreement_losses(log_p_2NV, target_N, smoothing, strength)
        ctx.save_for_backward(log_p_2NV, target_N, divergence_2N)
        ctx.options, ctx.dtype = (smoothing, strength), logits_2NV.dtype
        loss, plain, kl = (losses_N.sum() for losses_N in losses_3N)
        ctx.mark_non_differentiable(plain, kl)
        return loss, plain, kl

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        gradient_2NV = agreement_gradient(*ctx.saved_tensors, *ctx.options)
        gradient_2NV *= gradients[0]
        return gradient_2NV.to(ctx.dtype), None, None, None


def agreement_losses(
    log_p_2NV: Tensor, target_N: Tensor, smoothing: float, strength: float
) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """The three losses of each word; and KL(p₁‖p₂) and KL(p₂‖p₁) of each, which the gradient needs."""
    smoothed_2N, plain_2N = word_losses(log_p_2NV, target_N.repeat(2), smoothing)
    first_NV, second_NV = log_p_2NV.chunk(2)
    difference_NV = first_NV - second_NV
    divergence_2N = torch.cat(
        [torch.linalg.vecdot(first_NV.exp(), difference_NV), -torch.linalg.vecdot(second_NV.exp(), difference_NV)]
    )
    smoothed_N, plain_N, kl_N = (
        torch.stack([smoothed_2N, plain_2N, divergence_2N]).view(3, 2, len(target_N)).mean(dim=1)
    )
    kl_N = kl_N * (target_N != IGNORED)
    return (smoothed_N + strength / 2 * kl_N, plain_N, kl_N), divergence_2N


def agreement_gradient(
    log_p_2NV: Tensor, target_N: Tensor, divergence_2N: Tensor, smoothing: float, strength: float
) -> Tensor:
    """∂ loss / ∂ logits. Closed form again, with d = log p₁ − log p₂ and KL₁₂ = Σ_v p₁ d:

    ∂(KL₁₂ + KL₂₁)/∂logits₁ = p₁ · (d − KL₁₂) + p₁ − p₂, and the same with the passes exchanged.
    """
    pull = strength / 2  # α/4, with the ½ of the last line taken out
    p_2NV = log_p_2NV.exp()
    first_NV, second_NV = log_p_2NV.chunk(2)
    difference_NV = (first_NV - second_NV) * pull
    # ½ [p · (1 + α/2 (d − KL + 1)) − α/2 · p of the other pass − the smoothed target]
    gradient_2NV = torch.cat([difference_NV, difference_NV.neg()])
    gradient_2NV += 1 + pull * (1 - divergence_2N[:, None])
    gradient_2NV *= p_2NV
    gradient_2NV.sub_(p_2NV.roll(len(target_N), 0), alpha=pull)
    return logit_gradient_(gradient_2NV, target_N.repeat(2), smoothing).div_(2)
