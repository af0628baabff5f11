"""Layers that learn more slowly the further down they are, or not at all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from jumok import api
from jumok import recipe as recipes
from jumok.models.bert import Bert, HiddenWords
from jumok.models.reader import TextLabeller
from jumok.recipe import BertSection, Training
from jumok.tasks.build import build_task
from jumok.tasks.classification import ClassificationObjective
from jumok.tasks.pretraining import PretrainingObjective
from jumok.training.optimizer import build_optimizer

SECTION = BertSection(width=16, heads=2, layers=3, feed_forward=24)
SMALL = [
    "tokenizer.vocabulary=100", "training.batch_tokens=200", "training.updates=6", "training.warmup=1",
    "training.validate_every=6", "training.learning_rate=0.01", "model.width=16", "model.layers=3", "model.heads=2",
    "model.feed_forward=24", "training.weight_decay=0.1",
]  # fmt: skip


def shares_of(objective: torch.nn.Module, **training: float) -> dict[str, tuple[float, float]]:
    """The share of the rate and the decay of each parameter, by its name."""
    optimizer = build_optimizer(objective, Training.model_validate({"weight_decay": 0.1, **training}), 3)
    names = {id(parameter): name for name, parameter in objective.named_parameters()}
    found = {
        names[id(parameter)]: (group["share"], group["weight_decay"])
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    assert len(found) == sum(len(group["params"]) for group in optimizer.param_groups), "each once"
    return found


@pytest.mark.parametrize("kind", ["text", "words"])
def test_each_layer_learns_at_its_share(kind: str) -> None:
    objective: torch.nn.Module
    if kind == "text":
        objective = ClassificationObjective(TextLabeller(SECTION, 40, 3), None)
    else:
        objective = PretrainingObjective(HiddenWords(Bert(SECTION, 40), order=True))
    found = shares_of(objective, layer_decay=0.5)
    assert found.keys() == dict(objective.named_parameters()).keys()
    for name, (share, decay) in found.items():
        inner = name.removeprefix("model.")
        if inner.startswith(("reader.embedding", "reader.positions", "reader.segments", "reader.norm")):
            expected = 0.5**4
        elif inner.startswith("reader.encoder.blocks."):
            expected = 0.5 ** (3 - int(inner.split(".")[3]))
        else:
            expected = 1.0
        assert share == pytest.approx(expected), name
        assert decay == (0.1 if dict(objective.named_parameters())[name].dim() >= 2 else 0.0), name


def test_without_it_all_learn_alike() -> None:
    objective = ClassificationObjective(TextLabeller(SECTION, 40, 3), None)
    assert {share for share, _ in shares_of(objective).values()} == {1.0}


def labelled_file(path: Path) -> Path:
    chance = random.Random(2)
    words = ["red", "blue", "old", "new", "cat", "dog", "sits", "runs"]
    rows = [(chance.choices(words, k=chance.randint(2, 8)), chance.choice("ab")) for _ in range(60)]
    path.write_text("text\tlabel\n" + "".join(f"{' '.join(text)}\t{label}\n" for text, label in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("depth", [1, 3])
def test_what_is_frozen_stays_as_it_was_to_the_bit(depth: int, tmp_path: Path) -> None:
    keys = [*SMALL, f"data.train.examples={labelled_file(tmp_path / 'a.tsv')}", f"training.freeze={depth}"]
    recipe = recipes.read("classify", keys)
    before = {
        name: tensor.clone()
        for name, tensor in build_task(recipe, torch.device("cpu"), lambda _: None).objective.model.state_dict().items()
    }
    api.train(recipe, tmp_path / "run", quiet=True, report=False)
    after = load_file(tmp_path / "run" / "checkpoints" / "step-6" / "model.safetensors")
    changed = {name for name, tensor in after.items() if not torch.equal(tensor, before[name])}
    frozen = {
        name
        for name in before
        if name.startswith(("reader.embedding", "reader.norm"))
        or any(name.startswith(f"reader.encoder.blocks.{layer}.") for layer in range(depth))
    }
    assert frozen
    assert not changed & frozen
    segments = {name for name in before if "segments" in name}  # of one text only the first vector learns
    assert changed == set(before) - frozen - segments, "everything else has learned"


def test_a_slower_layer_moves_less(tmp_path: Path) -> None:
    """The first step of AdamW is the rate itself: of each layer its share of it."""
    keys = [*SMALL, f"data.train.examples={labelled_file(tmp_path / 'a.tsv')}", "training.layer_decay=0.25"]
    keys += ["training.updates=1", "training.schedule=constant", "training.weight_decay=0", "training.warmup=0"]
    recipe = recipes.read("classify", keys)
    before = {
        name: tensor.clone()
        for name, tensor in build_task(recipe, torch.device("cpu"), lambda _: None).objective.model.state_dict().items()
    }
    api.train(recipe, tmp_path / "run", quiet=True, report=False)
    after = load_file(tmp_path / "run" / "checkpoints" / "step-1" / "model.safetensors")
    for start, share in (
        ("reader.embedding", 0.25**4),
        ("reader.encoder.blocks.0.", 0.25**3),
        ("reader.encoder.blocks.2.", 0.25),
        ("head.", 1.0),
    ):
        moved = max((after[name] - before[name]).abs().max().item() for name in before if name.startswith(start))
        assert moved == pytest.approx(0.01 * share, rel=0.02), start
