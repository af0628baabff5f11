"""Models that look at pictures, as one graph: (B, C, H, W) with values from 0 to 255 in, of the size the model knows.

    a Vision Transformer    -> scores (B, L), before the softmax
    a reader of words       -> log p (B, columns, V) of a character or nothing (id 0) in each column, by its CTC head

What is read is then the likeliest of each column, repetitions taken together and zeros taken out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.interop.onnx_graph import Graph, Values
from jumok.interop.onnx_plain import plain
from jumok.models.permuted import PermutedRecognizer
from jumok.models.recognizer import CtcHead, CtcRecognizer, Recognizer
from jumok.models.vit import ImageLabeller

BATCHES = (3, 1, 8)


class LabellerGraph(nn.Module):
    def __init__(self, model: ImageLabeller) -> None:
        super().__init__()
        self.model = plain(model)

    def forward(self, given: list[Tensor]) -> Values:
        return (self.model(given[0]),)


class ColumnsGraph(nn.Module):
    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        self.model = plain(model)

    def forward(self, given: list[Tensor]) -> Values:
        return (columns(self.model, given[0]),)


def columns(model: Recognizer, images_BCHW: Tensor) -> Tensor:
    """log p (B, columns, V)"""
    assert isinstance(model, CtcRecognizer | PermutedRecognizer)
    assert isinstance(model.ctc, CtcHead)
    hidden_BSD, grid = model.encoder(images_BCHW), model.encoder.grid
    columns_BCD = hidden_BSD.unflatten(1, grid).mean(dim=1)  # as `Encoder.columns`, of any number of pictures
    return model.ctc.head.log_probs(columns_BCD)


def labeller_graph(model: ImageLabeller) -> Graph:
    shape = (model.section.channels, *model.section.image)
    return _graph(LabellerGraph(model), "scores", shape, lambda given: (model(given[0]),))


def recognizer_graph(model: Recognizer) -> Graph:
    if not isinstance(model, CtcRecognizer | PermutedRecognizer):
        raise BadInput(
            f"model.decoder {model.section.decoder}: it writes character by character, which has no graph; of readers, "
            "those with model.decoder ctc, or permuted with a CTC head (model.ctc above 0), can be exported to ONNX"
        )
    if model.ctc is None:
        raise BadInput(
            "model.ctc 0: this reader has no CTC head, by which a permuted one is exported to ONNX. Train it with "
            "model.ctc above 0"
        )
    shape = (model.section.channels, *model.section.image)
    ctc = model.ctc

    def expected(given: list[Tensor]) -> Values:
        return (ctc.head.log_probs(model.encoder.columns(model.encoder(given[0]))),)

    return _graph(ColumnsGraph(model), "log_probs", shape, expected)


def _graph(module: nn.Module, name: str, shape: tuple[int, ...], expected: Any) -> Graph:
    def sample(sizes: Any) -> list[Tensor]:
        return [torch.randint(256, (sizes["batch"], *shape)).float()]

    tried = tuple({"batch": rows} for rows in BATCHES)
    return Graph(module, {"images": {0: "batch"}}, {name: {0: "batch"}}, sample, expected, tried)
