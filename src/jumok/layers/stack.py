"""A stack of blocks over one text, with its positions: the encoder, the decoder, and a language model are each one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from jumok.data.packing import PackedSide
from jumok.errors import BadInput
from jumok.layers.block import Block, BlockSection, Source, build_norm
from jumok.layers.cache import KeyValueCache
from jumok.layers.dropout import Dropout
from jumok.layers.multihead import Look
from jumok.layers.norm import Sum, total
from jumok.layers.position import Learned, RelativeBias, Rotary, Sinusoidal
from jumok.layers.spans import Spans


class StackSection(BlockSection, Protocol):
    @property
    def final_norm(self) -> bool | None: ...
    @property
    def position(self) -> str: ...
    @property
    def max_positions(self) -> int: ...


class Stack(nn.Module):
    """`kind` "self": every word sees all words; "causal": only those before it and itself."""

    def __init__(self, section: StackSection, layers: int, kind: str, name: str, cross: bool = False) -> None:
        super().__init__()
        self.causal = kind == "causal"
        self.computed_again = False
        self.dropout = Dropout(section.dropout)
        self.added: Sinusoidal | Learned | None = None
        self.rotary = Rotary(section.width // section.heads) if section.position == "rotary" else None
        self.relative = (
            RelativeBias(section.heads, both_ways=not self.causal) if section.position == "relative" else None
        )
        if section.position.startswith("sinusoidal"):
            self.added = Sinusoidal(section.width, halves=section.position == "sinusoidal-halves")
        elif section.position == "learned":
            self.added = Learned(section.width, section.max_positions)
        deepest: float = getattr(section, "stochastic_depth", 0.0)
        self.blocks = nn.ModuleList(
            Block(section, kind, f"{name}.{number}", cross, deepest * number / max(1, layers - 1))
            for number in range(layers)
        )
        final = section.norm == "pre" if section.final_norm is None else section.final_norm
        self.norm = build_norm(section) if final else nn.Identity()

    def reach(self, length: int) -> None:
        """Make sure that positions below `length` can be told."""
        for positions in (self.added, self.rotary, self.relative):
            if positions is not None:
                positions.reach(length)

    def forward(
        self,
        embedded_BTD: Tensor,
        mask: Tensor | None = None,
        sources: Sequence[Source] | None = None,
        cache: KeyValueCache | None = None,
        packed: PackedSide | None = None,
    ) -> Tensor:
        """Hidden states of the embedded words. With a cache they come after what is in it, which they also see;
        the caller has made room (`with_room`) and counts them afterwards (`advanced`). `packed` says that the only row
        is several sentences end to end."""
        tokens = embedded_BTD.size(1) if packed is None else packed.longest
        filled = 0 if cache is None else cache.filled
        # where rows differ, columns may be left from longer rows that have gone: no position of any row that is there;
        # and the longest sentence of a packed batch may be a bound that none has
        bounded = packed is not None or (cache is not None and cache.lengths is not None)
        if not bounded or not isinstance(self.added, Learned):
            self.reach(filled + tokens)
        positions = torch.arange(tokens, device=embedded_BTD.device) if cache is None else cache.positions(tokens)
        places = positions if packed is None else packed.positions  # of the words as they lie
        if cache is not None and mask is None:
            mask = cache.mask(tokens)
        if self.added is not None:
            embedded_BTD = embedded_BTD + self.added(places).to(embedded_BTD.dtype)
        bias = turns = None
        if self.relative is not None:
            keys = torch.arange(filled + tokens, device=embedded_BTD.device)
            bias = self.relative(positions, keys).to(embedded_BTD.dtype)
        if self.rotary is not None:
            turns = self.rotary(places).to(embedded_BTD.dtype)
        # a single new token may look at everything that is there
        causal = self.causal and (cache is None or (cache.lengths is None and tokens > 1))
        spans = None
        if packed is not None:
            spans = Spans.past(packed) if causal else Spans.own(packed)
        look = Look(mask, causal, bias, turns, spans)
        x_BTD: Tensor | Sum = self.dropout(embedded_BTD)
        for number, block in enumerate(self.blocks):
            source = None if sources is None else sources[number]
            past = None if cache is None else cache.past(number)
            if self.computed_again and self.training and torch.is_grad_enabled():
                x_BTD = checkpoint(block, x_BTD, look, source, past, use_reentrant=False)
            elif torch.compiler.is_compiling():
                assert isinstance(block, Block)
                x_BTD = block.chained(x_BTD, look, source, past)
            else:
                x_BTD = block(x_BTD, look, source, past)
        return self.norm(total(x_BTD))


def compute_again(model: nn.Module) -> None:
    """`training.checkpoint_activations` (Chen et al. 2016): of each block only its input is kept for the backward pass,
    the rest is computed again there, with the same dropout."""
    stacks = [module for module in model.modules() if isinstance(module, Stack)]
    if not stacks:
        raise BadInput("training.checkpoint_activations needs a Transformer: a recurrent model keeps little anyhow")
    for stack in stacks:
        stack.computed_again = True
