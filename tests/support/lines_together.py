"""The line through points of line.py, learned by one process or by several, with all kinds of trouble."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from line import Line, LineTask, Points
from torch import nn

from jumok import recipe as recipes
from jumok.tasks.objective import Loss
from jumok.training.distributed import Ranks
from jumok.training.events import Events, MetricsFile
from jumok.training.loop import Loop
from jumok.training.meeting import joined
from jumok.training.run import RunFolder
from jumok.training.state import TrainState


@dataclass(frozen=True)
class Trouble:
    poison: tuple[int, int] = (-1, 0)  # the update and the micro-batch whose targets are not numbers
    huge: tuple[int, int] = (-9, 0)  # … or monstrous, as are those of two updates after it, the first time
    room: tuple[int, ...] = ()  # how many points each process can hold
    end: tuple[int, int] = (-1, 0)  # the update at which the process with this number is gone
    error: tuple[int, int] = (-1, 0)  # … or raises an error of its own
    stop: tuple[int, int] = (-1, 0)  # … or is asked to stop


class Narrow(Line):
    """It holds only so many points, and notices in the backward pass, when part of the gradient is there already."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.noise = nn.Dropout(0.0)
        self.room = room

    def forward(self, points: Points) -> Loss:
        loss = super().forward(points)
        if len(points) > self.room:

            def full(gradient: Any) -> None:
                raise torch.OutOfMemoryError("there is no more")

            self.model.bias.grad = torch.ones_like(self.model.bias)
            loss.sum.register_hook(full)
        return loss


class SharedLine(LineTask):
    def __init__(self, sizes: tuple[int, ...], trouble: Trouble, ranks: Ranks) -> None:
        super().__init__(sizes)
        self.trouble, self.ranks = trouble, ranks
        self.monstrous = set(range(trouble.huge[0], trouble.huge[0] + 3))
        if trouble.room:
            self.objective = Narrow(trouble.room[ranks.rank])

    def batches(self, update: int, only: Sequence[int] | None = None) -> list[Points]:
        rank, trouble = self.ranks.rank, self.trouble
        if trouble.end == (update, rank):
            os._exit(9)
        if trouble.error == (update, rank):
            raise ValueError("something else")
        if trouble.stop == (update, rank):
            self.ranks.asked.set()
        batches = super().batches(update)
        if update == trouble.poison[0]:
            batches[trouble.poison[1]].y.fill_(float("nan"))
        if update in self.monstrous:
            batches[trouble.huge[1]].y.add_(1e4)
            self.monstrous.discard(update)
        return batches if only is None else [batches[number] for number in only]


def learn(folder: Path, sizes: tuple[int, ...], keys: Sequence[str] = (), trouble: Trouble = Trouble()) -> Any:
    """Train, and say how it ended: weights, gradients, state, and what was said."""
    with joined() as ranks:
        task = SharedLine(sizes, trouble, ranks)
        base = ["training.warmup=0", "training.learning_rate=0.05", "training.schedule=constant"]
        base += ["training.log_every=1", f"training.accumulate={len(sizes)}"]
        recipe = recipes.read("lstm", [*base, *keys])
        run = RunFolder(folder)
        if ranks.rank == 0:
            run = RunFolder.create(folder, recipe)
        said: list[str] = []
        with Events([_Said(said)] + ([] if ranks.rank else [MetricsFile(run.metrics, 0)])) as events:
            loop = Loop(task, recipe, run, torch.device("cpu"), _state(recipe), events, ranks)
            state = loop.go()
        model = loop.objective.model
        parameters = dict(model.named_parameters())
        return {
            "weights": {name: parameter.tolist() for name, parameter in parameters.items()},
            "gradients": {name: p.grad.tolist() for name, p in parameters.items() if p.grad is not None},
            "state": {key: value for key, value in state.to_json().items() if key not in LOCAL},
            "said": said,
        }


LOCAL = {"seconds", "window", "metrics_bytes"}  # of a state: what only the first process knows


def _state(recipe: recipes.Recipe) -> TrainState:
    return TrainState(total=recipe.training.updates)


class _Said:
    def __init__(self, said: list[str]) -> None:
        self.said = said

    def event(self, event: str, update: int, values: dict[str, Any]) -> None:
        if event == "message":
            self.said.append(values["text"])

    def close(self) -> None:
        pass


def talk() -> Any:
    """All ways of telling each other something."""
    with joined() as ranks:
        tensors = [torch.full((3,), float(ranks.rank)), torch.arange(4.0) * ranks.rank]
        ranks.add_up(tensors)
        model = torch.full((2, 2), float(ranks.rank))
        ranks.equalise([model])
        order: list[float] = []
        ranks.local = max(0, ranks.rank - 1)  # as if the second were on another machine
        ranks.after_first(lambda: (time.sleep(0.1), order.append(time.monotonic())))
        order.append(time.monotonic())
        return {
            "total": ranks.total(1.5, ranks.rank),
            "share": ranks.share({"from": ranks.rank, "text": "주목"}),
            "each": ranks.each(ranks.rank * 10),
            "first": ranks.first(lambda: f"done by {ranks.rank}"),
            "tensors": [tensor.tolist() for tensor in tensors],
            "model": model.tolist(),
            "after": order,
        }


def fail_first() -> None:
    from jumok.errors import BadInput

    def fail() -> None:
        raise BadInput("no such file")

    with joined() as ranks:
        ranks.first(fail)


def disagree(differing: int) -> None:
    with joined() as ranks:
        ranks.same(recipe="one", code=f"{ranks.rank == differing}")
