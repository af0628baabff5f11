"""A stack of blocks in the shape that transformer.c wants it: its structures, filled with packed copies of the weights.

The field names and their order are those of the C structures.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.layers.block import Block
from jumok.layers.packed import Precision, check_finite, side_by_side
from jumok.layers.position import Learned
from jumok.layers.stack import Stack

NUMBER, POINTER, REAL = ctypes.c_longlong, ctypes.c_void_p, ctypes.c_double
KINDS: dict[Precision, int] = {"float32": 0, "int8": 1, "bfloat16": 2}
ACTIVATIONS = ("relu", "gelu", "silu", "swiglu")


class Linear(ctypes.Structure):
    _fields_ = (
        ("inputs", NUMBER), ("outputs", NUMBER), ("kind", NUMBER),
        ("weight", POINTER), ("bias", POINTER), ("scale", POINTER), ("sum", POINTER),
    )  # fmt: skip


class Norm(ctypes.Structure):
    _fields_ = (("kind", NUMBER), ("weight", POINTER), ("bias", POINTER), ("eps", REAL))


class Layer(ctypes.Structure):
    _fields_ = (
        ("project", Linear), ("output", Linear), ("cross_query", Linear), ("cross_output", Linear),
        ("inner", Linear), ("outer", Linear), ("attention_norm", Norm), ("cross_norm", Norm), ("feed_norm", Norm),
    )  # fmt: skip


class Whole(ctypes.Structure):
    _fields_ = (
        ("width", NUMBER), ("heads", NUMBER), ("groups", NUMBER), ("head_width", NUMBER), ("feed_forward", NUMBER),
        ("activation", NUMBER), ("pre", NUMBER), ("layers", NUMBER), ("scale", REAL),
        ("embedding", POINTER), ("blocks", ctypes.POINTER(Layer)), ("norm", Norm),
    )  # fmt: skip


class Positions(ctypes.Structure):
    tables: list[Tensor]
    _fields_ = (("added", POINTER), ("turns", POINTER), ("relative", POINTER), ("reach", NUMBER), ("origin", NUMBER))


class Room(ctypes.Structure):
    _fields_ = tuple((name, POINTER) for name in ("x", "normed", "wide", "seen", "scale", "rounded"))


class Packer:
    """Makes structures, and keeps the tensors that they point into."""

    def __init__(self, precision: Precision, panel: int) -> None:
        self.precision, self.panel = precision, panel
        self.kept: list[Tensor] = []

    def linear(self, parts: Sequence[nn.Linear], first_scale: float = 1.0) -> Linear:
        return self.matrix(*side_by_side(parts, first_scale))

    def matrix(self, weight: Tensor, bias: Tensor) -> Linear:
        """Panels of outputs side by side; the last one is filled up with zeros."""
        check_finite(weight, bias)
        outputs, inputs = weight.shape
        more = -outputs % self.panel
        weight, bias = F.pad(weight.detach().float(), (0, 0, 0, more)), F.pad(bias.detach().float(), (0, more))
        if self.precision != "int8":
            together = 1 if self.precision == "float32" else 2  # inputs that are multiplied at once
            panels = weight.view(-1, self.panel, inputs // together, together).transpose(1, 2)
            panels = panels.to(getattr(torch, self.precision))
            return Linear(inputs, outputs, KINDS[self.precision], self.keep(panels), self.keep(bias), None, None)
        scale = (weight.abs().amax(dim=1) / 127).clamp(min=1e-12)
        rounded = (weight / scale[:, None]).round().to(torch.int8)
        panels = rounded.view(-1, self.panel, inputs // 4, 4).transpose(1, 2)
        offset = 128 * rounded.sum(dim=1, dtype=torch.int32)
        return Linear(
            inputs, outputs, KINDS["int8"], self.keep(panels), self.keep(bias), self.keep(scale), self.keep(offset)
        )

    def norm(self, norm: nn.Module) -> Norm:
        if isinstance(norm, nn.LayerNorm):
            return Norm(1, self.keep(norm.weight), self.keep(norm.bias), norm.eps)
        if isinstance(norm, nn.RMSNorm):
            assert norm.eps is not None
            return Norm(2, self.keep(norm.weight), None, norm.eps)
        return Norm(0, None, None, 0.0)

    def layer(self, block: Block) -> Layer:
        attention, feed = block.attention, block.feed_forward
        scale = attention.scorer.inner_scale
        assert scale is not None
        layer = Layer(
            project=self.linear([attention.query, attention.key, attention.value], scale),
            output=self.linear([attention.output]),
            inner=self.linear([feed.inner] if feed.gate is None else [feed.inner, feed.gate]),
            outer=self.linear([feed.outer]),
            attention_norm=self.norm(block.attention_norm.norm),
            feed_norm=self.norm(block.feed_forward_norm.norm),
        )
        if block.cross is not None and block.cross_norm is not None:
            layer.cross_query = self.linear([block.cross.query], scale)
            layer.cross_output = self.linear([block.cross.output])
            layer.cross_norm = self.norm(block.cross_norm.norm)
        return layer

    def keep(self, tensor: Tensor) -> int:
        self.kept.append(tensor.detach().contiguous())
        return self.kept[-1].data_ptr()


class NativeStack:
    def __init__(self, stack: Stack, embedding: Tensor, packer: Packer) -> None:
        blocks = [block for block in stack.blocks if isinstance(block, Block)]
        attention, feed = blocks[0].attention, blocks[0].feed_forward
        self.added, self.rotary, self.relative, self.reach = stack.added, stack.rotary, stack.relative, stack.reach
        self.layers, self.keys = len(blocks), attention.groups * attention.head_width
        self.vocabulary, self.width, inner = *embedding.shape, feed.inner.out_features
        widest = max(self.width + 2 * self.keys, inner if feed.gate is None else 2 * inner)
        # floats of a row in each part of the room, in whole lines of the processor's cache
        parts = (self.width, self.width, widest, self.width, 1, -(-max(self.width, inner) // 2))
        self.offsets = [0, *accumulate(-(-part // 16) * 16 for part in parts)]
        self.blocks = (Layer * len(blocks))(*(packer.layer(block) for block in blocks))
        self.structure = Whole(
            self.width, attention.heads, attention.groups, attention.head_width, inner,
            ACTIVATIONS.index(feed.activation), blocks[0].attention_norm.pre, len(blocks), self.width**0.5,
            packer.keep(embedding), self.blocks, packer.norm(stack.norm),
        )  # fmt: skip
        self.packer = packer  # keeps what the structures point to
        self.told = 0, Positions()  # for how many positions, and where they are; one pair, so that threads agree

    def tokens(self, ids: Tensor) -> Tensor:
        """Token ids to be looked up in C, where nobody would notice one that the vocabulary does not have."""
        for id in map(int, ids.aminmax()) if len(ids) else ():
            if not 0 <= id < self.vocabulary:
                known = f"the vocabulary of {self.vocabulary}"
                raise BadInput(f"token {id} is outside {known}: use token ids of the model's own tokenizer")
        return ids.long().contiguous()

    def positions(self, length: int) -> Positions:
        """Where words stand, for positions below `length`."""
        known, where = self.told
        if length <= known:
            return where
        self.reach(length)
        where, known = Positions(), 1 << 30
        tables: list[Tensor] = []  # stay as long as somebody looks into them, also when longer ones have been made
        if self.added is not None:
            tables.append(self.added.weight if isinstance(self.added, Learned) else self.added.rows)
            where.added, known = tables[-1].data_ptr(), len(tables[-1])
        if self.rotary is not None:
            tables.append(self.rotary.rows)
            where.turns, known = tables[-1].data_ptr(), len(tables[-1])
        if self.relative is not None:
            # keys that stand up to `far` before and after a query; the query itself is in the middle
            known = far = 2 * length
            with torch.no_grad():
                bias = self.relative(torch.tensor([far]), torch.arange(2 * far + 1))
            tables.append(bias[0, :, 0].contiguous())
            where.relative, where.reach, where.origin = tables[-1].data_ptr(), 2 * far + 1, far
        where.tables = tables
        self.told = known, where
        return where

    def room(self, rows: int) -> tuple[Room, Tensor]:
        """Room for the intermediate results of so many rows, and the tensor that it lies in."""
        *starts, end = self.offsets
        store = torch.empty(rows * end)
        address, step = store.data_ptr(), 4 * rows
        return Room(*[address + step * start for start in starts]), store
