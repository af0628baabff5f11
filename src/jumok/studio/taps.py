"""Which attentions a run's model has, before anything of it is loaded: the model is built without its numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from jumok.layers.recurrent import Recurrent
from jumok.layers.tap import Tap
from jumok.models.bert import Bert
from jumok.models.build import build
from jumok.models.forecaster import Forecaster
from jumok.models.language import build_language_model
from jumok.models.reader import WordLabeller
from jumok.models.recognizer import build_recognizer
from jumok.models.vit import ImageLabeller
from jumok.recipe import (
    BertSection,
    ForecasterSection,
    Recipe,
    RecognizerSection,
    RecurrentReaderSection,
    Seq2SeqSection,
    TransformerSection,
    VitSection,
)
from jumok.text.charset import Charset

FEW = 8  # words, labels, values: how many there are changes no attention


def bare(recipe: Recipe) -> nn.Module:
    """The recipe's model, without memory for its numbers."""
    section = recipe.model
    with torch.device("meta"):
        if isinstance(section, Seq2SeqSection | TransformerSection):
            return build(section, FEW, FEW)
        if isinstance(section, BertSection):
            return Bert(section, FEW)
        if isinstance(section, RecurrentReaderSection):
            return WordLabeller(section, FEW, FEW)
        if isinstance(section, VitSection):
            return ImageLabeller(section, FEW)
        if isinstance(section, RecognizerSection):
            return build_recognizer(section, Charset.of(recipe.charset))
        if isinstance(section, ForecasterSection):
            return Forecaster(section, FEW, FEW)
        return build_language_model(section, FEW)


def taps_of(model: nn.Module) -> list[dict[str, Any]]:
    """By kind ("cross", "self", "causal") and part ("encoder", "decoder"): how many layers, and heads in each."""
    found: dict[tuple[str, str], list[Tap]] = {}
    for module in model.modules():
        if isinstance(module, Tap):
            found.setdefault((module.kind, module.name.partition(".")[0]), []).append(module)
    return [
        {
            "kind": kind,
            "part": part,
            "layers": len({tap.layer for tap in taps}),
            "heads": max((tap.heads or 1) for tap in taps),
            "names": [tap.name for tap in sorted(taps, key=lambda tap: tap.layer)],
        }
        for (kind, part), taps in found.items()
    ]


def is_recurrent(model: nn.Module) -> bool:
    return any(isinstance(module, Recurrent) for module in model.modules())
