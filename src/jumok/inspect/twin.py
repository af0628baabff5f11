"""Compiled models are looked into through their eager twin.

What torch.compile has made of a module has no hooks inside, so each call is made twice: compiled, as it would be
without us and with its result, and then eagerly, on the same input, for the record. The difference of the two outputs
is stated. The twin keeps no gradients and leaves the random numbers as they were.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from jumok.inspect.path import largest
from jumok.layers.tap import Tap

Differs = Callable[[float], None]
Unobserved = Callable[[], AbstractContextManager[None]]


@contextmanager
def twins(model: nn.Module, unobserved: Unobserved, differs: Differs) -> Iterator[bool]:
    """Inside the block every compiled part of the model that has attention is followed by its twin. Gives whether
    there is one. `unobserved()` takes the hooks away for as long as the compiled one runs: they are not for it."""
    with ExitStack() as stack:
        found = compiled_parts(model)
        for module in found:
            stack.enter_context(_followed(module, unobserved, differs))
        yield bool(found)


def compiled_parts(model: nn.Module) -> list[nn.Module]:
    """Those that have attention, which no hook sees."""
    return [module for module in model.modules() if _compiled(module) and _attends(module)]


def _compiled(module: nn.Module) -> bool:
    """By `torch.compile(module)`, or in place by `module.compile()`."""
    return hasattr(module, "_orig_mod") or module._compiled_call_impl is not None


def _attends(module: nn.Module) -> bool:
    return any(isinstance(part, Tap) for part in module.modules())


@contextmanager
def _followed(module: nn.Module, unobserved: Unobserved, differs: Differs) -> Iterator[None]:
    """Its own attributes are changed, not its class: other models of that class are not concerned."""
    wrapped = hasattr(module, "_orig_mod")
    name = "forward" if wrapped else "_compiled_call_impl"
    compiled = getattr(module, name)
    eager: Callable[..., Any] = getattr(module, "_orig_mod") if wrapped else module._call_impl  # noqa: B009

    def both(*inputs: Any, **named: Any) -> Any:
        with unobserved():
            output = compiled(*inputs, **named)
        devices = sorted({tensor.device.index or 0 for tensor in _tensors(output) if tensor.is_cuda})
        with torch.no_grad(), torch.random.fork_rng(devices=devices):
            again = eager(*inputs, **named)
        pairs = zip(_tensors(output), _tensors(again), strict=True)
        differs(largest(_distance(first, second) for first, second in pairs))
        return output

    module.__dict__[name] = both
    try:
        yield
    finally:
        module.__dict__[name] = compiled


def _distance(first: Tensor, second: Tensor) -> float:
    if not first.numel():
        return 0.0
    return float((first.detach().float() - second.detach().float()).abs().max())


def _tensors(value: Any) -> list[Tensor]:
    """All tensors of an output: a tensor, a loss, or several in a tuple or a dictionary."""
    if isinstance(value, Tensor):
        return [value]
    parts: Sequence[Any] = ()
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (tuple, list)):
        parts = value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, part.name) for part in dataclasses.fields(value)]
    return [tensor for part in parts for tensor in _tensors(part)]
