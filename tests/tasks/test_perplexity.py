"""Perplexity: the sum over every token once, whatever the windows, and divided by what it says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401  fresh inputs in every run
from torch.nn import functional as F

from jumok.data.batch import END
from jumok.errors import BadInput
from jumok.models.language import LanguageModel, build_language_model
from jumok.recipe import RecurrentLanguageSection, TransformerLanguageSection
from jumok.tasks.perplexity import carried_loss, measure, sliding_loss, text_loss
from jumok.text.tokenizer import train_tokenizer

CPU = torch.device("cpu")
LINES = ["a dog sleeps .", "", "the queen saw a dog", "a cat"]
TOKENIZER = train_tokenizer(LINES, "space", 50)


def model_of(kind: str, vocabulary: int = 30) -> LanguageModel:
    section: Any = (
        TransformerLanguageSection(width=16, heads=2, layers=2, feed_forward=16)
        if kind == "transformer"
        else RecurrentLanguageSection(cell="lstm", embedding=16, width=16, layers=2)
    )
    return build_language_model(section, vocabulary).eval()


def random_text(length: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.append(torch.randint(4, 30, (length - 1,)).numpy(), END)


@torch.no_grad()
def losses(model: LanguageModel, ids: np.ndarray[Any, np.dtype[np.int64]]) -> torch.Tensor:
    """−log p of every token, all before it known, in one pass."""
    read = torch.from_numpy(np.append(END, ids[:-1]))[None]
    return F.cross_entropy(model.head(model(read))[0], torch.from_numpy(ids), reduction="none").double()


@pytest.mark.parametrize("length", [3, 100, 2049, 4500])
def test_a_carried_state_makes_it_one_text(length: int) -> None:
    model, ids = model_of("lstm"), random_text(length)
    assert carried_loss(model, ids, 1, CPU) == pytest.approx(float(losses(model, ids).sum()), rel=1e-5)


@pytest.mark.parametrize(("length", "streams"), [(100, 7), (101, 16), (64, 64), (5000, 3), (9, 5)])
def test_streams_count_every_token_once(length: int, streams: int) -> None:
    """Each part alone, read from nothing: their sum."""
    model, ids = model_of("lstm"), random_text(length)
    part = -(-length // streams)
    starts = [min(number * part, length - part) for number in range(streams)]
    expected = 0.0
    for number, start in enumerate(starts):
        read = torch.from_numpy(ids[np.arange(start - 1, start + part - 1) % length])[None]
        with torch.no_grad():
            each = F.cross_entropy(
                model.head(model(read))[0], torch.from_numpy(ids[start : start + part]), reduction="none"
            )
        expected += float(each[number * part - start :].double().sum())
    assert carried_loss(model, ids, streams, CPU) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("length", "window", "stride"), [(50, 64, 32), (64, 16, 16), (70, 16, 16), (333, 16, 5)])
def test_sliding_windows_count_every_token_once(length: int, window: int, stride: int) -> None:
    """By hand: each token from the first window that has it."""
    model, ids = model_of("transformer"), random_text(length)
    width = min(window, length)
    expected, done = 0.0, 0
    for start in [*range(0, length - width, stride), length - width]:
        read = torch.from_numpy(ids[np.arange(start - 1, start + width - 1) % length])[None]
        with torch.no_grad():
            each = F.cross_entropy(
                model.head(model(read))[0], torch.from_numpy(ids[start : start + width]), reduction="none"
            )
        expected += float(each[done - start :].double().sum())
        done = start + width
    assert done == length
    assert sliding_loss(model, ids, window, stride, CPU) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_a_model_that_knows_nothing_has_the_vocabularys_perplexity(kind: str) -> None:
    model = model_of(kind, TOKENIZER.size)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    found = measure(model, TOKENIZER, LINES, 8, CPU)
    assert found.per_token == pytest.approx(TOKENIZER.size, rel=1e-4)
    assert found.tokens == found.words == sum(len(line.split()) + 1 for line in LINES) == 15
    assert found.per_word == found.per_token, "cut at spaces, a word is a token"
    assert (found.lines, found.unknown) == (4, 0)
    assert found.characters == sum(len(line) + 1 for line in LINES)
    assert found.bits_per_character == pytest.approx(15 * math.log2(TOKENIZER.size) / found.characters, rel=1e-4)


def test_it_says_what_it_was_measured_with() -> None:
    told = measure(model_of("lstm", TOKENIZER.size), TOKENIZER, LINES, 8, CPU).summary()
    assert "carried" in told
    assert "note" not in told
    told = measure(model_of("transformer", TOKENIZER.size), TOKENIZER, [*LINES, "zebra"], 8, CPU, stride=2).summary()
    assert "6 to 8 tokens" in told
    assert "1 tokens" in told or "(5.9%)" in told
    assert "not in the vocabulary" in told


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_the_quick_measure_is_near_the_exact_one(kind: str) -> None:
    model, ids = model_of(kind), random_text(2000)
    exact = carried_loss(model, ids, 1, CPU) if model.carries else sliding_loss(model, ids, 64, 1, CPU)
    assert text_loss(model, ids, 64, CPU) == pytest.approx(exact, rel=0.02)


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(BadInput, match="every line is empty"):
        measure(model_of("lstm", TOKENIZER.size), TOKENIZER, ["", "  "], 8, CPU)
