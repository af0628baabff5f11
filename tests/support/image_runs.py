"""Runs of Vision Transformers of any options, with random weights: for who writes them out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from jumok import recipe as recipes
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState


def image_run(path: Path, resize: str = "squash", **model: Any) -> RunFolder:
    """A Vision Transformer of any options, with random weights."""
    section = {"image": 8, "patch": 4, "width": 16, "heads": 2, "layers": 2, "feed_forward": 24, **model}
    raw = {"task": "vision", "data": {"train": {"drawn": "shapes"}, "valid": {"drawn": "shapes"}, "resize": resize}}
    recipe = recipes.check({**raw, "model": {"kind": "vit", **section}}, "test")
    run = RunFolder.create(path, recipe)
    assert isinstance(recipe.model, VitSection)
    labeller = ImageLabeller(recipe.model, 3)
    for parameter in labeller.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    (path / "labels.json").write_text(json.dumps({"labels": ["고양이", "dog", "cow"], "counts": [1, 1, 1]}))
    checkpoint.write(run.checkpoints / "step-0", dict(labeller.state_dict()), None, TrainState(total=0))
    run.metrics.write_text('{"event": "valid", "step": 0, "loss": 0.5, "accuracy": 0.8125, "best": true}\n')
    return run
