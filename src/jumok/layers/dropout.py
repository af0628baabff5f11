"""Dropout (Srivastava et al. 2014): y = x ⊙ z / (1 − p), where each z is 0 with probability p, else 1.

On a CPU PyTorch draws a floating-point number for every z, one after another, which takes longer than all else that a
small model does between its matrix products. Here 16 random bits decide, four z for each number that is drawn, so p is
a multiple of 1/65536.
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
            left = F.dropout(x, self.p)
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
