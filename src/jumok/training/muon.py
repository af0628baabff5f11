"""Muon (Jordan et al. 2024): matrices inside a model learn by steps that turn all directions alike.

    M ← β M + (1 − β) G        U = NewtonSchulz(β M + (1 − β) G)        W ← W − η λ W − η · 0.2 √max(n, m) · U

U is M Nesterov's way with all of its singular values brought near 1: what AdamW would leave to a few directions goes
into every one of them. Five rounds of X ← a X + (b A + c A²) X with A = X Xᵀ do that without a decomposition. The
factor 0.2 √max(n, m) (Liu et al. 2025) gives a step of n × m numbers the size that AdamW's have, so one learning rate
and one decay are for both. These matrices are those of a Transformer's blocks, and the kernels of a stem's convolutions
but the first, a row for each channel that comes out; word vectors, patches, positions, norms, biases and heads stay
with AdamW.

Matrices of one shape are computed together: a model has dozens, and a GPU would wait for each launch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.layers.block import FeedForward
from jumok.layers.embedding import Convolutions
from jumok.layers.multihead import MultiHeadAttention
from jumok.models.recognizer_encoders import Stem

MOMENTUM = 0.95
A, B, C = 3.4445, -4.7750, 2.0315  # steep at 0; where it settles, singular values are between 0.7 and 1.2
ROUNDS = 5
AS_ADAMW = 0.2  # about the root mean square of AdamW's steps


def matrices_of(model: nn.Module) -> set[Tensor]:
    """The weights of the linear maps of attention and of feed-forward networks, which blocks consist of, and of a
    stem's convolutions but the first."""
    found = {
        layer.weight
        for sublayer in model.modules()
        if isinstance(sublayer, MultiHeadAttention | FeedForward)
        for layer in sublayer.modules()
        if isinstance(layer, nn.Linear)
    }
    if not found:
        raise BadInput(
            "training.optimizer: muon is for the blocks of a Transformer, and this model has none: use adamw"
        )
    stems = (part for part in model.modules() if isinstance(part, Convolutions | Stem))
    return found | {layer.weight for stem in stems for layer in stem.layers[1:] if isinstance(layer, nn.Conv2d)}


def orthogonal(matrices_KNM: Tensor) -> Tensor:
    """Each matrix with its singular values brought near 1, by Newton and Schulz's iteration."""
    wide = matrices_KNM.size(1) <= matrices_KNM.size(2)
    x = matrices_KNM if wide else matrices_KNM.mT
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(ROUNDS):
        a = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(a, a, a, beta=B, alpha=C), x, beta=A)
    return x if wide else x.mT


class Muon(torch.optim.Optimizer):
    """Groups with `orthogonal` learn by Muon, the others by AdamW."""

    found_inf: Tensor | None = None  # on a GPU: 1 where this update must leave everything as it is

    def __init__(self, groups: Sequence[dict[str, Any]], **adamw: Any) -> None:
        super().__init__(list(groups), {"lr": adamw["lr"]})
        others = [group for group in self.param_groups if not group["orthogonal"]]
        self.adamw = torch.optim.AdamW(others, **adamw)
        # one state and one list of groups, so that whoever saves, loads or sets a rate sees all there is
        self.adamw.state = self.state
        self.param_groups = [group for group in self.param_groups if group["orthogonal"]] + self.adamw.param_groups
        self.complete = True

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if hasattr(self, "complete"):
            raise NotImplementedError("AdamW would not know of it")
        super().add_param_group(param_group)

    def strangers(self) -> list[Tensor]:
        """Matrices whose state is AdamW's: whoever kept it had other matrices learn by Muon."""
        mine = (parameter for group in self.param_groups if group.get("orthogonal") for parameter in group["params"])
        return [one for one in mine if self.state[one] and "momentum" not in self.state[one]]

    def load_state_dict(self, state_dict: Any) -> None:
        raise NotImplementedError("it would part the two optimisers: training/checkpoint.py puts the state back")

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        if self.found_inf is not None:
            self.adamw.found_inf = self.found_inf  # type: ignore[attr-defined]
        self.adamw.step()
        for group in self.param_groups:
            if group.get("orthogonal"):
                shapes: dict[torch.Size, list[Tensor]] = {}
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        shapes.setdefault(parameter.shape, []).append(parameter)
                for parameters in shapes.values():
                    self._together(parameters, group["lr"], group["weight_decay"])

    def _together(self, parameters: list[Tensor], rate: float, decay: float) -> None:
        """A step of matrices of one shape; a convolution's are (D, C, 3, 3), a row for each D."""
        momenta = [self._momentum(parameter) for parameter in parameters]
        shape = parameters[0].shape
        gradient = torch.stack([parameter.grad for parameter in parameters if parameter.grad is not None]).flatten(2)
        momentum = torch.stack(momenta).flatten(2)
        shrunk: Tensor | float = 1 - rate * decay
        if self.found_inf is None:
            momentum.lerp_(gradient, 1 - MOMENTUM)
            step = orthogonal(in_products(gradient.lerp(momentum, MOMENTUM))).float()
        else:  # decided where it is computed, so that nobody waits
            good = 1 - self.found_inf
            gradient = torch.where(good > 0, gradient, 0.0)
            momentum = torch.lerp(momentum, gradient, (1 - MOMENTUM) * good)
            step = orthogonal(in_products(gradient.lerp(momentum, MOMENTUM))).float() * good
            shrunk = 1 - rate * decay * good
        torch._foreach_copy_(momenta, list(momentum.reshape(-1, *shape)))
        torch._foreach_mul_(parameters, shrunk)
        factor = -rate * AS_ADAMW * math.sqrt(max(gradient.shape[1:]))
        torch._foreach_add_(parameters, list(step.reshape(-1, *shape)), alpha=factor)

    def _momentum(self, parameter: Tensor) -> Tensor:
        state: dict[str, Tensor] = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        return state["momentum"]


def in_products(matrices: Tensor) -> Tensor:
    """In the numbers that the iteration is computed in: on a GPU bfloat16, which it forgives."""
    return matrices.bfloat16() if matrices.is_cuda else matrices
