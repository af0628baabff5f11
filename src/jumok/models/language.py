"""Language models: a text as a chain of tokens, each predicted from all that came before it.

    p(y) = Π_t p(y_t | y_<t)

Recurrent ones (Mikolov et al. 2010; Zaremba et al. 2014) keep what came before in a state, the Transformer (Radford et
al. 2019: the decoder of Vaswani et al. 2017 without an encoder) looks back at it. Both generate through the Stepper
protocol: `encode` reads the prompts in one pass, whatever their lengths, and the search goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import PAD, UNKNOWN, Sequences
from jumok.errors import BadInput
from jumok.layers.cache import KeyValueCache
from jumok.layers.embedding import Embedding
from jumok.layers.linear import linear
from jumok.layers.recurrent import Recurrent, State
from jumok.layers.stack import Stack
from jumok.models.predictor import Predictor
from jumok.models.seq2seq import HIDDEN_SCALE
from jumok.recipe import ModelSection, RecurrentLanguageSection, TransformerLanguageSection


@dataclass(frozen=True)
class Prompt:
    """What the search goes on from: each row's last token, which is read at the first step, and all before it."""

    last: Tensor  # (B,)
    past: Any = None  # until `start` takes it


class LanguageModel(Predictor):
    """`forward` gives hidden states, `head` turns those that are needed into logits; the rest is for generating."""

    replays = False  # whether its training may be compiled and recorded: nothing in it waits for the GPU
    carries = False  # whether reading on from `past` is what it was made for, however long the text

    def __init__(self, vocabulary: int, embedding: int, width: int, tied: bool, word_dropout: float) -> None:
        super().__init__()
        self.embedding = Embedding(vocabulary, embedding, PAD)
        self.word_dropout = word_dropout
        self.tied = tied
        bridged = tied and embedding != width
        self.project = linear(width, embedding, bias=False) if bridged else nn.Identity()
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        if not tied:
            self.weight = nn.Parameter(torch.empty(vocabulary, width))
            nn.init.normal_(self.weight, std=width**-0.5)

    def embed(self, ids_BT: Tensor) -> Tensor:
        """Word vectors. In training a share of all words is unseen, wherever it stands (Gal and Ghahramani 2016)."""
        if not self.training or not self.word_dropout:
            return self.embedding(ids_BT)
        seen_V1 = F.dropout(torch.ones_like(self.embedding.weight[:, :1]), self.word_dropout)
        return self.embed_seen(ids_BT, F.embedding(ids_BT, seen_V1))

    def embed_seen(self, ids_BT: Tensor, seen_BT1: Tensor) -> Tensor:
        """Word vectors where some words are not seen (0): zero, and the others larger so that the mean stays."""
        return self.embedding(ids_BT) * seen_BT1

    def output(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits are W h + b, where W may be the word vectors themselves (Press and Wolf 2017)."""
        return self.project(hidden), self.embedding.weight if self.tied else self.weight, self.bias

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Hidden states (B, T, D) of a text; `head` of position t predicts the token after it."""
        raise NotImplementedError

    def read(self, ids_BT: Tensor, past: Any = None, lengths: Tensor | None = None) -> tuple[Tensor, Any]:
        """The same, after what `past` has read; and the past of whatever comes next. Rows may be padded on the right
        when nothing came before."""
        raise NotImplementedError

    def select_past(self, past: Any, rows: Tensor) -> Any:
        raise NotImplementedError

    def join_pasts(self, parts: Sequence[Any]) -> Any:
        raise NotImplementedError

    # ------------------------------------------------------------ the Stepper protocol

    def encode(self, batch: Sequences) -> Prompt:
        """Read prompts (each of one token at least) but for their last tokens."""
        before_B = batch.lengths - 1
        last_B = batch.ids.gather(1, before_B[:, None])[:, 0]
        # without a token there is still a past: nothing
        return Prompt(last_B, self.read(batch.ids[:, :-1], lengths=before_B)[1])

    def start(self, memory: Prompt, rows: int, capacity: int, coverage: bool = False) -> Any:
        if coverage:
            raise BadInput("a language model has no source whose coverage could be counted")
        return memory.past

    def step(self, tokens: Tensor, positions: Tensor, memory: Prompt, cache: Any) -> tuple[Tensor, Any]:
        tokens = torch.where(positions == 0, memory.last, tokens)
        hidden_B1D, cache = self.read(tokens[:, None], cache)
        return F.log_softmax(self.head(hidden_B1D[:, 0]).float(), dim=-1), cache

    def select(self, memory: Prompt, cache: Any, rows: Tensor) -> tuple[Prompt, Any]:
        return Prompt(memory.last.index_select(0, rows)), self.select_past(cache, rows)

    def join(self, parts: Sequence[tuple[Prompt, Any]]) -> tuple[Prompt, Any]:
        last_B = torch.cat([memory.last for memory, _ in parts])
        return Prompt(last_B), self.join_pasts([cache for _, cache in parts])

    def coverage(self, cache: Any) -> Tensor:
        raise BadInput("a language model has no source whose coverage could be counted")


class RecurrentLanguageModel(LanguageModel):
    """h_t = cell(E[y_t], h_(t-1)), layer upon layer.

    Dropout has one mask for all positions of a row (Gal and Ghahramani 2016), on what goes into each layer and on what
    comes out of the last: a mask drawn anew at every position would hide less the longer the text is.
    """

    carries = True

    def __init__(self, section: RecurrentLanguageSection, vocabulary: int) -> None:
        super().__init__(vocabulary, section.embedding, section.width, section.tie_embeddings, section.word_dropout)
        self.dropout = section.dropout
        self.layers = nn.ModuleList(
            Recurrent(
                section.cell,
                section.width if layer else section.embedding,
                section.width,
                forget_bias=section.forget_bias,
                written_out=section.written_out,
            )
            for layer in range(section.layers)
        )

    def output(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().output(hidden * HIDDEN_SCALE)

    def forward(self, ids_BT: Tensor) -> Tensor:
        return self.read(ids_BT)[0]

    def read(self, ids_BT: Tensor, past: State | None = None, lengths: Tensor | None = None) -> tuple[Tensor, State]:
        x_BTD, finals = self.embed(ids_BT), []
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, Recurrent)
            before = None if past is None else tuple(part[number : number + 1] for part in past)
            if ids_BT.size(1):
                x_BTD, after = layer(self._locked(x_BTD), lengths, before)
            else:
                after = layer.initial_state(x_BTD) if before is None else before
            finals.append(after)
        return self._locked(x_BTD), tuple(torch.cat(parts) for parts in zip(*finals, strict=True))

    def _locked(self, x_BTD: Tensor) -> Tensor:
        if not self.training or not self.dropout:
            return x_BTD
        return x_BTD * F.dropout(torch.ones_like(x_BTD[:, :1]), self.dropout)

    def select_past(self, past: State, rows: Tensor) -> State:
        return tuple(part.index_select(1, rows) for part in past)

    def join_pasts(self, parts: Sequence[State]) -> State:
        return tuple(torch.cat(part, dim=1) for part in zip(*parts, strict=True))


class TransformerLanguageModel(LanguageModel):
    """h = blocks(E[y] √d), each position looking at itself and what came before."""

    replays = True

    def __init__(self, section: TransformerLanguageSection, vocabulary: int) -> None:
        super().__init__(vocabulary, section.width, section.width, section.tie_embeddings, section.word_dropout)
        self.section = section
        self.stack = Stack(section, section.layers, "causal", "decoder")

    def forward(self, ids_BT: Tensor) -> Tensor:
        return self.stack(self.embed(ids_BT))

    def embed_seen(self, ids_BT: Tensor, seen_BT1: Tensor) -> Tensor:
        """Words not seen are `<unk>`, never zero: a position that is zero, and has nothing but zeros to look at, stays
        zero through every layer, and the gradient of each norm there is 1/√ε times too large."""
        unseen_BT = (seen_BT1[..., 0] == 0) & (ids_BT != PAD)
        return self.embedding(ids_BT.masked_fill(unseen_BT, UNKNOWN))

    def read(
        self, ids_BT: Tensor, past: KeyValueCache | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, KeyValueCache]:
        tokens, embedded_BTD = ids_BT.size(1), self.embed(ids_BT)
        if past is None:
            groups = self.section.key_value_heads or self.section.heads
            head_width = self.section.width // self.section.heads
            past = KeyValueCache.empty(
                self.section.layers, len(ids_BT), tokens + ROOM, groups, head_width, embedded_BTD
            )
        past = past.with_room(tokens)
        hidden_BTD = self.stack(embedded_BTD, cache=past) if tokens else embedded_BTD
        past = past.advanced(tokens)
        if lengths is not None and bool((lengths != tokens).any()):
            # a shorter row goes on at its own end, over the padding that was read there
            past = KeyValueCache(past.store, past.filled, lengths.to(ids_BT.device))
        return hidden_BTD, past

    def select_past(self, past: KeyValueCache, rows: Tensor) -> KeyValueCache:
        return past.select(rows)

    def join_pasts(self, parts: Sequence[KeyValueCache]) -> KeyValueCache:
        return KeyValueCache.join(parts)


ROOM = 32  # columns for new tokens that a cache begins with; it grows by itself


def build_language_model(section: ModelSection, vocabulary: int) -> LanguageModel:
    """The language model a recipe describes."""
    if isinstance(section, RecurrentLanguageSection):
        return RecurrentLanguageModel(section, vocabulary)
    if isinstance(section, TransformerLanguageSection):
        return TransformerLanguageModel(section, vocabulary)
    raise BadInput(f"model.kind: {section.kind} is no language model; use recurrent-lm or transformer-lm")
