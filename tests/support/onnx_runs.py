"""Run folders with random weights, for what writes them as other libraries' files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from translators import tokenizers
from word_runs import TINY

from jumok import recipe as recipes
from jumok.models.build import build
from jumok.models.recognizer import build_recognizer
from jumok.recipe import RecognizerSection
from jumok.recipe.recognition import CharsetSection
from jumok.tasks.vocabulary import save_tokenizers
from jumok.text.charset import Charset
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

SMALL = {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 2, "feed_forward": 24}


def keep(run: RunFolder, model: nn.Module, spread: float = 0.2) -> RunFolder:
    for parameter in model.parameters():
        parameter.data.add_(spread * torch.randn_like(parameter))
    checkpoint.write(run.checkpoints / "step-0", dict(model.state_dict()), None, TrainState(total=0))
    return run


def translating_run(path: Path, section: dict[str, Any] | None = None, **model: Any) -> RunFolder:
    """A small Transformer with these options, or whatever `section` says."""
    source, target = tokenizers("bpe")
    corpus = {"grammar": "en-fr", "pairs": 10}
    raw = {
        "task": "translation",
        "data": {"train": corpus, "valid": corpus},
        "model": section or {"kind": "transformer", **SMALL, **model},
    }
    recipe = recipes.check({**raw, "tokenizer": {"kind": "bpe", "vocabulary": 500}}, "test")
    run = RunFolder.create(path, recipe)
    save_tokenizers(run.tokenizer, {"source": source, "target": target})
    return keep(run, build(recipe.model, source.size, target.size), 0.5)  # decided: no ties


def words_run(path: Path, *sets: str, **model: Any) -> RunFolder:
    """Reads digits, or the characters of these sets."""
    data = {"train": {"rendered": "words", "pairs": 10}, "valid": {"rendered": "words", "pairs": 6}, "resize": "squash"}
    charset = {"sets": list(sets or ("digits",))}
    raw = {"task": "recognition", "data": data, "charset": charset, "model": {**TINY, **model}}
    recipe = recipes.check(raw, "test")
    run = RunFolder.create(path, recipe)
    assert isinstance(recipe.model, RecognizerSection)
    found = Charset.of(CharsetSection(**charset))  # type: ignore[arg-type]
    (path / "charset.json").write_text(found.to_json(), encoding="utf-8")
    return keep(run, build_recognizer(recipe.model, found))
