"""Averages of weights: a running one during training, and one over checkpoints.

    EMA          θ̄ ← d · θ̄ + (1 − d) · θ   after every update t = 0, 1, …, with d = min(decay, (1 + t) / (10 + t))
    checkpoints  θ̄ = (θ₁ + … + θ_N) / N     (Vaswani et al. 2017 average the last 5 or 20)

The warm-up of d lets the average forget the random beginning: after t updates it looks back about t / 9 of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from jumok.training import checkpoint


class RunningAverage:
    """The exponential moving average of a model's parameters."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    @torch.no_grad()
    def note(self, update: int) -> None:
        """Take the weights after the update with this number (from 0) into the average."""
        decay = min(self.decay, (1 + update) / (10 + update))
        current = [parameter.detach() for _, parameter in self.model.named_parameters()]
        torch._foreach_lerp_(list(self.weights.values()), current, 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the model has the averaged weights; afterwards its own again, to the bit."""
        own = {name: parameter.detach().clone() for name, parameter in self.model.named_parameters()}
        self._put(self.weights)
        try:
            yield
        finally:
            self._put(own)

    @torch.no_grad()
    def _put(self, weights: dict[str, Tensor]) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.copy_(weights[name])


def mean_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints, summed in double precision in the given order."""
    total: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    for folder in folders:
        for name, tensor in load_file(folder / checkpoint.MODEL).items():
            kinds[name] = tensor.dtype
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / len(folders)).to(kinds[name]) for name, tensor in total.items()}
