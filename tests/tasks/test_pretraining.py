"""Pretraining: the loss is the cross-entropy over the hidden places, packed or padded; the task learns."""

from __future__ import annotations

import math
import random
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401
from torch.nn import functional as F

from jumok import api
from jumok import recipe as recipes
from jumok.data.masked_batch import MaskedBatch
from jumok.data.masking import Hidden
from jumok.errors import BadInput
from jumok.models.bert import Bert, HiddenWords
from jumok.recipe import BertSection, Recipe
from jumok.tasks.language import text_tokenizer
from jumok.tasks.pretraining import PretrainingObjective, PretrainingTask

WORDS = 50
SMALL = [
    "tokenizer.vocabulary=400", "training.batch_tokens=1024", "data.window=32", "model.layers=1", "model.width=32",
    "model.heads=2", "model.feed_forward=64", "model.dropout=0.0", "model.attention_dropout=0.0",
]  # fmt: skip


def objective_of(order: bool = True, **keys: Any) -> PretrainingObjective:
    section = BertSection(width=16, heads=2, layers=2, feed_forward=24, max_positions=32, **keys)
    model = HiddenWords(Bert(section, WORDS), order)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return PretrainingObjective(model, row_weight=3.5).eval()


def batch_of(draw: int, packed: bool, size: int | None = None, order: bool = True) -> MaskedBatch:
    generator = np.random.default_rng(draw)
    rows = int(generator.integers(2, 7))
    lengths = generator.integers(3, 14, rows)
    total = int(lengths.sum())
    places = np.flatnonzero(generator.random(total) < 0.3)
    hidden = Hidden(generator.integers(5, WORDS, total), places, generator.integers(5, WORDS, len(places)))
    segments, told = generator.integers(0, 2, total), generator.integers(-1, 2, rows)  # −1: of one word
    return MaskedBatch.of(hidden, lengths, segments if order else None, told if order else None, size, packed)


def written_out(objective: PretrainingObjective, batch: MaskedBatch) -> float:
    """Text by text, place by place."""
    model, width = objective.model, batch.words.ids.size(1)
    total, orders = 0.0, 0.0
    for row, length in enumerate(batch.words.lengths.tolist()):
        ids = batch.words.ids[row : row + 1, :length]
        parts = None if batch.segments is None else batch.segments[row : row + 1, :length]
        words = type(batch.words)(ids, torch.tensor([length]))  # type: ignore[call-arg, arg-type]
        hidden = model.reader(words, parts)[0]
        for place, wanted in zip(batch.places.tolist(), batch.wanted.tolist(), strict=True):
            if place // width == row:
                total -= float(F.log_softmax(model.head(hidden[place % width]), dim=-1)[wanted])
        if batch.order is not None and model.order is not None and batch.order[row] >= 0:
            scores = model.order(torch.tanh(model.reader.pooler(hidden[None, 0])))[0]
            orders -= float(F.log_softmax(scores, dim=-1)[int(batch.order[row])])
    return total + 3.5 * orders


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("keys", [{}, {"position": "rotary", "norm": "pre"}], ids=str)
@torch.no_grad()
def test_packed_or_padded_the_loss_is_the_plain_one(order: bool, keys: dict[str, Any]) -> None:
    objective = objective_of(order, **keys)
    for _ in range(5):
        draw = secrets.randbelow(2**31)
        padded = batch_of(draw, False, order=order)
        expected = written_out(objective, padded)
        near = pytest.approx(expected, rel=1e-5, abs=1e-5)
        for batch in (padded, batch_of(draw, True, order=order), batch_of(draw, True, 128, order=order)):
            found = objective(batch)
            assert float(found.sum) == near, f"seed {draw}"
            assert found.count == len(batch.places)
        again = batch_of(draw, True, 128, order=order).repeating()
        assert again is not None
        assert float(objective(again).sum) == near, "what was filled up counts nothing"
        parts = [float(objective(part).sum) for part in padded.split(3)]
        assert sum(parts) == near, "in parts it is the same sum"


