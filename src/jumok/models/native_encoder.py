"""A stack whose words all see each other, on the CPU in one call of transformer.c; the same numbers as layers/stack.py.

Made for pictures: (B, T, D) without padding, B and T of any size. The threads take some pictures each, few enough for
what lies between two layers to stay in a core's own cache; so no thread waits for another before the end.

Whoever only reads asks for it, with the precision of the products:

    with encoding_in("int8"):
        model.read(pictures)

A model that learns, or whose inside somebody observes (jumok.inspect.record), computes as ever.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from jumok.layers.block import Block
from jumok.layers.packed import Precision
from jumok.layers.stack import Stack
from jumok.models.native import computes, library
from jumok.models.native_stack import NUMBER, POINTER, NativeStack, Packer, Room

TOGETHER = 192  # rows that a thread takes at once: their intermediate results, and weights beside them, fit its cache

State = list[tuple[int, int]]  # of the weights: where they lie and how often they were changed

_ASKED: ContextVar[Precision | None] = ContextVar("asked", default=None)
_MADE: WeakKeyDictionary[Stack, dict[Precision, tuple[State, NativeEncoder]]] = WeakKeyDictionary()


class NativeEncoder:
    """A stack with a packed copy of its weights."""

    @torch.no_grad()
    def __init__(self, stack: Stack, precision: Precision = "float32") -> None:
        found = library()
        assert found is not None
        (width,) = {block.attention.query.in_features for block in stack.blocks if isinstance(block, Block)}
        self.library = found
        self.stack = NativeStack(stack, torch.empty(0, width), Packer(precision, found.jumok_panel()))
        self.stack.structure.scale = 1.0

    def __call__(self, x_BTD: Tensor) -> Tensor:
        x_BTD, out_BTD = x_BTD.float().contiguous(), torch.empty(x_BTD.shape)
        sequences, length, _ = x_BTD.shape
        if not out_BTD.numel():
            return out_BTD
        threads = min(torch.get_num_threads(), sequences)
        together = max(1, min(TOGETHER // length, sequences // threads))
        row = torch.arange(together * length)
        position = row % length
        about = row, position, row - position, torch.full_like(row, length)
        rooms = [self.stack.room(together * length) for _ in range(threads)]
        self.library.jumok_encode(
            ctypes.byref(self.stack.structure), ctypes.byref(self.stack.positions(length)),
            (Room * threads)(*(room for room, _ in rooms)), NUMBER(threads), NUMBER(sequences), NUMBER(length),
            NUMBER(together), *(POINTER(each.data_ptr()) for each in (*about, x_BTD, out_BTD)),
        )  # fmt: skip
        return out_BTD


def usable(stack: Stack, precision: Precision) -> bool:
    """Whether transformer.c can be compiled here, and knows this precision and all that this stack does."""
    blocks = [block for block in stack.blocks if isinstance(block, Block)]
    plain = not stack.causal and len(blocks) == len(stack.blocks) > 0
    for block in blocks:
        norms = block.attention_norm, block.feed_forward_norm
        plain = plain and block.cross is None and all(norm.scale is None for norm in norms)
    weights = list(stack.parameters())
    plain = plain and all(one.device.type == "cpu" and one.dtype == torch.float32 for one in weights)
    return plain and computes(precision, *(one.size(1) for one in weights if one.dim() == 2))


@contextmanager
def encoding_in(precision: Precision) -> Iterator[None]:
    """Inside the block, and in this thread, `encoded` goes through transformer.c wherever it can."""
    before = _ASKED.set(precision)
    try:
        yield
    finally:
        _ASKED.reset(before)


def asked_of(module: nn.Module, x: Tensor) -> Precision | None:
    """The precision that somebody asks for who only reads, on the CPU, and watches nothing inside."""
    learns = torch.compiler.is_compiling() or torch.is_grad_enabled() or module.training
    asked = None if learns or x.device.type != "cpu" else _ASKED.get()
    return None if asked is None or _observed(module) else asked


def encoded(stack: Stack, x_BTD: Tensor) -> Tensor:
    """What the stack makes of x, in the fastest way that was asked for."""
    asked = asked_of(stack, x_BTD)
    native = None if asked is None else native_encoder(stack, asked)
    hidden_BTD: Tensor = stack(x_BTD) if native is None else native(x_BTD)
    return hidden_BTD


def native_encoder(stack: Stack, precision: Precision) -> NativeEncoder | None:
    """Made once and kept, as long as the weights stay what they are."""
    if not usable(stack, precision):
        return None
    state = [(weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in stack.parameters()]
    made = _MADE.setdefault(stack, {})
    if precision not in made or made[precision][0] != state:
        made[precision] = state, NativeEncoder(stack, precision)
    return made[precision][1]


def _observed(whole: nn.Module) -> bool:
    return any(module._forward_hooks or module._forward_pre_hooks for module in whole.modules())
