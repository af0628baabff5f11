"""Cross-entropy over a vocabulary without ever holding all logits.

    logits = h Wᵀ + b        g = ∂ loss / ∂ logits        ∂ loss / ∂h = g W        ∂ loss / ∂W = gᵀ h

Logits are N words times V, often more than all else that a model keeps. Here the words go through the vocabulary a
chunk at a time: its logits, their loss, g, and at once what g is needed for. All gradients are linear in the number
that the loss is multiplied by later, so the backward pass only has to multiply them by it.

Nothing waits for the GPU, and no shape depends on what the targets are: it can be compiled and recorded as CUDA graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jumok.layers import loss_native
from jumok.layers.loss import logit_gradient_, wide, word_losses
from jumok.layers.packed_attention import HAS_TRITON
from jumok.layers.r_drop import agreement_gradient, agreement_losses
from jumok.layers.vocabulary_products import products_of

kernels: Any = None
if HAS_TRITON:
    from jumok.layers import loss_triton as kernels

# Logits that are there at once. A GPU needs large products to be fast; a CPU is faster while they stay in its cache.
GPU_LOGITS, CPU_LOGITS = 2**26, 2**22
FEWEST = 256  # words in a chunk: with fewer, adding to ∂W costs more than it saves


def vocabulary_loss(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float = 0.0,
    chunk: int = 0,
) -> tuple[Tensor, Tensor]:
    """What `smoothed_cross_entropy` makes of h Wᵀ + b, `chunk` words at a time (0: chosen by size).

    Under autocast products are in low precision; the softmax, and the sum of ∂W over chunks, are in float32.
    """
    smoothed, plain, _ = _loss(hidden_ND[None], weight_VD, bias_V, target_N, smoothing, 0.0, chunk)
    return smoothed, plain


def vocabulary_r_drop(
    hidden_2ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    strength: float,
    chunk: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """What `r_drop` makes of h Wᵀ + b, `chunk` words at a time, each of them from both passes."""
    hidden_PND = hidden_2ND.reshape(2, len(target_N), hidden_2ND.size(1))
    return _loss(hidden_PND, weight_VD, bias_V, target_N, smoothing, strength, chunk)


def _loss(
    hidden_PND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    strength: float,
    chunk: int,
) -> tuple[Tensor, Tensor, Tensor]:
    device = hidden_PND.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden_PND.dtype
    given = [tensor for tensor in (hidden_PND, weight_VD, bias_V) if tensor is not None]
    learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
    if not chunk:
        row = hidden_PND.size(0) * weight_VD.size(0)
        chunk = max(FEWEST, (CPU_LOGITS if device == "cpu" else GPU_LOGITS) // row)
    options = smoothing, strength, chunk, dtype, learns
    return _VocabularyLoss.apply(hidden_PND, weight_VD, bias_V, target_N, *options)  # type: ignore[no-untyped-call]


class _VocabularyLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        compute = _as_one_operation if torch.compiler.is_compiling() else sums_and_gradients
        loss, plain, kl, *gradients = compute(*arguments)
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(plain, kl)
        return loss, plain, kl

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        found = zip(ctx.saved_tensors, ctx.needs_input_grad, strict=False)
        return *(kept * gradients[0] if needed else None for kept, needed in found), *(None,) * 6


def sums_and_gradients(
    hidden_PND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    strength: float,
    chunk: int,
    dtype: torch.dtype,
    learns: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Loss, plain loss and divergence of P passes over N words, summed; ∂h, ∂W and ∂b if the model `learns`."""
    passes, words, _ = hidden_PND.shape
    losses_3N = hidden_PND.new_zeros(3, words, dtype=wide(dtype))
    d_hidden_PND, d_weight_VD, d_bias_V = _gradients(hidden_PND, weight_VD, bias_V, learns)
    d_bias_V = d_bias_V.to(wide(d_bias_V.dtype)).zero_()
    sums_V = None if bias_V is None or not learns else d_bias_V
    with torch.autocast(hidden_PND.device.type, enabled=False):
        low_PND = hidden_PND.to(dtype)
        products = products_of(weight_VD.to(dtype), bias_V, passes * min(chunk, words), wide(weight_VD.dtype))
        for start in range(0, words, chunk):
            here = slice(start, start + chunk)
            hidden_CD = low_PND[:, here].flatten(0, 1)
            words_here = products.logits(hidden_CD), products.bias_V, target_N[here], losses_3N[:, here], learns, sums_V
            gradient_CV = (
                _entropy(*words_here, smoothing) if passes == 1 else _agreement(*words_here, smoothing, strength)
            )
            if learns:
                gradient_CV = gradient_CV.to(dtype)
                d_hidden_PND[:, here] = products.d_hidden(gradient_CV).view_as(d_hidden_PND[:, here])
                products.add(gradient_CV, hidden_CD)
        if learns:
            d_weight_VD = products.gradient()
    loss, plain, kl = (losses_N.sum() for losses_N in losses_3N)
    return loss, plain, kl, d_hidden_PND, d_weight_VD.to(weight_VD.dtype), d_bias_V.to(weight_VD.dtype)


