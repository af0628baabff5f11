"""`jumok.train` as one of several processes calls it, on recipes small enough for a test."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from jumok import api
from jumok import recipe as recipes
from jumok.tasks.translation import TranslationObjective

SMALL = [
    "training.updates=6", "training.log_every=1", "training.checkpoint_every=2", "training.validate_every=3",
    "training.warmup=0", "training.accumulate=2", "training.keep=9", "threads=1",
    "training.epsilon=0.001",  # a gradient that is nothing but rounding (of a key's bias) must not become a whole step
]  # fmt: skip
PAIRS = [
    "data.train.grammar=en-fr", "data.train.pairs=120", "data.valid=null", "data.hold_out=6", "tokenizer.kind=word",
    "training.batch_tokens=256", "training.validate_sentences=2", "search.beam=1",
]  # fmt: skip
TRANSFORMER = [
    "model.width=16", "model.heads=2", "model.feed_forward=24", "model.encoder_layers=1", "model.decoder_layers=1",
    "model.dropout=0.2",
]  # fmt: skip
LSTM = ["model.width=16", "model.embedding=12", "model.layers=1", "model.dropout=0.2"]


class Stop(Exception):
    """As if the process had been killed."""


class StopAt:
    def __init__(self, update: int) -> None:
        self.update = update

    def event(self, event: str, update: int, values: dict[str, Any]) -> None:
        if event == "train" and update == self.update:
            raise Stop

    def close(self) -> None:
        pass


def train(
    run: Path, name: str, keys: Sequence[str], stop_at: int = 0, resume: bool = False, full: tuple[int, int] = (-1, 0)
) -> str:
    """Train; `stop_at` an update the first process is gone, and one has no memory for its (rank, call)."""
    if full[0] == int(os.environ.get("RANK", -1)):
        _run_out_of_memory(full[1])
    recipe = None if resume else recipes.read(name, [*SMALL, *keys])
    try:
        api.train(recipe, run, resume=resume, sinks=[StopAt(stop_at)], quiet=True, report=False)
    except Stop:
        return "stopped"
    return "trained"


def _run_out_of_memory(call: int) -> None:
    forward, calls = TranslationObjective.forward, []

    def narrow(self: TranslationObjective, batch: Any) -> Any:
        calls.append(batch)
        if len(calls) == call:
            raise torch.OutOfMemoryError("there is no more")
        return forward(self, batch)

    TranslationObjective.forward = narrow  # type: ignore[method-assign]
