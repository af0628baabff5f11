"""Weights that are numbers: what is drawn and measured from others would mean nothing."""

from __future__ import annotations

import torch
from torch import nn

from jumok.errors import Failure


def require_numbers(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise Failure(
                f"{name}: some of the weights are not numbers. They may be damaged or have diverged: try an earlier "
                "checkpoint."
            )
