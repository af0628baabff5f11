"""A trained Transformer's twin for decoding on a GPU: fused weights in the precision of decoding, static shapes.

Queries, keys and values are one matrix, the memory of all layers is one product, a sentence's beam shares its memory,
and the past is never moved (`Past.ancestry`). Nothing waits for the host, so that a step can be captured in a CUDA
graph. The twin's weights are copies: `refresh` follows the model, whose weights training changes in place.
"""

from __future__ import annotations

import copy
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import torch
from torch import Tensor, nn

from jumok.layers.block import AddNorm, Block
from jumok.models import step_torch
from jumok.models.step_torch import Norm, Past
from jumok.models.transformer import Transformer


@dataclass(frozen=True)
class Linear:
    weight: Tensor  # (out, in)
    bias: Tensor


@dataclass(frozen=True)
class Layer:
    """One decoder block; each norm is that of the sublayer before it in this list."""

    qkv: Linear
    self_output: Linear
    self_norm: Norm
    query: Linear
    cross_output: Linear
    cross_norm: Norm
    inner: Linear  # with swiglu the gate lies behind it
    outer: Linear
    forward_norm: Norm


@dataclass(frozen=True)
class Slots:
    """Where R sentences of at most S tokens, with K hypotheses of at most C tokens each, are decoded."""

    ids: Tensor  # (R, S)
    lengths: Tensor  # (R,) at least 1
    memory: Tensor  # (R, S, L, 2, G, D)
    past: Past
    added: Tensor | None  # (C, W) positions, for models that add them

    @property
    def bytes(self) -> int:
        return self.memory.nbytes + self.past.cache.nbytes


class Operations(Protocol):
    """What models/step_torch.py and models/step_triton.py both are."""

    def prepare(self, past: Past) -> Past: ...
    def self_attention(self, qkv_NX: Tensor, bias_X: Tensor, past: Past, layer: int, heads: int) -> Tensor: ...
    def cross_attention(
        self, query_NX: Tensor, bias_X: Tensor, memory: Tensor, lengths_R: Tensor, layer: int, heads: int
    ) -> Tensor: ...
    def normalise(self, x_NW: Tensor, norm: Norm) -> Tensor: ...
    def add_norm(self, x_NW: Tensor, y_NW: Tensor, bias_W: Tensor, norm: Norm) -> tuple[Tensor, Tensor]: ...
    def activate(self, inner_NF: Tensor, bias_F: Tensor, activation: str) -> Tensor: ...


