"""Averages of weights: a running one during training, and one over checkpoints.

    EMA          θ̄ ← d · θ̄ + (1 − d) · θ   after every update t = 0, 1, …, with d = min(decay, (1 + t) / (10 + t))
    checkpoints  θ̄ = (θ₁ + … + θ_N) / N     (Vaswani et al. 2017 average the last 5 or 20)

The warm-up of d lets the average forget the random beginning: after t updates it looks back about t / 9 of them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.files import disk_errors_named, remove_folder
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState


class RunningAverage:
    """The exponential moving average of a model's parameters."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    @torch.no_grad()
    def note(self, update: int) -> None:
        """Take the weights after the update with this number (from 0) into the average."""
        decay = min(self.decay, (1 + update) / (10 + update))
        current = [parameter.detach() for _, parameter in self.model.named_parameters()]
        torch._foreach_lerp_(list(self.weights.values()), current, 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the model has the averaged weights; afterwards its own again, to the bit."""
        own = {name: parameter.detach().clone() for name, parameter in self.model.named_parameters()}
        self._put(self.weights)
        try:
            yield
        finally:
            self._put(own)

    @torch.no_grad()
    def _put(self, weights: dict[str, Tensor]) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.copy_(weights[name])


def mean_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints, summed in double precision in the given order."""
    total: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    for folder in folders:
        for name, tensor in load_file(folder / checkpoint.MODEL).items():
            kinds[name] = tensor.dtype
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / len(folders)).to(kinds[name]) for name, tensor in total.items()}


def average_run(run: RunFolder, last: int, out: Path) -> list[int]:
    """A new run folder whose weights are the mean of the `last` newest checkpoints of a run; gives their updates."""
    found = {step: path for step, path in checkpoint.intact(run).items() if not _state(path).averaged}
    if len(found) < last:
        have = f"{len(found)} intact checkpoint{'s' * (len(found) != 1)}"
        raise BadInput(
            f"{run.path} has {have}, not {last}: a run keeps the best and the newest ones, here "
            f"training.keep={run.recipe().training.keep} of them. Train with training.keep={last}; or with "
            f"training.average={last}, which averages at the end by itself."
        )
    RunFolder.check_free(out)
    if out.is_dir() and any(out.iterdir()):
        raise BadInput(f"{out} is not empty: choose another --out")
    steps = sorted(found)[-last:]
    state = dataclasses.replace(
        _state(found[steps[-1]]),
        best=None,
        best_update=steps[-1],
        validated=[],
        averaged=len(steps),
        stopped=f"it is the mean of updates {', '.join(map(str, steps))} of {run.path}",
    )
    temporary = RunFolder(out.with_name(f".averaging-{out.name}-{os.getpid()}"))
    with disk_errors_named("writing the average", out, "Free some space, or choose another --out."):
        try:
            # all that loading needs besides the weights (recipe, tokenizers), nothing that tells of the training
            kept = shutil.ignore_patterns(
                ".*", run.checkpoints.name, "last.json", "best.json", run.metrics.name, run.report.name, "tensorboard",
                "wandb",
            )  # fmt: skip
            shutil.copytree(run.path, temporary.path, ignore=kept)
            weights = mean_weights([found[step] for step in steps])
            checkpoint.write(temporary.checkpoints / found[steps[-1]].name, weights, None, state)
            for name in ("last", "best"):
                temporary.point(name, state.update)
            if out.is_dir():
                out.rmdir()
            temporary.path.rename(out)
        finally:
            remove_folder(temporary.path)
    return steps


def _state(folder: Path) -> TrainState:
    return TrainState.from_json(json.loads((folder / checkpoint.STATE).read_text(encoding="utf-8")))
