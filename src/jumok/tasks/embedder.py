"""Texts as vectors, from any model that reads texts (`models/reader.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jumok.data.batch import Sequences
from jumok.data.rows import Rows
from jumok.models.bert import mean_over
from jumok.tasks.classifier import Text, as_pair, encode_texts, text_scores
from jumok.text.tokenizer import Tokenizer

Pooling = Literal["mean", "first", "max"]
POOLINGS: tuple[Pooling, ...] = ("mean", "first", "max")


class _Pooled(nn.Module):
    def __init__(self, reader: nn.Module, pooling: Pooling) -> None:
        super().__init__()
        self.reader, self.pooling = reader, pooling

    def forward(self, words: Sequences, segments: Tensor | None = None) -> Tensor:
        hidden_BTD: Tensor = self.reader(words, segments)
        if self.pooling == "first":
            return hidden_BTD[:, 0]
        if self.pooling == "max":
            return hidden_BTD.masked_fill(~words.mask[..., None], -torch.inf).amax(dim=1)
        return mean_over(hidden_BTD, words)


def embed(
    reader: nn.Module,
    tokenizer: Tokenizer,
    texts: Sequence[Text],
    max_length: int,
    device: torch.device,
    pooling: Pooling = "mean",
    normalise: bool = True,
) -> npt.NDArray[np.float32]:
    """(N, D): of each text the mean over its tokens ([CLS] and [SEP] among them, as in Sentence-BERT, Reimers and
    Gurevych 2019), the first token's vector, or the largest value of each number; of length 1, if `normalise`."""
    rows, segments, _ = encode_texts(tokenizer, [as_pair(text) for text in texts], max_length)
    found = text_scores(_Pooled(reader, pooling), Rows.of(rows, segments), device)
    if normalise:
        found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    return found
