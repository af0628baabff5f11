# mypy: ignore-errors
# (Triton's kernels are a language of their own: types of Python say nothing about them.)
"""The softmax of a chunk of logits, its losses and its gradient in one kernel, written over the logits.

A program takes a word. It goes over the vocabulary twice: once for the largest logit, Σ exp(x − largest) and Σ x, where
the sum so far is scaled down whenever a larger logit comes (Milakov and Gimelshein 2018); once for the gradient. The
second time the row comes from the cache.
"""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl
from torch import Tensor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # Triton's own way to run kernels without a GPU
BLOCK = 4096  # logits at a time


def runs(logits: Tensor) -> bool:
    """Whether the kernel can take it."""
    known = logits.dtype in (torch.bfloat16, torch.float16, torch.float32)
    return (logits.is_cuda or INTERPRETED) and known and logits.stride(1) == 1


def smoothed_cross_entropy_(
    logits_CV: Tensor, bias_V: Tensor | None, target_C: Tensor, smoothing: float, losses_2C: Tensor, learns: bool
) -> None:
    """Write the smoothed and the plain loss of each word, and, if the model `learns`, the gradient over the logits.

    The bias is added to the logits here, which are without it.
    """
    words, vocabulary = logits_CV.shape
    if words:
        block = min(BLOCK, triton.next_power_of_2(vocabulary))
        _kernel[(words,)](
            logits_CV,
            logits_CV if bias_V is None else bias_V,
            target_C,
            losses_2C,
            vocabulary,
            logits_CV.stride(0),
            target_C.stride(0),
            losses_2C.stride(0),
            losses_2C.stride(1),
            smoothing,
            BIASED=bias_V is not None,
            LEARNS=learns,
            BLOCK=block,
            num_warps=8,
        )


@triton.jit
def _kernel(
    logits,
    bias,
    target,
    losses,
    vocabulary,
    logits_row,
    target_row,
    losses_row,
    losses_column,
    smoothing,
    BIASED: tl.constexpr,
    LEARNS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    word = tl.program_id(0).to(tl.int64)
    logits += word * logits_row
    losses += word * losses_column
    wanted = tl.load(target + word * target_row)
    columns = tl.arange(0, BLOCK)
    if wanted < 0:  # no word
        tl.store(losses, 0.0)
        tl.store(losses + losses_row, 0.0)
        if LEARNS:
            for start in range(0, vocabulary, BLOCK):
                tl.store(logits + start + columns, 0.0, mask=start + columns < vocabulary)
    else:
        at_wanted = tl.load(logits + wanted).to(tl.float32)
        if BIASED:
            at_wanted += tl.load(bias + wanted).to(tl.float32)
        largest = at_wanted
        total = 0.0
        added = 0.0
        for start in range(0, vocabulary, BLOCK):
            inside = start + columns < vocabulary
            x = tl.load(logits + start + columns, mask=inside, other=float("-inf")).to(tl.float32)
            if BIASED:
                x += tl.load(bias + start + columns, mask=inside, other=0.0).to(tl.float32)
            larger = tl.maximum(largest, tl.max(x, axis=0))
            total = total * tl.exp(largest - larger) + tl.sum(tl.exp(x - larger), axis=0)
            added += tl.sum(tl.where(inside, x, 0.0), axis=0)
            largest = larger
        level = largest + tl.log(total)  # the logarithm of the sum of all exponentials
        plain = level - at_wanted
        tl.store(losses, (1 - smoothing) * plain + smoothing * (level - added / vocabulary))
        tl.store(losses + losses_row, plain)
        if LEARNS:
            for start in range(0, vocabulary, BLOCK):
                inside = start + columns < vocabulary
                x = tl.load(logits + start + columns, mask=inside, other=float("-inf")).to(tl.float32)
                if BIASED:
                    x += tl.load(bias + start + columns, mask=inside, other=0.0).to(tl.float32)
                hit = tl.where(start + columns == wanted, 1 - smoothing, 0.0)
                gradient = tl.exp(x - level) - smoothing / vocabulary - hit
                tl.store(logits + start + columns, gradient, mask=inside)