# The compiler need not look into it: its graph would grow with the number of chunks.
_as_one_operation = torch.library.custom_op("jumok::vocabulary_loss", sums_and_gradients, mutates_args=())


@_as_one_operation.register_fake
def _shapes(
    hidden_PND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_N: Tensor,
    smoothing: float,
    strength: float,
    chunk: int,
    dtype: torch.dtype,
    learns: bool,
) -> tuple[Tensor, ...]:
    sums = [hidden_PND.new_empty((), dtype=wide(dtype)) for _ in range(3)]
    return *sums, *_gradients(hidden_PND, weight_VD, bias_V, learns)


def _gradients(
    hidden_PND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, learns: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Room for ∂h, ∂W and ∂b; none where nothing is learned."""
    if not learns:
        return hidden_PND.new_empty(0), weight_VD.new_empty(0), weight_VD.new_empty(0)
    shape = 0 if bias_V is None else bias_V.shape
    return torch.empty_like(hidden_PND), torch.empty_like(weight_VD), weight_VD.new_empty(shape)


def _entropy(
    logits_CV: Tensor,
    bias_V: Tensor | None,
    target_C: Tensor,
    losses_3C: Tensor,
    learns: bool,
    sums_V: Tensor | None,
    smoothing: float,
) -> Tensor:
    """Write the losses of a chunk's words. Returns the gradient of the logits, for which these are given up, and adds
    its sums over the words."""
    chunk = logits_CV, bias_V, target_C, smoothing, losses_3C, learns
    if loss_native.runs(logits_CV):
        loss_native.smoothed_cross_entropy_(*chunk, sums_V)
        return logits_CV
    if kernels is not None and kernels.runs(logits_CV):
        kernels.smoothed_cross_entropy_(*chunk)
        return _summed(logits_CV, sums_V)
    log_p_CV = _log_softmax(logits_CV, bias_V)
    losses_3C[0], losses_3C[1] = word_losses(log_p_CV, target_C, smoothing)
    if not learns:
        return log_p_CV
    return _summed(logit_gradient_(log_p_CV.exp_(), target_C, smoothing), sums_V)


def _agreement(
    logits_CV: Tensor,
    bias_V: Tensor | None,
    target_C: Tensor,
    losses_3C: Tensor,
    learns: bool,
    sums_V: Tensor | None,
    smoothing: float,
    strength: float,
) -> Tensor:
    """The same for the words of two passes, one behind the other."""
    log_p_CV = _log_softmax(logits_CV, bias_V)
    (losses_3C[0], losses_3C[1], losses_3C[2]), divergence = agreement_losses(log_p_CV, target_C, smoothing, strength)
    if not learns:
        return log_p_CV
    return _summed(agreement_gradient(log_p_CV, target_C, divergence, smoothing, strength), sums_V)


def _summed(gradient_CV: Tensor, sums_V: Tensor | None) -> Tensor:
    if sums_V is not None:
        sums_V += gradient_CV.sum(dim=0, dtype=sums_V.dtype)
    return gradient_CV


def _log_softmax(logits_CV: Tensor, bias_V: Tensor | None) -> Tensor:
    """log softmax(logits + b), no narrower than float32; the logits are given up."""
    exact = wide(logits_CV.dtype)
    if bias_V is not None:
        logits_CV = logits_CV.to(exact).add_(bias_V)
    return torch.log_softmax(logits_CV.to(exact), dim=-1)
