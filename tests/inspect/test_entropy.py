"""How widely heads look: between 0 and 1, by hand, and whatever the batch is padded to."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from seeded import seed as seed
from translators import sentences, translator

from jumok.inspect import entropy as module
from jumok.inspect.entropy import entropy, head_entropies
from jumok.inspect.forced import forced_attention
from jumok.inspect.view import View

TARGETS = ["Le chat.", "Les chiens voient le grand oiseau rouge.", "Oui."]


def test_one_word_alone_and_all_alike() -> None:
    weights = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]])
    assert entropy(weights).tolist() == pytest.approx([0.0, math.log(4), math.log(2)])


@pytest.mark.parametrize("model", ["transformer", "lstm"])
def test_padding_does_not_count(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = translator(model)
    sources = sentences(3)
    together = head_entropies(one, sources, TARGETS)
    monkeypatch.setattr(module, "BATCH", 1)
    for packed, alone in zip(together, head_entropies(one, sources, TARGETS), strict=True):
        assert (packed.name, packed.head) == (alone.name, alone.head)
        assert packed.entropy == pytest.approx(alone.entropy, abs=1e-5)
        assert packed.spread == pytest.approx(alone.spread, abs=1e-5)
        assert 0 <= packed.spread <= 1 + 1e-6


def test_of_one_head_written_out() -> None:
    model = translator("transformer")
    (source,) = sentences(1)
    (picture,) = forced_attention(model, [source], [TARGETS[1]], words=False, view=View(1, 2))
    by_hand = -(picture.weights * np.log(np.maximum(picture.weights, 1e-30))).sum(axis=1)
    (found,) = [
        one for one in head_entropies(model, [source], TARGETS[1:2]) if (one.name, one.head) == ("decoder.1.cross", 2)
    ]
    assert found.entropy == pytest.approx(float(by_hand.mean()), abs=1e-5)
    assert found.spread == pytest.approx(float(by_hand.mean()) / math.log(picture.weights.shape[1]), abs=1e-5)
