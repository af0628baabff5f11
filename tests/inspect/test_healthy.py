"""Weights that are not numbers: every look inside says so, before it draws or counts anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from translators import sentences, translator

from jumok.errors import Failure
from jumok.inspect.ablation import head_importance
from jumok.inspect.attribution import attribute
from jumok.inspect.gates import gates_of
from jumok.inspect.steps import steps_of

LOOKS: dict[str, Callable[[Any, str], object]] = {
    "gates": gates_of,
    "attribution": lambda model, text: attribute(model, text, "Le chat."),
    "steps": lambda model, text: steps_of(model, text, "1", "Le chat."),
    "ablation": lambda model, text: head_importance(model, [text], ["Le chat."], bleu_sentences=0),
}


@pytest.mark.parametrize("name", LOOKS)
def test_damaged_weights_are_named(name: str) -> None:
    model, (text,) = translator("lstm"), sentences(1)
    LOOKS[name](model, text)
    with torch.no_grad():
        model.model.bias[3] = float("inf")
    with pytest.raises(Failure, match=r"^bias: .*not numbers"):
        LOOKS[name](model, text)
