"""Searches that rounding decides are known as such, and others are not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ct2_runs import SIZES, ending
from seeded import seed as seed
from torch import Tensor

from jumok.interop.ties import TIE, tied
from jumok.models.build import build
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection
from jumok.search import SearchOptions

WORDS = 40


def a_model(seed: int) -> Transformer:
    torch.manual_seed(seed)
    model = ending(build(TransformerSection(**SIZES), WORDS, WORDS), seed)
    assert isinstance(model, Transformer)
    return model


class Nudged:
    """The same model, with the log-probability of one word moved next to another's at one step."""

    def __init__(self, model: Transformer, at: int, gap: float) -> None:
        self.model, self.at, self.gap = model, at, gap

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def step(self, tokens: Tensor, positions: Tensor, memory: Any, cache: Any) -> tuple[Tensor, Any]:
        log_probs, cache = self.model.step(tokens, positions, memory, cache)
        if int(positions[0]) == self.at:
            best = log_probs[0].topk(2).indices
            log_probs = log_probs.clone()
            log_probs[0, best[1]] = log_probs[0, best[0]] - self.gap
        return log_probs, cache


@pytest.mark.parametrize("beam", [1, 5])
def test_two_words_that_are_as_probable(beam: int, seed: int) -> None:
    model = a_model(seed)
    source = torch.randint(4, WORDS, (6,)).tolist()
    options = SearchOptions(beam=beam, max_length=30)
    assert tied(Nudged(model, 0, TIE / 3), source, options)


def test_most_searches_are_no_ties(seed: int) -> None:
    """Otherwise the check that uses it could not fail."""
    model = a_model(seed)
    sources = [torch.randint(4, WORDS, (6,)).tolist() for _ in range(30)]
    assert sum(tied(model, source, SearchOptions(beam=5, max_length=30)) for source in sources) < 10