def test_gradients_too() -> None:
    objective, draw = objective_of(), secrets.randbelow(2**31)
    found = []
    for batch in (batch_of(draw, False), batch_of(draw, True, 128)):
        objective.zero_grad()
        objective(batch).sum.backward()
        found.append({name: p.grad.clone() for name, p in objective.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, atol=2e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


def recipe_of(*keys: str, name: str = "bert-tiny") -> Recipe:
    return recipes.read(name, [*SMALL, "data.train.pairs=600", "data.valid.pairs=60", *keys])


def task_of(recipe: Recipe, cache: Path, say: Any = lambda _: None) -> PretrainingTask:
    return PretrainingTask(recipe, text_tokenizer(recipe, lambda _: None), torch.device("cpu"), say, cache)


VERSES = [
    "the old king sleeps under a hill .",
    "seven ships came home without their crew .",
    "her garden grows beans , roses and thyme .",
    "no bell rang when winter left us .",
    "every door of that house stays shut .",
    "my brother sells bread at noon .",
]


@pytest.mark.parametrize(
    "keys", [[], ["masking.sentences=next", "masking.whole_words=true", "training.pack=true"]], ids=["plain", "next"]
)
def test_it_learns(keys: list[str], tmp_path: Path) -> None:
    """Which word is hidden follows from the others: hardly any is guessed at first, most are in the end."""
    file, chance = tmp_path / "verses.txt", random.Random(1)
    lines = [verse for _ in range(100) for verse in (*chance.sample(VERSES, 2), "")]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    valid = f"data.valid={{text: {file}}}"
    task = task_of(recipe_of(f"data.train.text={file}", valid, "training.batch_tokens=512", *keys), tmp_path)
    before = task.validate()
    assert before == task.validate(), "always the same words are hidden"
    optimizer = torch.optim.Adam(task.objective.parameters(), lr=0.005)
    for update in range(250):
        task.objective.train()
        (batch,) = task.batches(update)
        loss = task.objective(batch)
        optimizer.zero_grad()
        (loss.sum / loss.count).backward()
        optimizer.step()
    after = task.validate()
    assert after["loss"] < before["loss"] / 2, (before, after)
    assert after["accuracy"] > 0.5 > 0.1 > before["accuracy"], (before, after)
    assert after["perplexity"] == pytest.approx(math.exp(after["loss"]))
    assert ("order_accuracy" in after) == bool(keys)


def test_the_end_of_the_text_is_kept_back(tmp_path: Path) -> None:
    told: list[str] = []
    task = task_of(recipe_of("data.valid=null", "data.hold_out=20"), tmp_path, told.append)
    assert any("the last 20 lines are kept back" in line for line in told), told
    learned, kept = task.plan.texts[0], task.valid[0]
    assert int(learned.found.end.max()) <= int(kept.found.begin.min())
    lines = learned.store.lines
    assert {learned.store.line_at(int(begin)) for begin in kept.found.begin} == set(range(lines - 20, lines))
    tokens = [int(text.found.lengths.sum()) + 2 * len(text.found) for text in (learned, kept)]
    assert f"{tokens[0]:,} tokens to learn from, {tokens[1]:,} for validation" in task.sizes()
    (batch,) = task.batches(0)
    line = learned.store.line_at(int(learned.found.begin[batch.indices[0]])) + 1
    assert f"from lines {line}" in task.name_batch(batch)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["tokenizer.kind=bpe"], ["[MASK]", "wordpiece"]),
        (["data.train.grammar=en-fr"], ["one language of the grammar"]),
        (["data.window=600"], ["max_positions 512", "data.window 600"]),
        (["training.metric=bleu"], ["bleu is not measured by task: pretraining", "accuracy"]),
        (["data.window=3"], ["data.window 3", "no room"]),
    ],
)
def test_a_wrong_recipe_is_explained(keys: list[str], words: list[str], tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        task_of(recipe_of(*keys), tmp_path)
    for word in words:
        assert word in str(caught.value)


def test_text_without_words(tmp_path: Path) -> None:
    blank, tiny = tmp_path / "blank.txt", tmp_path / "tiny.txt"
    tiny.write_text("one line\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"tiny\.txt.*too few to keep any back"):
        task_of(recipe_of(f"data.train.text={tiny}", "data.valid=null"), tmp_path)
    blank.write_text("one two three four five\n\n\n", encoding="utf-8")
    task = task_of(recipe_of(f"data.train.text={blank}", f"data.valid={{text: {tiny}}}"), tmp_path)
    assert len(task.plan.texts[0].found) == 1


def test_a_text_of_unknown_words_alone_is_refused_and_some_are_passed_over(tmp_path: Path) -> None:
    keys = ["model.width=16", "model.layers=1", "model.feed_forward=16", "tokenizer.vocabulary=200"]
    first = [*keys, "data.train.pairs=200", "data.valid.pairs=20", "training.updates=1"]
    api.train("bert-tiny", tmp_path / "first", first, quiet=True, report=False)
    snow = tmp_path / "snow.txt"
    snow.write_text("☃☃ ☃\n" * 60, encoding="utf-8")
    then = [f"start={tmp_path / 'first'}", f"data.train.text={snow}", "training.updates=4", "training.batch_tokens=16"]
    with pytest.raises(BadInput, match=r"snow.txt: none of its 120 tokens is in the vocabulary"):
        api.train("bert-tiny", tmp_path / "refused", then, quiet=True, report=False)
    assert not (tmp_path / "refused").exists()
    # batches of unknown words among others: nothing is learned from them, and nothing breaks
    snow.write_text("☃☃ ☃\n" * 60 + "the dog sees the cat.\n" * 6, encoding="utf-8")
    model = api.train("bert-tiny", tmp_path / "some", then, quiet=True, report=False)
    assert all(bool(weight.isfinite().all()) for weight in model.model.parameters())
