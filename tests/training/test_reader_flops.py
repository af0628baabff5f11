"""The operations of readers of texts, as PyTorch counts them and by hand; padding is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401
from torch.utils.flop_counter import FlopCounterMode

from jumok.data.batch import PairBatch, Sequences
from jumok.data.labelled_batch import LabelledBatch
from jumok.data.masked_batch import MaskedBatch
from jumok.data.masking import Hidden
from jumok.layers import attention
from jumok.models.bert import Bert, HiddenWords
from jumok.models.build import build
from jumok.models.reader import TextLabeller, WordLabeller
from jumok.recipe import BertSection, TransformerSection
from jumok.tasks.answering import AnsweringObjective
from jumok.tasks.classification import ClassificationObjective
from jumok.tasks.objective import Objective
from jumok.tasks.pretraining import PretrainingObjective
from jumok.tasks.tagging import TaggingObjective
from jumok.tasks.translation import TranslationObjective
from jumok.training.flops import flops_of

WORDS = 31
SECTION = BertSection(width=16, heads=2, layers=2, feed_forward=24, dropout=0.0, attention_dropout=0.0)
ROWS, LENGTH = 3, 7


@pytest.fixture(autouse=True)
def products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention by plain products: PyTorch does not count what its fused kernel for the CPU does."""
    fused = attention.attention
    monkeypatch.setattr(
        "jumok.layers.tap.attention", lambda *inputs, **options: fused(*inputs, **{**options, "fused": False})
    )


def counted(objective: Objective, batch: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        objective(batch).sum.backward()
    return counter.get_total_flops()


def masked(packed: bool, guesses: int = 5, size: int | None = None, lengths: list[int] | None = None) -> MaskedBatch:
    rows = np.array(lengths or [LENGTH] * ROWS)
    total = int(rows.sum())
    places = np.sort(np.random.default_rng().choice(total, guesses, replace=False))
    ids = np.random.default_rng().integers(5, WORDS, total)
    return MaskedBatch.of(Hidden(ids, places, ids[places]), rows, None, None, size, packed)


def labelled(labels: torch.Tensor, counted: int = ROWS) -> LabelledBatch:
    return LabelledBatch(Sequences.pad(torch.randint(5, WORDS, (ROWS, LENGTH)).tolist()), labels, counted)


def value(objective: Objective, batch: Any) -> int:
    flops = flops_of(objective)
    assert flops is not None
    found = flops(batch)
    assert found is not None
    return found


def test_hidden_words_by_hand() -> None:
    """A layer: four products of 16 × 16 and two of 16 × 24 for each token; two products of 16 for each pair of tokens.
    A guess: 16 × 16, and the vocabulary."""
    objective = PretrainingObjective(HiddenWords(Bert(SECTION, WORDS)))
    layer = 2 * (4 * 16 * 16 + 2 * 16 * 24)
    tokens, pairs, guesses = ROWS * LENGTH, ROWS * LENGTH * LENGTH, 5
    expected = 3 * (2 * layer * tokens + 2 * 4 * 16 * pairs + 2 * 16 * (16 + WORDS) * guesses)
    assert value(objective, masked(False)) == expected
    batch = masked(False)
    with FlopCounterMode(display=False) as counter:  # the loss written out: some of its own products are not seen
        hidden = objective.model.reader(batch.words).flatten(0, 1)[batch.places]
        torch.nn.functional.cross_entropy(objective.model.head(hidden), batch.wanted).backward()
    assert counter.get_total_flops() == expected


def test_padding_does_not_count() -> None:
    objective = PretrainingObjective(HiddenWords(Bert(SECTION, WORDS)))
    lengths = [3, 9, 5]
    parts = [masked(False, 2, lengths=[length]) for length in lengths]
    whole = masked(False, 6, lengths=lengths)
    assert value(objective, whole) == sum(value(objective, part) for part in parts) > 0
    assert value(objective, masked(True, 6, 128, lengths)) == value(objective, whole)


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_labels_of_texts(pooling: str) -> None:
    section = SECTION.model_copy(update={"pooling": pooling})
    objective = ClassificationObjective(TextLabeller(section, WORDS, 4), None)
    batch = labelled(torch.tensor([0, 3, 1]))
    assert counted(objective, batch) == value(objective, batch)
    twice = ClassificationObjective(objective.model, None, r_drop=1.0)
    assert value(twice, batch) == 2 * value(objective, batch)


def test_labels_of_words_and_answers() -> None:
    tags = TaggingObjective(WordLabeller(SECTION, WORDS, 4), None)
    batch = labelled(torch.randint(0, 4, (ROWS, LENGTH)), ROWS * LENGTH)
    assert counted(tags, batch) == value(tags, batch)
    spans = AnsweringObjective(WordLabeller(SECTION, WORDS, 2))
    batch = labelled(torch.tensor([[1, 2], [0, 0], [4, 6]]))
    assert counted(spans, batch) == value(spans, batch)


def test_two_texts_read_apart() -> None:
    section = SECTION.model_copy(update={"pairs": "apart", "pooling": "mean"})
    objective = ClassificationObjective(TextLabeller(section, WORDS, 4), None)
    words = Sequences.pad(torch.randint(5, WORDS, (2 * ROWS, LENGTH)).tolist())
    batch = LabelledBatch(words, torch.tensor([0, 3, 1]), ROWS)
    assert counted(objective, batch) == value(objective, batch)


def test_a_translator_with_a_reader_counts_its_encoder() -> None:
    model = build(
        TransformerSection(width=16, heads=2, decoder_layers=1, feed_forward=24, reader=SECTION), WORDS, WORDS
    )
    plain = build(
        TransformerSection(width=16, heads=2, encoder_layers=2, decoder_layers=1, feed_forward=24, activation="gelu"),
        WORDS,
        WORDS,
    )
    rows = torch.randint(5, WORDS, (ROWS, LENGTH)).tolist()
    batch = PairBatch.of(rows, rows)
    assert value(TranslationObjective(model), batch) == value(TranslationObjective(plain), batch)
