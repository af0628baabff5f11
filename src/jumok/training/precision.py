"""The numbers that matrix products are computed in. Weights, their gradients and all sums stay in float32.

bfloat16   as large a range as float32, 8 bits of it exact: nothing else changes
float16    11 bits exact, but gradients below 6e-8 vanish: the loss is multiplied by a scale s, so are all gradients,
           and they are divided by it again before anyone looks at their norm. An overflow halves s and leaves the
           update out; 2,000 updates without one double it. (Micikevicius et al. 2018)
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from jumok.errors import BadInput


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """`auto` takes bfloat16 on a GPU that computes with it, and float32 elsewhere."""
    if name == "auto":
        has_it = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if has_it else torch.float32
    if name == "float16" and device.type == "cpu":
        raise BadInput("training.precision: float16 is for GPUs; on a CPU use bfloat16 or float32")
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[name]


class Precision:
    """Which numbers, and the scale of the loss where they need one."""

    def __init__(self, dtype: torch.dtype, device: torch.device, scale: float | None = None, good: int = 0) -> None:
        self.dtype, self.device = dtype, device
        self.scaler: torch.amp.GradScaler | None = None
        if dtype == torch.float16:
            self.scaler = torch.amp.GradScaler(device.type)
            self.restore(scale, good)

    def context(self) -> AbstractContextManager[object]:
        """Inside it matrix products are computed in these numbers."""
        if self.dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, self.dtype)

    def scaled(self, loss: Tensor) -> Tensor:
        return loss if self.scaler is None else self.scaler.scale(loss)

    def forgives(self) -> bool:
        """Whether an update that overflowed is only how the scale is found."""
        return self.scaler is not None and self.scaler.get_scale() >= 1.0

    def restore(self, scale: float | None, good: int) -> None:
        """Go on with the scale of a checkpoint."""
        if self.scaler is not None and scale is not None:
            self.scaler.load_state_dict({**self.scaler.state_dict(), "scale": scale, "_growth_tracker": good})

    def state(self) -> tuple[float | None, int]:
        """The scale and how many good updates it has seen: what a resumed run must know."""
        if self.scaler is None:
            return None, 0
        kept = self.scaler.state_dict()
        return float(kept["scale"]), int(kept["_growth_tracker"])
