"""Walks over batches, whatever their kind: a batch is a dataclass of tensors, numbers, and further dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from torch import Tensor


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A dataclass with all its tensors changed, and those of dataclasses inside it."""
    if isinstance(value, Tensor):
        return change(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: mapped(getattr(value, field.name), change) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **changed)
    return value


def tensors(value: Any) -> list[Tensor]:
    """All tensors of a dataclass, in the order of its fields."""
    found: list[Tensor] = []
    mapped(value, lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
    return found


def numbers(value: Any) -> tuple[int, ...]:
    """All whole numbers of a dataclass that stand beside its tensors."""
    if isinstance(value, int):
        return (value,)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(n for field in dataclasses.fields(value) for n in numbers(getattr(value, field.name)))
    return ()


def repeating_part(batch: Any) -> Any:
    """The batch with only what has the same shape every time; None where there is no such."""
    return batch.repeating() if hasattr(batch, "repeating") else None


def kind(batch: Any) -> tuple[Any, ...]:
    """Equal for batches that one recording, or one compiled program, serves."""
    return tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors(batch)), numbers(batch)
