"""Dropout (Srivastava et al. 2014): y = x ⊙ z / (1 − p), where each z is 0 with probability p, else 1.

On a CPU PyTorch draws a floating-point number for every z, one after another, which takes longer than all else that a
small model does between its matrix products. Here 16 random bits decide, four z for each number that is drawn, so p is
a multiple of 1/65536.

In a program that is compiled for a GPU the draws are part of the kernel that needs them, and ten rounds of Philox for
every z are what that kernel waits for. There z is a hash of its place, with a seed that PyTorch's generator gives.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

STEPS = 2**16


class Dropout(nn.Dropout):
    def forward(self, x: Tensor, onto: Tensor | None = None) -> Tensor:
        """What is left of x, added to `onto` where that is given (a residual connection, in one pass)."""
        if not self.training or not self.p:
            return x if onto is None else onto + x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            left = hashed_dropout(x, self.p) if torch.compiler.is_compiling() else F.dropout(x, self.p)
            return left if onto is None else onto + left
        kept = keep_mask(x.shape, self.p)
        return (x * kept).to(x.dtype) if onto is None else torch.addcmul(onto, x, kept).to(onto.dtype)


class WordDropout(Dropout):
    """Whole words unseen, each for itself (Bowman et al. 2016): x_t · z_t / (1 − p), one z for each position.

    A decoder that cannot count on what it wrote has to look at the source.
    """

    def forward(self, x: Tensor, onto: Tensor | None = None) -> Tensor:
        if not self.training or not self.p:
            return super().forward(x, onto)
        seen = x * super().forward(torch.ones_like(x[..., :1]))
        return seen if onto is None else onto + seen


def keep_mask(shape: torch.Size, p: float) -> Tensor:
    """z / (1 − p), on the CPU, from PyTorch's generator."""
    dropped, numbers = round(p * STEPS), shape.numel()
    drawn = torch.empty(-(-numbers // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = drawn.view(torch.int16)[:numbers].view(shape)
    kept = torch.empty(shape)
    return torch.ge(bits, dropped - STEPS // 2, out=kept).mul_(STEPS / (STEPS - dropped))


def hashed_dropout(x: Tensor, p: float) -> Tensor:
    """x ⊙ z / (1 − p), where z follows from its place and one number that is drawn."""
    seed = torch.randint(-(2**31), 2**31 - 1, (1,), dtype=torch.int32, device=x.device)
    places = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    bits = mixed(mixed(places) + mixed(seed))
    # 31 bits: the sign is left out
    return torch.where((bits & 0x7FFFFFFF) >= round(p * 2**31), x * (1 / (1 - p)), 0.0).to(x.dtype)


def mixed(x: Tensor) -> Tensor:
    """Every bit of a 32-bit number reaches every other (Wellons 2018, "lowbias32"); products wrap around."""
    x = (x ^ ((x >> 16) & 0xFFFF)) * 0x7FEB352D
    x = (x ^ ((x >> 15) & 0x1FFFF)) * (0x846CA68B - 2**32)
    return x ^ ((x >> 16) & 0xFFFF)
