"""The language task: what it learns from, what it keeps back, what it says; and it learns."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.recipe import Recipe
from jumok.tasks.language import LanguageTask, text_tokenizer

SMALL = ["tokenizer.kind=word", "training.batch_tokens=512", "data.window=32", "model.layers=1", "model.dropout=0.0"]
SIZES = {
    "lstm-lm": ["model.width=48", "model.embedding=32"],
    "transformer-lm": ["model.width=32", "model.heads=2", "model.feed_forward=64"],
}


def recipe_of(name: str, *keys: str) -> Recipe:
    return recipes.read(name, [*SMALL, *SIZES[name], "data.train.pairs=600", "data.valid.pairs=60", *keys])


def task_of(recipe: Recipe, cache: Path) -> LanguageTask:
    return LanguageTask(recipe, text_tokenizer(recipe, lambda _: None), torch.device("cpu"), lambda _: None, cache)


@pytest.mark.parametrize("name", ["rnn-lm", "lstm-lm", "gru-lm", "transformer-lm"])
def test_the_shipped_recipes_are_language_models(name: str) -> None:
    recipe = recipes.read(name)
    assert recipe.task == "language"
    assert recipe.training.label_smoothing == 0.0, "perplexity is what they are compared by"


@pytest.mark.parametrize("name", SIZES)
def test_it_learns(name: str, tmp_path: Path) -> None:
    """A hundred updates on the grammar: from the vocabulary's perplexity to a small part of it."""
    torch.set_num_threads(1)
    task = task_of(recipe_of(name, "data.train.pairs=4000", "training.batch_tokens=1024"), tmp_path)
    before = task.validate()
    assert before["perplexity"] == pytest.approx(math.exp(before["loss"]))
    optimizer = torch.optim.Adam(task.objective.parameters(), lr=0.005)
    for update in range(100):
        task.objective.train()
        (batch,) = task.batches(update)
        loss = task.objective(batch)
        assert loss.count == batch.tokens
        optimizer.zero_grad()
        (loss.sum / loss.count).backward()
        optimizer.step()
    assert task.validate()["perplexity"] < before["perplexity"] / 10, (before, task.validate())


def test_the_end_of_the_text_is_kept_back(tmp_path: Path) -> None:
    told: list[str] = []
    recipe = recipe_of("lstm-lm", "data.valid=null", "data.hold_out=20")
    tokenizer = text_tokenizer(recipe, told.append)
    task = LanguageTask(recipe, tokenizer, torch.device("cpu"), told.append, tmp_path)
    store, (kept,) = task.stores[0], task.valid_ids
    assert len(task.plan.texts[0]) + len(kept) == len(store)
    assert store.line_at(len(task.plan.texts[0])) == 580
    assert any(f"the last {len(kept)} tokens are kept back" in line for line in told)
    assert f"{len(store) - len(kept):,} tokens of training text, {len(kept):,} for validation" in task.sizes()
    assert tokenizer.encode(task.opening(1))[0] == kept[: len(tokenizer.encode(task.opening(1))[0])].tolist()


def test_several_validation_texts_count_by_weight(tmp_path: Path) -> None:
    files = []
    for name, line in (("a", "a dog sleeps ."), ("b", "the zebra ."), ("train", "a dog sleeps .")):
        file = tmp_path / f"{name}.txt"
        file.write_text((line + "\n") * 40, encoding="utf-8")
        files.append(str(file))
    valid = f"[{{text: {files[0]}, weight: 3}}, {{text: {files[1]}}}]"
    task = task_of(recipe_of("lstm-lm", f"data.train.text={files[2]}", f"data.valid={valid}"), tmp_path)
    one, other = (
        task_of(recipe_of("lstm-lm", f"data.train.text={files[2]}", f"data.valid={{text: {file}}}"), tmp_path)
        for file in files[:2]
    )
    expected = (3 * one.validate()["loss"] + other.validate()["loss"]) / 4
    assert task.validate()["loss"] == pytest.approx(expected)


def test_a_batch_is_named_by_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("a dog sleeps .\n" * 200, encoding="utf-8")
    task = task_of(recipe_of("lstm-lm", f"data.train.text={file}"), tmp_path)
    (batch,) = task.batches(0)
    told = task.name_batch(batch)
    assert str(file) in told
    assert f"lines {batch.starts[0] // 5 + 1}, " in told


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["data.train.grammar=en-fr"], ["text", "one language of the grammar"]),
        (["data.train.grammar=xx"], ['no "xx"', "en, fr, ko"]),
        (["data.train={source: a, target: b}"], ["learns from text"]),
        (["training.metric=bleu"], ["training.metric", "loss"]),
        (["model.position=learned", "model.max_positions=20"], ["max_positions 20", "data.window 32"]),
        (["model.heads=3"], ["width 32", "heads 3"]),
        (["tokenizer.source=nowhere"], ["nowhere", "tokenizer"]),
    ],
)
def test_a_wrong_recipe_is_explained(keys: list[str], words: list[str], tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        task_of(recipe_of("transformer-lm", *keys), tmp_path)
    for word in words:
        assert word in str(caught.value)


def test_text_is_for_language_models_only() -> None:
    with pytest.raises(BadInput, match="task: language"):
        recipes.read("lstm", ["data.train.text=a.txt"])


def test_a_text_too_small_to_keep_any_back(tmp_path: Path) -> None:
    file = tmp_path / "tiny.txt"
    file.write_text("one line\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"tiny.txt: 3 tokens are too few.*--valid-text"):
        task_of(recipe_of("lstm-lm", f"data.train.text={file}", "data.valid=null"), tmp_path)
