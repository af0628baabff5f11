"""Models that read texts, described: the parts add up, the shapes are those of a real batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from jumok import recipe
from jumok.data.batch import Sequences
from jumok.inspect.architecture import Architecture, Part, every_part
from jumok.inspect.describe import describe_recipe, describe_run
from jumok.models.bert import Bert, HiddenWords
from jumok.models.build import build
from jumok.models.reader import TextLabeller, WordLabeller
from jumok.tasks.example_task import LABELS
from jumok.text.tokenizer import train_tokenizer
from jumok.training.run import RunFolder

BERT = ["model.width=32", "model.heads=4", "model.layers=2", "model.feed_forward=48", "tokenizer.vocabulary=300"]
LSTM = ["model.width=32", "model.layers=2", "tokenizer.vocabulary=300"]
CASES = {
    "bert-tiny": BERT,
    "bert-base": BERT,
    "bert-modern-small": BERT,
    "classify": [*BERT, "model.pooling=mean"],
    "classify-lstm": LSTM,
    "bert-small": BERT,
    "similarity": [*BERT, "model.pairs=apart"],
    "tag": [*BERT, "model.position=relative", "model.segments=0"],
    "tag-lstm": LSTM,
    "answer": BERT,
}


def real(name: str) -> Any:
    chosen: Any = recipe.read(name, CASES[name])
    if chosen.task == "pretraining":
        return HiddenWords(Bert(chosen.model, 300), order=chosen.masking.sentences != "none")
    if chosen.task in ("classification", "regression"):
        return TextLabeller(chosen.model, 300, 2 if chosen.task == "classification" else 1)
    return WordLabeller(chosen.model, 300, 2)


def described(name: str) -> Architecture:
    return describe_recipe(recipe.read(name, CASES[name]), name)


def leaves(parts: tuple[Part, ...], times: int = 1) -> int:
    return sum(leaves(part.parts, times * part.times) if part.parts else part.total() * times for part in parts)


@pytest.mark.parametrize("name", CASES)
def test_the_parts_add_up_to_the_model(name: str) -> None:
    shown, model = described(name), real(name)
    assert shown.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert sum(leaves(column.parts) for column in shown.columns) == shown.parameters
    for column in shown.columns:
        for part in every_part(column.parts):
            assert not part.parts or part.parameters == leaves(part.parts)


@pytest.mark.parametrize(("name", "letters"), [("classify", {}), ("similarity", {"2B": 6}), ("tag-lstm", {})])
def test_what_comes_out_is_as_large_as_said(name: str, letters: dict[str, int]) -> None:
    shown, model = described(name), real(name).eval()
    sizes = {"B": 3, "T": 7, **letters}
    rows = 6 if letters else 3
    out = model(Sequences(torch.ones(rows, 7, dtype=torch.long), torch.full((rows,), 7)))
    part = shown.columns[0].parts[-1]
    assert tuple(sizes.get(letter) or int(letter) for letter in part.shape.split(" × ")) == tuple(out.shape)


def test_a_pooler_that_nothing_stands_on_is_told_apart() -> None:
    assert any("not used" in column.input for column in described("tag").columns)
    assert len(described("bert-base").columns) == 2  # it is asked whether halves follow each other
    assert "do the halves follow?" in str(described("bert-base"))
    assert "tanh" in str(describe_recipe(recipe.read("classify", BERT), "classify"))
    assert "2B × T" in str(described("similarity"))


def test_a_run_has_its_own_labels_and_vocabulary(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", recipe.read("classify", BERT))
    tokenizer = train_tokenizer(["the cat sleeps", "a dog runs"], "wordpiece", 60, lowercase=False)
    run.tokenizer.mkdir()
    tokenizer.save(run.tokenizer / "text")
    (run.path / LABELS).write_text('{"labels": ["a", "b", "c", "d", "e"]}', encoding="utf-8")
    told = str(describe_run(run.path))
    assert "scores: 32 → 5" in told
    assert f"word vectors: {tokenizer.size:,} × 32" in told
    assert "until the data says" not in told  # nothing is guessed


def test_a_translator_with_a_pretrained_encoder_is_whole() -> None:
    inner = {"kind": "bert", "width": 32, "heads": 4, "layers": 1, "feed_forward": 48}
    raw = recipe.read("transformer-tiny").model_dump(mode="json")
    raw["model"] |= {"reader": inner, "width": 32, "heads": 4, "feed_forward": 48, "tie_embeddings": "target"}
    raw["tokenizer"] |= {"vocabulary": 300, "joint": False}
    chosen = recipe.check(raw, "test")
    shown = describe_recipe(chosen, "it")
    assert shown.parameters == sum(parameter.numel() for parameter in build(chosen.model, 300, 300).parameters())
    assert sum(leaves(column.parts) for column in shown.columns) == shown.parameters
    assert "(S + 1)" in str(shown)
