"""What a run must remember besides weights and optimiser, so that a resumed run is the run that never stopped."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any


@dataclass
class TrainState:
    update: int = 0  # updates done
    total: int | None = None  # updates planned; None while `--minutes` is still measuring
    minutes: float | None = None  # what `--minutes` asked for
    seconds: float = 0.0  # time spent so far, over all sessions
    tokens: int = 0  # target tokens learned from
    best: float | None = None  # best validation value, larger is better
    best_update: int | None = None
    validated: list[int] = field(default_factory=list)  # the last validations, when their weights will be averaged
    averaged: int = 0  # how many checkpoints these weights are the mean of, when they are
    stale: int = 0  # validations since the best
    plateau_stale: int = 0  # validations since the last progress or cut
    plateau_scale: float = 1.0  # what the plateau schedule has multiplied the learning rate by
    window: dict[str, float] = field(default_factory=dict)  # sums since the last line of progress
    metrics_bytes: int = 0  # length of metrics.jsonl at this moment
    threads: int = 0
    world: int = 1  # processes
    device: str = "cpu"
    data: list[str] = field(default_factory=list)  # keys of the token stores: what was learned from
    scale: float | None = None  # of the loss, with float16
    scale_good: int = 0  # updates since the scale last changed
    left_out: list[int] = field(default_factory=list)  # updates that are passed over, because they led astray
    recovered: int = 0  # how often something had to be left out
    loss_mean: float | None = None  # running mean of the loss a word, to know a loss that is far too large
    loss_spread: float = 0.0  # and of its distance from the mean
    high: int = 0  # how many of the newest losses were far too large
    high_since: int = 0  # the first of these
    stopped: str | None = None  # why the run is complete, when it is

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> TrainState:
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in raw.items() if key in known})

    def note_validation(self, value: float, plateau_patience: int, plateau_factor: float) -> bool:
        """Take a validation value (larger is better) into account; True when it is the best so far."""
        if self.best is None or value > self.best:
            self.best, self.best_update = value, self.update
            self.stale = self.plateau_stale = 0
            return True
        self.stale += 1
        self.plateau_stale += 1
        if self.plateau_stale > plateau_patience:
            self.plateau_scale *= plateau_factor
            self.plateau_stale = 0
        return False
