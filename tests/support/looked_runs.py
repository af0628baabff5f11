"""Runs to look at, made by hand: random weights off their start, several checkpoints, and all the files of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from looking_words import reading_model
from torch import nn
from translators import tokenizers
from word_runs import words_recipe

from jumok import recipe as recipes
from jumok.models.build import build
from jumok.models.reader import TextLabeller
from jumok.recipe import BertSection, Recipe
from jumok.tasks.vocabulary import save_tokenizers
from jumok.text.charset import Charset
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

SMALL = ["model.width=32", "model.feed_forward=48", "model.heads=4"]
BERT = {"kind": "bert", "width": 16, "heads": 2, "layers": 2, "feed_forward": 24, "max_positions": 256}


def reader_run(path: Path, **model: Any) -> RunFolder:
    """It reads digits; by default position queries, two heads."""
    recipe = words_recipe(**{"max_length": 5, **model})
    run = RunFolder.create(path, recipe)
    charset = Charset.of(recipe.charset)
    (path / "charset.json").write_text(charset.to_json())
    section = recipe.model.model_dump(exclude={"kind", "encoder", "decoder"})
    network = reading_model(recipe.model.encoder, recipe.model.decoder, charset, **section)  # type: ignore[union-attr]
    return _written(run, [network])


def translator_run(path: Path, kind: str = "bpe", name: str = "demo-transformer", updates: int = 1) -> RunFolder:
    """Small, with a vocabulary of a kind; of several checkpoints the last is the best, and writes words."""
    source, target = tokenizers(kind)
    keys = SMALL if "transformer" in name else ["model.width=32", "model.embedding=16", "model.layers=1"]
    recipe = recipes.read(name, [f"tokenizer.kind={kind}", "search.max_ratio=1.0", "search.max_extra=4", *keys])
    run = RunFolder.create(path, recipe)
    save_tokenizers(run.tokenizer, {"source": source, "target": target})
    networks = []
    for _ in range(updates):
        network = _lively(build(recipe.model, source.size, target.size))  # type: ignore[arg-type]
        texts = target.decode([[id] for id in range(target.size)])
        network.bias.data[[id for id, text in enumerate(texts) if not text.strip()]] = -30.0
        networks.append(network)
    return _written(run, networks)


def classifier_run(
    path: Path, labels: Sequence[str] = ("good", "bad", "좋음"), kind: str = "bpe", **model: Any
) -> RunFolder:
    raw = {
        "task": "classification", "data": {"train": {"grammar": "en"}, "valid": {"grammar": "en"}},
        "tokenizer": {"kind": kind}, "model": {**BERT, **model},
    }  # fmt: skip
    recipe: Recipe = recipes.check(raw, "test")
    run = RunFolder.create(path, recipe)
    tokenizer = tokenizers(kind)[0]
    save_tokenizers(run.tokenizer, {"text": tokenizer})
    (path / "labels.json").write_text(json.dumps({"labels": list(labels), "counts": [1] * len(labels)}))
    assert isinstance(recipe.model, BertSection)
    return _written(run, [_lively(TextLabeller(recipe.model, tokenizer.size, len(labels)))])


def _lively(network: nn.Module) -> Any:
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network.eval()


def _written(run: RunFolder, networks: Sequence[nn.Module]) -> RunFolder:
    for number, network in enumerate(networks, 1):
        state = TrainState(update=number, total=len(networks), stopped="all is done")
        checkpoint.write(run.checkpoints / f"step-{number}", dict(network.state_dict()), None, state)
    run.metrics.write_text(json.dumps({"event": "valid", "step": len(networks), "loss": 0.5, "best": True}) + "\n")
    for name in ("last", "best"):
        run.point(name, len(networks))
    return run
