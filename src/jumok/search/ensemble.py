"""Several models that generate as one: at every step their probabilities are averaged.

    p(y_t | y_<t, x) = Σ_m w_m p_m(y_t | y_<t, x),    Σ_m w_m = 1

The members share their vocabularies; apart from that they may be of any size and kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.search.stepper import Stepper

Parts = tuple[Any, ...]  # one memory, or one cache, of each member


def mean_probability(log_probs: Sequence[Tensor], weights: Sequence[float] | None = None) -> Tensor:
    """log Σ_m w_m p_m from the members' log-probabilities; without weights all count alike."""
    sizes = sorted({one.size(-1) for one in log_probs})
    if len(sizes) > 1:
        raise BadInput(
            f"models with vocabularies of {' and '.join(map(str, sizes))} cannot generate together: "
            "use models trained with the same tokenizer"
        )
    if len(log_probs) == 1:
        return log_probs[0]
    shares = weights or [1 / len(log_probs)] * len(log_probs)
    return torch.logsumexp(torch.stack([one + math.log(w) for one, w in zip(log_probs, shares, strict=True)]), dim=0)


class Ensemble:
    """A Stepper over Steppers: memory and cache are those of all members, side by side."""

    def __init__(self, members: Sequence[Stepper], weights: Sequence[float] | None = None) -> None:
        """`weights` say how much each member counts; they need not sum to 1."""
        if not members:
            raise BadInput("an ensemble of no models: give one at least")
        given = [1.0] * len(members) if weights is None else [float(weight) for weight in weights]
        if len(given) != len(members):
            raise BadInput(f"{len(given)} weights for {len(members)} models: give one for each")
        if not all(weight > 0 and math.isfinite(weight) for weight in given):
            raise BadInput(f"weights {given}: each must be above 0; leave out a model that shall not count")
        self.members = list(members)
        self.weights = [weight / sum(given) for weight in given]

    def encode(self, batch: Any) -> Parts:
        return tuple(member.encode(batch) for member in self.members)

    def start(self, memory: Parts, rows: int, capacity: int, coverage: bool = False) -> Parts:
        pairs = zip(self.members, memory, strict=True)
        return tuple(member.start(part, rows, capacity, coverage=coverage) for member, part in pairs)

    def step(self, tokens: Tensor, positions: Tensor, memory: Parts, cache: Parts) -> tuple[Tensor, Parts]:
        each = zip(self.members, memory, cache, strict=True)
        steps = [member.step(tokens, positions, part, past) for member, part, past in each]
        return mean_probability([log_probs for log_probs, _ in steps], self.weights), tuple(past for _, past in steps)

    def select(self, memory: Parts, cache: Parts, rows: Tensor) -> tuple[Parts, Parts]:
        each = zip(self.members, memory, cache, strict=True)
        chosen = [member.select(part, past, rows) for member, part, past in each]
        return tuple(part for part, _ in chosen), tuple(past for _, past in chosen)

    def join(self, parts: Sequence[tuple[Parts, Parts]]) -> tuple[Parts, Parts]:
        joined = [
            member.join([(memory[place], cache[place]) for memory, cache in parts])
            for place, member in enumerate(self.members)
        ]
        return tuple(part for part, _ in joined), tuple(past for _, past in joined)

    def coverage(self, cache: Parts) -> Tensor:
        """The mean over the members, by their weights. Some keep room for sentences that have left: all as wide."""
        each = zip(self.members, cache, self.weights, strict=True)
        parts = [weight * member.coverage(past).float() for member, past, weight in each]
        width = max(part.size(1) for part in parts)
        return torch.stack([F.pad(part, (0, width - part.size(1))) for part in parts]).sum(dim=0)