class StaticTransformer:
    """Made once for a model and a precision; call `refresh` before decoding."""

    def __init__(self, model: Transformer, dtype: torch.dtype, operations: Operations | None = None) -> None:
        self._model = weakref.ref(model)  # who uses the model keeps it, not its twin
        self.dtype, self.section = dtype, model.section
        self.device = model.embedding.weight.device
        self.operations = default_operations(self.device) if operations is None else operations
        attention = _decoder_block(model, 0).attention
        self.heads, self.groups, self.head_width = attention.heads, attention.groups, attention.head_width
        # the encoder is computed as in training, with weights of its own
        self.encoder = copy.deepcopy(model.encoder).to(dtype).eval().requires_grad_(False)
        self._groups = {
            name: torch.cat([part.detach() for part in parts]).to(dtype) for name, parts in fused(model).items()
        }
        self.layers = [self._layer(number) for number in range(len(model.decoder.blocks))]
        self.final = self._norm(model.decoder.norm, "final") if "final.weight" in self._groups else None
        self._copies = self._destinations()

    @property
    def model(self) -> Transformer:
        model = self._model()
        assert model is not None
        return model

    @property
    def longest(self) -> int:
        """Positions the model can tell apart."""
        return self.section.max_positions if self.section.position == "learned" else sys.maxsize

    # ------------------------------------------------------------ weights

    def refresh(self) -> None:
        """Take over the model's weights as they are now."""
        sources = [part.detach() for parts in fused(self.model).values() for part in parts]
        sources += [parameter.detach() for parameter in self.model.encoder.parameters()]
        torch._foreach_copy_(self._copies, sources)

    def _destinations(self) -> list[Tensor]:
        views: list[Tensor] = []
        for name, parts in fused(self.model).items():
            views += torch.split_with_sizes(self._groups[name], [len(part) for part in parts])
        return views + [parameter.detach() for parameter in self.encoder.parameters()]

    def _linear(self, name: str) -> Linear:
        return Linear(self._groups[f"{name}.weight"], self._groups[f"{name}.bias"])

    def _norm(self, module: nn.Module, name: str) -> Norm:
        assert isinstance(module, nn.LayerNorm | nn.RMSNorm)
        assert module.eps is not None
        return Norm(self._groups[f"{name}.weight"], self._groups.get(f"{name}.bias"), module.eps)

    def _layer(self, number: int) -> Layer:
        block = _decoder_block(self.model, number)
        assert block.cross_norm is not None
        return Layer(
            self._linear(f"{number}.qkv"),
            self._linear(f"{number}.self"),
            self._norm(block.attention_norm.norm, f"{number}.self-norm"),
            self._linear(f"{number}.query"),
            self._linear(f"{number}.cross"),
            self._norm(block.cross_norm.norm, f"{number}.cross-norm"),
            self._linear(f"{number}.inner"),
            self._linear(f"{number}.outer"),
            self._norm(block.feed_forward_norm.norm, f"{number}.forward-norm"),
        )

    # ------------------------------------------------------------ decoding

    def slots(self, rows: int, beam: int, width: int, capacity: int, ancestry: Tensor, position: Tensor) -> Slots:
        """Room for so many sentences. `ancestry` and `position` belong to the search, which moves them."""
        decoder, layers = self.model.decoder, len(self.layers)
        decoder.reach(capacity)
        self.encoder.reach(width)
        empty = torch.zeros((), dtype=self.dtype, device=self.device)
        added = self._groups.get("positions")
        if added is None and decoder.added is not None:
            added = decoder.added(torch.arange(capacity, device=self.device)).to(self.dtype)
        turns = None if decoder.rotary is None else decoder.rotary.rows[:capacity].to(self.dtype)
        cache = empty.new_zeros(layers, 2, rows, capacity, beam, self.groups, self.head_width)
        return Slots(
            torch.zeros(rows, width, dtype=torch.long, device=self.device),
            torch.ones(rows, dtype=torch.long, device=self.device),
            empty.new_zeros(rows, width, layers, 2, self.groups, self.head_width),
            Past(cache, ancestry, position, None, turns),
            added,
        )

    def encode(self, slots: Slots) -> None:
        """Read the sentences in the slots: the memory of all decoder layers."""
        width = slots.ids.size(1)
        mask_RS = torch.arange(width, device=self.device) < slots.lengths[:, None]
        embedded_RSW = self._embed(slots.ids, "source")
        hidden_RSW = self.encoder(embedded_RSW, mask_RS)
        cross = self._linear("memory")
        slots.memory.copy_(nn.functional.linear(hidden_RSW, cross.weight, cross.bias).view(slots.memory.shape))

    def _embed(self, tokens: Tensor, side: str) -> Tensor:
        weight = self._groups.get(f"{side}-embedding", self._groups["embedding"])
        return nn.functional.embedding(tokens, weight) * self.section.width**0.5

    def step(self, tokens_N: Tensor, slots: Slots) -> Tensor:
        """One token for each hypothesis, at the position all stand at; logits (N, V) of the next, without `bias`."""
        do, position = self.operations, slots.past.position
        x = self._embed(tokens_N, "target")
        if slots.added is not None:
            x = x + slots.added.index_select(0, position)
        past = slots.past if self.model.decoder.relative is None else self._relative(slots.past)
        past = do.prepare(past)
        pre = self.section.norm == "pre"
        norms: list[Norm | None] = []  # the one that follows each sum
        for layer in self.layers:
            norms += [layer.self_norm, layer.cross_norm, layer.forward_norm]
        h = do.normalise(x, self.layers[0].self_norm) if pre else x
        following = iter([*norms[1:], self.final] if pre else norms)

        def add_norm(x: Tensor, y: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
            norm = next(following)
            if norm is None:
                total = x + (y + bias)
                return total, total
            total, normed = do.add_norm(x, y, bias, norm)
            return (total, normed) if pre else (normed, normed)

        for number, layer in enumerate(self.layers):
            seen = do.self_attention(_times(h, layer.qkv), layer.qkv.bias, past, number, self.heads)
            x, h = add_norm(x, _times(seen, layer.self_output), layer.self_output.bias)
            query = _times(h, layer.query)
            seen = do.cross_attention(query, layer.query.bias, slots.memory, slots.lengths, number, self.heads)
            x, h = add_norm(x, _times(seen, layer.cross_output), layer.cross_output.bias)
            inner = do.activate(_times(h, layer.inner), layer.inner.bias, self.section.activation)
            x, h = add_norm(x, _times(inner, layer.outer), layer.outer.bias)
        if not pre and self.final is not None:
            h = do.normalise(h, self.final)
        return self._head(h)

    def _head(self, hidden_NW: Tensor) -> Tensor:
        """Logits in float32: rounded to bfloat16 the best words would often tie."""
        weight_WV = self._groups.get("head", self._groups["embedding"]).t()
        if hidden_NW.is_cuda and self.dtype != torch.float32:
            return torch.mm(hidden_NW, weight_WV, out_dtype=torch.float32)
        return (hidden_NW @ weight_WV).float()

    @property
    def bias(self) -> Tensor:
        """(V,) what is to be added to the logits: the search does it on its way."""
        return self._groups["bias"]

    def _relative(self, past: Past) -> Past:
        """The bias of this step's queries, (H, C)."""
        relative = self.model.decoder.relative
        assert relative is not None
        columns_C = torch.arange(past.cache.size(3), device=self.device)
        buckets_C = relative.bucket(columns_C - past.position)
        bias_HC = self._groups["relative"].index_select(0, buckets_C).t().contiguous()
        return Past(past.cache, past.ancestry, past.position, bias_HC, past.turns)


def _times(x_NI: Tensor, linear: Linear) -> Tensor:
    return x_NI @ linear.weight.t()


def _decoder_block(model: Transformer, number: int) -> Block:
    block = model.decoder.blocks[number]
    assert isinstance(block, Block)
    return block


def fused(model: Transformer) -> dict[str, list[Tensor]]:
    """The decoder's weights by name: those in one list lie below each other in one matrix."""
    groups: dict[str, list[Tensor]] = {"embedding": [model.embedding.weight], "bias": [model.bias]}
    if model.source_embedding is not model.embedding:
        groups["source-embedding"] = [model.source_embedding.weight]
    if not model.tied:
        groups["head"] = [model.weight]

    def linear(name: str, *parts: nn.Linear) -> None:
        groups[f"{name}.weight"] = [part.weight for part in parts]
        groups[f"{name}.bias"] = [part.bias for part in parts]

    def norm(name: str, module: nn.Module) -> None:
        groups.update((f"{name}.{key}", [weight]) for key, weight in module.named_parameters())

    blocks = [_decoder_block(model, number) for number in range(len(model.decoder.blocks))]
    linear("memory", *(part for block in blocks for part in _memory(block)))
    norm("final", model.decoder.norm)
    for number, block in enumerate(blocks):
        assert block.cross is not None
        assert isinstance(block.cross_norm, AddNorm)
        linear(f"{number}.qkv", block.attention.query, block.attention.key, block.attention.value)
        linear(f"{number}.self", block.attention.output)
        linear(f"{number}.query", block.cross.query)
        linear(f"{number}.cross", block.cross.output)
        gate = [] if block.feed_forward.gate is None else [block.feed_forward.gate]
        linear(f"{number}.inner", block.feed_forward.inner, *gate)
        linear(f"{number}.outer", block.feed_forward.outer)
        norm(f"{number}.self-norm", block.attention_norm.norm)
        norm(f"{number}.cross-norm", block.cross_norm.norm)
        norm(f"{number}.forward-norm", block.feed_forward_norm.norm)
    for name, module in (("positions", model.decoder.added), ("relative", model.decoder.relative)):
        if module is not None:
            groups.update((name, [weight]) for weight in module.parameters())
    return groups


def _memory(block: Block) -> Iterator[nn.Linear]:
    assert block.cross is not None
    yield block.cross.key
    yield block.cross.value


@cache
def default_operations(device: torch.device) -> Operations:
    """Triton's kernels where they run, which a small sum shows; else plain PyTorch."""
    if device.type == "cuda":
        try:
            from jumok.models import step_triton

            x = torch.linspace(-2, 3, 60, device=device).view(3, 20).sin()  # no random numbers: training counts them
            norm = Norm(x[0].clone(), x[1].clone(), 1e-5)
            ours, theirs = step_triton.add_norm(x, x, norm.weight, norm), step_torch.add_norm(x, x, norm.weight, norm)
            if all(torch.allclose(a, b, atol=1e-4) for a, b in zip(ours, theirs, strict=True)):
                return step_triton
        except Exception:  # no Triton, no compiler for its launchers, a GPU it does not know: slower, not wrong
            pass
    return step_torch
