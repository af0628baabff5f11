"""See what a model looks at, without changing what it does.

    with record(model) as seen:
        model(batch)
    seen.weights("decoder.0.cross")  # (B, T, S), or (B, H, T, S) where the attention has heads

Hooks on the model's taps (layers/tap.py) compute the weights again from the very queries and keys that the attention
was computed from; nothing is kept on the model, and when the block ends the hooks are gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
    weights: Tensor  # (B, T, S) or (B, H, T, S), float32, on the CPU
    max_difference: float  # between what the layer really returned and weights @ value


class Seen:
    """What has been recorded so far: `records` in order of time, and the weights put together."""

    def __init__(self, heads: Sequence[int] | None = None) -> None:
        self.records: list[AttentionRecord] = []
        self._heads = heads
        self._call = 0

    def begin(self) -> None:
        """From here on positions count from 0 again: a forward does this, who calls `step()` alone does it by hand."""
        self._call += 1

    def names(self) -> list[str]:
        """The taps that were seen."""
        return list(dict.fromkeys(record.name for record in self.records))

    def weights(self, name: str | None = None) -> Tensor:
        """(B, T, S) or (B, H, T, S): the newest call of one tap, its steps one after another along T."""
        if not self.records:
            raise BadInput("nothing was recorded: the model has no attention, or it was not run inside the block")
        names = self.names()
        if name is None and len(names) > 1:
            raise BadInput(f"several attentions were recorded, name one of: {', '.join(names)}")
        if name is not None and name not in names:
            raise BadInput(f'no attention "{name}" was recorded, only: {", ".join(names)}')
        chosen = [record for record in self.records if record.name == (name or names[0])]
        steps = [record.weights for record in chosen if record.call == chosen[-1].call]
        if self._uneven(steps):
            raise BadInput(
                "the rows changed between the steps (as in a beam search), so the steps do not belong together: "
                "record the model's forward on the finished translation instead"
            )
        longest = steps[-1].size(-1)  # a text that looks at its own past has more to look at in each step
        return torch.cat([F.pad(step, (0, longest - step.size(-1))) for step in steps], dim=-2)

    def _uneven(self, steps: Sequence[Tensor]) -> bool:
        return len({step.shape[:-2] for step in steps}) > 1 or any(
            now.size(-1) not in (before.size(-1), before.size(-1) + now.size(-2)) for before, now in pairwise(steps)
        )

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
        step = earlier.step + earlier.weights.size(-2) if earlier is not None else 0
        largest = float(difference.max()) if difference.numel() else 0.0
        if self._heads is not None and weights.dim() == 4:
            weights = weights[:, list(self._heads)]
        kept = weights.detach().to("cpu", torch.float32, copy=True)
        self.records.append(AttentionRecord(tap.kind, tap.name, self._call, step, kept, largest))


@contextmanager
def record(
    model: nn.Module,
    layers: Collection[int] | None = None,
    heads: Sequence[int] | None = None,
    kinds: Collection[str] | None = None,
) -> Iterator[Seen]:
    """Record the model's attention inside the block: all of it, or only these layers, heads (both counted from 0) and
    kinds ("self", "causal", "cross")."""
    taps = [
        module
        for module in model.modules()
        if isinstance(module, Tap)
        and (layers is None or module.layer in layers)
        and (kinds is None or module.kind in kinds)
    ]
    known = sorted({module.layer for module in model.modules() if isinstance(module, Tap)})
    if layers is not None and not set(layers) <= set(known):
        raise BadInput(f"layers {sorted(layers)}: this model's attention is in layers {', '.join(map(str, known))}")
    for tap in taps:
        if heads is not None and tap.heads is not None and not all(0 <= head < tap.heads for head in heads):
            raise BadInput(f"heads {list(heads)}: {tap.name} has {tap.heads}, counted from 0")
    seen = Seen(heads)

    def after_tap(tap: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Tensor) -> None:
        assert isinstance(tap, Tap)
        given = dict(zip(("query", "key", "value", "mask", "scorer", "bias", "causal"), inputs, strict=False)) | named
        told = [given[name] for name in ("query", "key", "value", "mask", "scorer")]
        seen._add(tap, (*told, given.get("bias"), given.get("causal", False)), output)

    handles = [model.register_forward_pre_hook(lambda _module, _inputs: seen.begin())]
    handles += [tap.register_forward_hook(after_tap, with_kwargs=True) for tap in taps]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
