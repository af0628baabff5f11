"""Readers: whatever gives a vector for each word of a text and one for the text. What is said about texts and words
stands on them, the same for a BERT and for the recurrent layers it is compared with."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import PAD, Sequences
from jumok.layers.dropout import Dropout
from jumok.layers.recurrent import Recurrent
from jumok.models.bert import SPREAD, Bert, Labels
from jumok.recipe import BertSection, RecurrentReaderSection

Reader = Any  # a Bert or a RecurrentReader: (words, segments) -> (B, T, D), and pooled(hidden, words) -> (B, D)


class RecurrentReader(nn.Module):
    """h = recurrent layers, both ways, over E[x] + S[segment]. A text is the largest value of each number over its
    words (Conneau et al. 2017): the end of a long text knows little of its beginning."""

    def __init__(self, section: RecurrentReaderSection, vocabulary: int) -> None:
        super().__init__()
        self.section = section
        self.embedding = nn.Embedding(vocabulary, section.embedding, padding_idx=PAD)
        self.segments = nn.Embedding(section.segments, section.embedding) if section.segments else None
        for table in (self.embedding, self.segments):
            if table is not None:
                nn.init.normal_(table.weight, std=5 * SPREAD)  # no norm follows that would bring it to size
        with torch.no_grad():
            self.embedding.weight[PAD].zero_()
        self.dropout = Dropout(section.dropout)
        self.recurrent = Recurrent(
            section.cell,
            section.embedding,
            section.width,
            section.layers,
            section.bidirectional,
            section.dropout,
            section.forget_bias,
        )

    def forward(self, words: Sequences, segments: Tensor | None = None) -> Tensor:
        embedded_BTD = self.embedding(words.ids)
        if self.segments is not None:
            embedded_BTD = embedded_BTD + (self.segments.weight[0] if segments is None else self.segments(segments))
        hidden_BTD, _ = self.recurrent(self.dropout(embedded_BTD), words.lengths)
        return hidden_BTD

    def pooled(self, hidden_BTD: Tensor, words: Sequences) -> Tensor:
        return hidden_BTD.masked_fill(~words.mask[..., None], -torch.inf).amax(dim=1)


def build_reader(section: BertSection | RecurrentReaderSection, vocabulary: int) -> Bert | RecurrentReader:
    return Bert(section, vocabulary) if isinstance(section, BertSection) else RecurrentReader(section, vocabulary)


class TextLabeller(nn.Module):
    """Scores of labels (or numbers) for a text: (B, L).

    Two texts that are read apart (Reimers and Gurevych 2019) are compared by their vectors u and v, of equal length:
    labels stand on [u; v; |u − v|; u ⊙ v], a number is a · cos(u, v) + b. The rows are then all first texts, and all
    second ones behind them.
    """

    def __init__(self, section: BertSection | RecurrentReaderSection, vocabulary: int, labels: int) -> None:
        super().__init__()
        self.reader: Reader = build_reader(section, vocabulary)
        self.apart = reads_apart(section)
        self.head: nn.Module = Labels(section, labels, 4 * section.width if self.apart else None)
        if self.apart and labels == 1:
            self.head = Likeness()

    def forward(self, words: Sequences, segments: Tensor | None = None) -> Tensor:
        pooled_BD: Tensor = self.reader.pooled(self.reader(words, segments), words)
        if self.apart:
            size = pooled_BD.size(-1) ** 0.5
            u_BD, v_BD = (size * F.normalize(pooled_BD.float(), dim=-1)).chunk(2)
            if isinstance(self.head, Likeness):
                return self.head(u_BD, v_BD)
            pooled_BD = torch.cat([u_BD, v_BD, (u_BD - v_BD).abs(), u_BD * v_BD], dim=-1)
        scores: Tensor = self.head(pooled_BD)
        return scores


class Likeness(nn.Module):
    """a · cos(u, v) + b of vectors of length √D: (B, 1). It begins where the numbers of vectors that were pretrained to
    be alike lie: from none (−1.5 standard deviations) to all (1.5)."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.tensor(3.0)), nn.Parameter(torch.tensor(-1.5))

    def forward(self, u_BD: Tensor, v_BD: Tensor) -> Tensor:
        return (self.scale * (u_BD * v_BD).mean(dim=-1) + self.shift)[:, None]


def reads_apart(section: BertSection | RecurrentReaderSection) -> bool:
    return isinstance(section, BertSection) and section.pairs == "apart"


class WordLabeller(nn.Module):
    """Scores of labels for each token: (B, T, L). With two labels: how well an answer begins, and ends, there."""

    def __init__(self, section: BertSection | RecurrentReaderSection, vocabulary: int, labels: int) -> None:
        super().__init__()
        self.reader: Reader = build_reader(section, vocabulary)
        self.head = Labels(section, labels)

    def forward(self, words: Sequences, segments: Tensor | None = None) -> Tensor:
        scores: Tensor = self.head(self.reader(words, segments))
        return scores
