"""BERT (Devlin et al. 2019): a Transformer's encoder alone, in which every word sees all words, before and after it.

    h = encoder(norm(E[x] + P[position] + S[segment]))        c = tanh(W h_0 + b)

Pretrained, it guesses words that were hidden from it; then a small head on h (a label for each word, a span) or on c (a
label for the text) is all that a task adds. The classic model has learned positions, post-norm and GELU. The modern one
(Warner et al. 2024) differs in keys alone: rotary positions, pre-norm, a gated feed-forward network.
"""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from jumok.data.batch import PAD, Sequences
from jumok.data.packing import PackedSide
from jumok.layers.block import ACTIVATIONS, build_norm
from jumok.layers.linear import for_products, linear
from jumok.layers.position import Learned
from jumok.layers.stack import Stack
from jumok.models.predictor import Predictor
from jumok.recipe import BertSection, RecurrentReaderSection

SPREAD = 0.02  # standard deviation of all weights at the start, as in the paper's code


class Bert(nn.Module):
    """Reads texts: `forward` gives a vector for each word, `pooled` makes one of the first word's for the text."""

    def __init__(self, section: BertSection, vocabulary: int) -> None:
        super().__init__()
        self.section = section
        self.embedding = nn.Embedding(vocabulary, section.width, padding_idx=PAD)
        self.segments = nn.Embedding(section.segments, section.width) if section.segments else None
        # learned positions come in before the norm; all others are the stack's affair
        learned = section.position == "learned"
        self.positions = Learned(section.width, section.max_positions) if learned else None
        self.norm = build_norm(section)
        inner = section.model_copy(update={"position": "none"}) if learned else section
        self.encoder = Stack(inner, section.layers, "self", "encoder")
        self.pooler = linear(section.width, section.width)
        self.apply(start)
        if self.encoder.relative is not None:  # distances begin equal, as everywhere
            nn.init.zeros_(self.encoder.relative.weight.weight)

    def forward(self, words: Sequences | PackedSide, segments: Tensor | None = None) -> Tensor:
        """(B, T, D). `segments` (B, T) says which of the texts of a row a word belongs to; without it, the first. Texts
        that are packed lie end to end, and B is 1."""
        embedded_BTD = self.embedding(words.ids)
        if self.segments is not None:
            embedded_BTD = embedded_BTD + (self.segments.weight[0] if segments is None else self.segments(segments))
        packed = words if isinstance(words, PackedSide) else None
        if self.positions is not None:
            if packed is None:
                self.positions.reach(words.ids.size(1))
                places = torch.arange(words.ids.size(1), device=words.ids.device)
            else:
                places = packed.positions  # the longest may be a bound that none has
            embedded_BTD = embedded_BTD + self.positions(places)
        embedded_BTD = self.norm(embedded_BTD)
        hidden: Tensor = (
            self.encoder(embedded_BTD, packed=packed)
            if isinstance(words, PackedSide)
            else self.encoder(embedded_BTD, words.mask)
        )
        return hidden

    def pooled(self, hidden_BTD: Tensor, words: Sequences | PackedSide | None = None) -> Tensor:
        """What stands for a text, (B, D): c, or the mean over all words (of texts side by side)."""
        if self.section.pooling == "first":
            return self.first(hidden_BTD, words)
        assert isinstance(words, Sequences)
        return mean_over(hidden_BTD, words)

    def first(self, hidden_BTD: Tensor, words: Sequences | PackedSide | None = None) -> Tensor:
        """c = tanh(W h_0 + b): (B, D), from the first word."""
        if isinstance(words, PackedSide):
            # a batch that repeats may tell of texts that are not there, behind the end
            first_BD = hidden_BTD[0, words.starts.clamp(max=hidden_BTD.size(1) - 1)]
        else:
            first_BD = hidden_BTD[:, 0]
        return torch.tanh(self.pooler(for_products(first_BD)))


def mean_over(hidden_BTD: Tensor, words: Sequences) -> Tensor:
    """The mean over the real words of each text: (B, D)."""
    mask_BT1 = words.mask[..., None]
    return (hidden_BTD * mask_BT1).sum(dim=1) / mask_BT1.sum(dim=1)


class HiddenWords(Predictor):
    """Which word was hidden: softmax(E norm(f(W h + b)) + b'), where E are the word vectors themselves and f is the
    feed-forward networks' own. `order`, where it is asked for: how two halves of a text stand to each other."""

    def __init__(self, reader: Bert, order: bool = False) -> None:
        super().__init__()
        self.reader = reader
        self.replays = reader.section.position != "relative"  # its packed attention is laid out anew for every batch
        self.activate = ACTIVATIONS[reader.section.activation]
        self.transform = linear(reader.section.width, reader.section.width)
        self.norm = build_norm(reader.section)
        self.bias = nn.Parameter(torch.zeros(reader.embedding.num_embeddings))
        start(self.transform)
        self.order = Labels(reader.section, 2) if order else None

    def output(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        made = self.norm(self.activate(self.transform(for_products(hidden))))
        return made, self.reader.embedding.weight, self.bias


class Labels(nn.Module):
    """Scores of labels, W dropout(x) + b: of a text (x is c), or of each word (x is h); two labels of each word are how
    well an answer begins and ends there."""

    def __init__(self, section: BertSection | RecurrentReaderSection, labels: int, width: int | None = None) -> None:
        super().__init__()
        self.dropout = nn.Dropout(section.dropout)
        self.scores = linear(width or section.width, labels)
        start(self.scores)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.scores(self.dropout(for_products(x)))
        return scores


def start(module: nn.Module) -> None:
    """All weights from N(0, 0.02²), biases at 0, padding the zero vector."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=SPREAD)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, nn.Embedding) and module.padding_idx is not None:
        with torch.no_grad():
            module.weight[module.padding_idx].zero_()


LAYER = re.compile(r"(?:^|\.)encoder\.blocks\.(\d+)\.")
# a head may have a norm of its own; a Vision Transformer has patches for words, and tokens that are none
BELOW = re.compile(r"(?:^|\.)reader\.(?:(?:embedding|segments|positions|norm|stem|stem_norm)\.|tokens$)")


def depth_of(name: str, layers: int) -> int:
    """How far from the words (or patches) a parameter of a model around a BERT (or a ViT) is: 0 their vectors, then the
    layers, one more what stands on them."""
    found = LAYER.search(name)
    if found is not None:
        return int(found.group(1)) + 1
    return 0 if BELOW.search(name) else layers + 1


def freeze(model: nn.Module, depth: int, layers: int) -> None:
    """What is no further than `depth` from the words does not learn."""
    for name, parameter in model.named_parameters():
        if depth_of(name, layers) <= depth:
            parameter.requires_grad_(False)
