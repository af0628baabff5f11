"""What every task gives the training loop: batches, an objective, and a validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor, nn

from jumok.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Loss:
    """A loss as a sum and the number of things summed, so that any grouping of batches gives the same gradient."""

    sum: Tensor
    count: int
    parts: dict[str, Tensor] = field(default_factory=dict)  # further sums over the same count, for the log


class Objective(nn.Module):
    """A model and what it is asked for: `forward(batch) -> Loss`. This is what is compiled, wrapped and sharded."""

    model: nn.Module
    counted: ClassVar[str] = "tokens"  # what a batch has so many of (`Loss.count`), in words


class Task(Protocol):
    """What is learned. The loop knows nothing else about it."""

    @property
    def objective(self) -> Objective: ...

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """What a loaded run needs besides recipe and weights, by the name of its folder; empty without text."""
        ...

    @property
    def data_keys(self) -> list[str]:
        """What is learned from and validated on: equal keys, equal data."""
        ...

    def sizes(self) -> str:
        """How much data there is, in words."""
        ...

    def batches(self, update: int, only: Sequence[int] | None = None) -> list[Any]:
        """The micro-batches of an update, a pure function of its number. Each has `.tokens`, `.to(device)` and
        `.split(parts)`, and is as long as it has rows. With `only`, those of them with these numbers: one of several
        processes needs no others."""
        ...

    def validate(self) -> dict[str, float]:
        """Numbers on the validation set: at least "loss"."""
        ...

    def name_batch(self, batch: Any) -> str:
        """Where a batch comes from, in words: for messages about it."""
        ...


@runtime_checkable
class Keeps(Protocol):
    """A task whose runs need more than recipe, tokenizers and weights to be used."""

    def keep(self, folder: Path) -> None:
        """Write it into the run folder, unless it is there."""
        ...
