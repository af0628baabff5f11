"""A task small enough to check the loop by hand: a line through points."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jumok import recipe as recipes
from jumok.recipe import Recipe
from jumok.tasks.objective import Loss, Objective
from jumok.training.events import Events, MetricsFile
from jumok.training.loop import Loop
from jumok.training.run import RunFolder
from jumok.training.state import TrainState


@dataclass(frozen=True)
class Points:
    x: Tensor
    y: Tensor

    @property
    def tokens(self) -> int:
        return len(self.x)

    def __len__(self) -> int:
        return len(self.x)

    def to(self, device: Any) -> Points:
        return self

    def split(self, parts: int) -> list[Points]:
        size = -(-len(self) // parts)
        return [Points(*both) for both in zip(self.x.split(size), self.y.split(size), strict=True)]


class Line(Objective):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.model = nn.Linear(4, 1)
        self.noise = nn.Dropout(0.5)

    def forward(self, points: Points) -> Loss:
        error = self.model(self.noise(points.x)).squeeze(1) - points.y
        return Loss(error.square().sum(), len(points.x), {"absolute": error.abs().sum()})


class LineTask:
    """Batch k of update u is a pure function of (u, k); validation values come from a list."""

    def __init__(self, sizes: tuple[int, ...] = (5,), validations: list[float] | None = None, poison: int = -1) -> None:
        self.objective = Line()
        self.sizes, self.poison = sizes, poison
        self.validations = iter(validations or [])
        self.last = 1.0

    def batches(self, update: int) -> list[Points]:
        generator = torch.Generator().manual_seed(update)
        x = torch.randn(sum(self.sizes), 4, generator=generator)
        y = x @ torch.tensor([1.0, -2.0, 3.0, 0.5])
        if update == self.poison:
            y[0] = math.nan
        parts = zip(x.split(list(self.sizes)), y.split(list(self.sizes)), strict=True)
        return [Points(*part) for part in parts]

    def validate(self) -> dict[str, float]:
        self.last = next(self.validations, self.last * 0.9)
        return {"loss": self.last}

    def name_batch(self, batch: Points) -> str:
        return f"{len(batch.x)} points"


def make(path: Path, task: LineTask, *keys: str, state: TrainState | None = None) -> Loop:
    base = ["training.warmup=0", "training.learning_rate=0.05", "training.schedule=constant", "training.log_every=1"]
    recipe: Recipe = recipes.read("lstm", [*base, *keys])
    run = RunFolder(path) if (path / "recipe.yaml").exists() else RunFolder.create(path, recipe)
    state = state or TrainState(total=recipe.training.updates)
    events = Events([MetricsFile(run.metrics, state.metrics_bytes)])
    return Loop(task, recipe, run, torch.device("cpu"), state, events)


def told(path: Path, event: str) -> list[dict[str, Any]]:
    lines = (path / "metrics.jsonl").read_text().splitlines()
    return [values for values in map(json.loads, lines) if values["event"] == event]
