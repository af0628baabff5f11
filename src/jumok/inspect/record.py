"""See what a model looks at, without changing what it does.

    with record(model) as seen:
        model(batch)
    seen.weights()  # (B, T, S)

Hooks on the model's taps (layers/tap.py) compute the weights again from the very queries and keys that the attention
was computed from; nothing is kept on the model, and when the block ends the hooks are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.layers.attention import attention_weights
from jumok.layers.tap import Tap


@dataclass(frozen=True, eq=False)
class AttentionRecord:
    """One call of one tap: all target positions at once, or a single one where the decoder goes step by step."""

    kind: str  # who looks at whom: "cross" is the target at the source
    name: str  # which tap of the model
    call: int  # which call of the model's forward
    step: int  # the first target position of these weights in that call
    weights: Tensor  # (B, T, S), float32, on the CPU
    max_difference: float  # between what the layer really returned and weights @ value


class Seen:
    """What has been recorded so far: `records` in order of time, and the weights put together."""

    def __init__(self) -> None:
        self.records: list[AttentionRecord] = []
        self._call = 0

    def begin(self) -> None:
        """From here on positions count from 0 again: a forward does this, who calls `step()` alone does it by hand."""
        self._call += 1

    def names(self) -> list[str]:
        """The taps that were seen."""
        return list(dict.fromkeys(record.name for record in self.records))

    def weights(self, name: str | None = None) -> Tensor:
        """(B, T, S): the newest call of one tap, its steps one after another along T."""
        if not self.records:
            raise BadInput("nothing was recorded: the model has no attention, or it was not run inside the block")
        names = self.names()
        if name is None and len(names) > 1:
            raise BadInput(f"several attentions were recorded, name one of: {', '.join(names)}")
        if name is not None and name not in names:
            raise BadInput(f'no attention "{name}" was recorded, only: {", ".join(names)}')
        chosen = [record for record in self.records if record.name == (name or names[0])]
        steps = [record.weights for record in chosen if record.call == chosen[-1].call]
        if len({(step.size(0), step.size(2)) for step in steps}) > 1:
            raise BadInput(
                "the rows changed between the steps (as in a beam search), so the steps do not belong together: "
                "record the model's forward on the finished translation instead"
            )
        return torch.cat(steps, dim=1)

    @property
    def max_difference(self) -> float:
        """The largest difference between a layer's real output and the recorded weights applied to its values."""
        return max((record.max_difference for record in self.records), default=0.0)

    def _add(self, tap: Tap, inputs: tuple[Any, ...], output: Tensor) -> None:
        query, key, value, mask, scorer, bias, causal = inputs
        with torch.no_grad():
            weights = attention_weights(query, key, mask, scorer, bias, causal)
            difference = (torch.matmul(weights, value) - output).abs().float()
        earlier = next((r for r in reversed(self.records) if r.name == tap.name and r.call == self._call), None)
        step = earlier.step + earlier.weights.size(1) if earlier is not None else 0
        largest = float(difference.max()) if difference.numel() else 0.0
        kept = weights.detach().to("cpu", torch.float32, copy=True)
        self.records.append(AttentionRecord(tap.kind, tap.name, self._call, step, kept, largest))


@contextmanager
def record(model: nn.Module) -> Iterator[Seen]:
    """Record every attention of the model inside the block."""
    seen = Seen()

    def after_tap(tap: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Tensor) -> None:
        assert isinstance(tap, Tap)
        given = dict(zip(("query", "key", "value", "mask", "scorer", "bias", "causal"), inputs, strict=False)) | named
        told = [given[name] for name in ("query", "key", "value", "mask", "scorer")]
        seen._add(tap, (*told, given.get("bias"), given.get("causal", False)), output)

    handles = [model.register_forward_pre_hook(lambda _module, _inputs: seen.begin())]
    handles += [
        module.register_forward_hook(after_tap, with_kwargs=True)
        for module in model.modules()
        if isinstance(module, Tap)
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
