"""Run folders as training leaves them behind, made by hand: small, quick, and of any kind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from jumok import recipe as recipes
from jumok.training.run import RunFolder
from jumok.training.state import TrainState


def make_run(
    path: Path,
    *keys: str,
    name: str = "lstm-luong",
    done: int = 40,
    stopped: str | None = "all is done",
    losses: tuple[float, ...] = (3.0, 2.5, 2.0, 2.25),
    seconds: float = 90.0,
    age: float = 0.0,
) -> Path:
    """A run of `done` updates with as many validations as losses, and BLEU that rises with them."""
    run = RunFolder.create(path, recipes.read(name, ["training.updates=40", *keys]))
    events: list[dict[str, Any]] = []
    for number, loss in enumerate(losses, 1):
        step = done * number // len(losses)
        events.append({"event": "train", "step": step, "loss": loss + 0.5, "tokens_per_second": 1000.0 * number})
        events.append(
            {"event": "valid", "step": step, "loss": loss, "bleu": 10.0 * number, "best": loss == min(losses)}
        )
    run.metrics.write_text("".join(json.dumps(event) + "\n" for event in events))
    state = TrainState(update=done, total=40, seconds=seconds, stopped=stopped)
    if losses:
        state.best, state.best_update = -min(losses), done
    checkpoint = run.checkpoints / f"step-{done}"
    checkpoint.mkdir()
    save_file({"a": torch.zeros(3, 5), "b": torch.zeros(7)}, checkpoint / "model.safetensors")
    (checkpoint / "state.json").write_text(json.dumps(state.to_json()))
    run.point("last", done)
    for file in (*path.iterdir(), path):
        changed = file.stat().st_mtime - age
        os.utime(file, (changed, changed))
    return path
