"""Models that look at pictures, as one graph: (B, C, H, W) with values from 0 to 255 in, of the size the model knows.

    a Vision Transformer         -> scores (B, L), before the softmax
    a CTC reader of words        -> log p (B, columns, V) of a character or nothing (id 0) in each column
    a reader of words that writes   onnx_words.py

What a CTC reader reads is then the likeliest of each column, repetitions taken together and zeros taken out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jumok.interop.onnx_graph import Graph, Values
from jumok.interop.onnx_plain import plain
from jumok.interop.onnx_words import BATCHES, columns, words_graph
from jumok.models.permuted import PermutedRecognizer
from jumok.models.recognizer import CtcRecognizer, Recognizer
from jumok.models.recognizer_decoders import WritingRecognizer
from jumok.models.vit import ImageLabeller


class LabellerGraph(nn.Module):
    def __init__(self, model: ImageLabeller) -> None:
        super().__init__()
        self.model = plain(model)

    def forward(self, given: list[Tensor]) -> Values:
        return (self.model(given[0]),)


class ColumnsGraph(nn.Module):
    def __init__(self, model: CtcRecognizer) -> None:
        super().__init__()
        self.model = plain(model)

    def forward(self, given: list[Tensor]) -> Values:
        return (columns(self.model, self.model.encoder(given[0])),)


def labeller_graph(model: ImageLabeller) -> Graph:
    shape = (model.section.channels, *model.section.image)
    return _graph(LabellerGraph(model), "scores", shape, lambda given: (model(given[0]),))


def recognizer_graph(model: Recognizer) -> Graph:
    if isinstance(model, PermutedRecognizer | WritingRecognizer):
        return words_graph(model)
    assert isinstance(model, CtcRecognizer)
    shape = (model.section.channels, *model.section.image)
    encoder, ctc = model.encoder, model.ctc

    def expected(given: list[Tensor]) -> Values:
        return (ctc.head.log_probs(encoder.columns(encoder(given[0]))),)

    return _graph(ColumnsGraph(model), "log_probs", shape, expected)


def _graph(module: nn.Module, name: str, shape: tuple[int, ...], expected: Any) -> Graph:
    def sample(sizes: Any) -> list[Tensor]:
        return [torch.randint(256, (sizes["batch"], *shape)).float()]

    tried = tuple({"batch": rows} for rows in BATCHES)
    return Graph(module, {"images": {0: "batch"}}, {name: {0: "batch"}}, sample, expected, tried)
