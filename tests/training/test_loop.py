"""The loop on a task small enough to check by hand: a line through points."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from line import LineTask, Points, make, told
from torch import nn

from jumok.errors import Failure
from jumok.training import checkpoint
from jumok.training.meter import CLOCK
from jumok.training.run import RunFolder
from jumok.training.state import TrainState


def test_uneven_micro_batches_give_the_gradient_of_one_batch(tmp_path: Path) -> None:
    whole, parts = LineTask((9,)), LineTask((2, 6, 1))
    for task in (whole, parts):
        task.objective.noise = nn.Dropout(0.0)
    for name, task in (("whole", whole), ("parts", parts)):
        make(tmp_path / name, task, "training.updates=5").go()
    torch.testing.assert_close(whole.objective.model.weight, parts.objective.model.weight, rtol=1e-5, atol=1e-6)


def test_it_learns_and_logs_means(tmp_path: Path) -> None:
    task = LineTask((20,))
    task.objective.noise = nn.Dropout(0.0)
    make(tmp_path, task, "training.updates=300", "training.learning_rate=0.1").go()
    first, last = told(tmp_path, "train")[0], told(tmp_path, "train")[-1]
    assert last["loss"] < 0.01 * first["loss"]
    assert last["step"] == 300
    assert first["learning_rate"] == 0.1
    assert {"absolute", "gradient_norm", "tokens_per_second"} <= first.keys()


def test_clipping_bounds_the_gradient(tmp_path: Path) -> None:
    loop = make(tmp_path, LineTask(), "training.clip=0.001")
    loop._launch()
    norm = loop.under_way[0].values()["gradient_norm"]
    seen = math.sqrt(sum(float(p.grad.square().sum()) for p in loop.objective.parameters() if p.grad is not None))
    assert norm > 0.001
    assert seen == pytest.approx(0.001, rel=1e-3)


@pytest.mark.parametrize("stop", [1, 7, 12, 19])
def test_stopped_anywhere_and_resumed_it_is_the_same_run(tmp_path: Path, stop: int) -> None:
    """Dropout on, validations and logs at odd places: weights and everything in metrics.jsonl agree."""
    keys = ["training.updates=20", "training.log_every=3", "training.validate_every=6", "training.checkpoint_every=1"]
    values = [0.9, 0.95, 0.5, 0.7]
    whole = LineTask((3, 4), list(values))
    make(tmp_path / "whole", whole, *keys).go()

    class Stop(Exception):
        pass

    class Stopping(LineTask):
        def batches(self, update: int) -> list[Points]:
            if update == stop:
                raise Stop
            return super().batches(update)

    with pytest.raises(Stop):
        make(tmp_path / "stopped", Stopping((3, 4), list(values)), *keys).go()
    resumed = LineTask((3, 4), values[stop // 6 :])
    found = checkpoint.newest_good(RunFolder(tmp_path / "stopped"), print)
    assert found is not None
    state = TrainState.from_json(json.loads((found / "state.json").read_text()))
    assert state.update == stop
    loop = make(tmp_path / "stopped", resumed, *keys, state=state)
    checkpoint.load(found, loop.objective.model, loop.optimizer)
    loop.go()
    assert torch.equal(whole.objective.model.weight, resumed.objective.model.weight)

    def without_clock(path: Path) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        return [{k: v for k, v in line.items() if k not in CLOCK} for line in lines]

    assert without_clock(tmp_path / "whole") == without_clock(tmp_path / "stopped")


def test_values_read_late_and_batches_made_ahead_change_nothing(tmp_path: Path) -> None:
    """As on a GPU; also through a plan that validates and saves in between, and an update that is left out."""
    tasks = LineTask((3, 4), poison=6), LineTask((3, 4), poison=6)
    for late, task in enumerate(tasks):
        loop = make(tmp_path / str(late), task, "training.updates=15", "training.validate_every=4")
        loop.late, loop.ahead.pool = late, ThreadPoolExecutor(1) if late else None
        loop.ahead._pinned = task.batches  # type: ignore[method-assign]  # there is nothing to pin memory for
        loop.go()
    assert torch.equal(tasks[0].objective.model.weight, tasks[1].objective.model.weight)
    losses = [[event["loss"] for event in told(tmp_path / str(late), "train")] for late in (0, 1)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 14


def test_a_poisoned_update_is_not_taken(tmp_path: Path) -> None:
    task = LineTask(poison=4)
    loop = make(tmp_path, task, "training.updates=10", "training.checkpoint_every=100", "training.skip_bad=0")
    with pytest.raises(Failure, match=r"update 5 is not a number .* on 5 points") as caught:
        loop.go()
    assert "training.learning_rate" in str(caught.value)
    assert torch.isfinite(task.objective.model.weight).all()
    fresh = make(tmp_path, LineTask(poison=4))
    state = checkpoint.load(tmp_path / "checkpoints" / "step-4", fresh.objective.model)
    assert state.update == 4
    assert torch.equal(fresh.objective.model.weight, task.objective.model.weight)


def test_a_poisoned_update_is_left_out_and_the_run_goes_on(tmp_path: Path) -> None:
    task, keys = LineTask(poison=4), ["training.updates=10", "training.checkpoint_every=100"]
    state = make(tmp_path / "poisoned", task, *keys).go()
    assert (state.update, state.recovered) == (10, 1)
    assert [event["step"] for event in told(tmp_path / "poisoned", "recovered")] == [5]
    assert [event["step"] for event in told(tmp_path / "poisoned", "train")] == [1, 2, 3, 4, 6, 7, 8, 9, 10]
    clean = LineTask()
    state = TrainState(total=10, left_out=[4])
    make(tmp_path / "clean", clean, *keys, state=state).go()
    assert torch.equal(task.objective.model.weight, clean.objective.model.weight)


def test_too_many_poisoned_updates_end_the_run(tmp_path: Path) -> None:
    class Poisoned(LineTask):
        def batches(self, update: int) -> list[Points]:
            self.poison = update if update % 2 else -1
            return super().batches(update)

    with pytest.raises(Failure, match="update 6 is not a number"):
        make(tmp_path, Poisoned(), "training.updates=20", "training.skip_bad=2").go()
    assert len(told(tmp_path, "recovered")) == 2


class Monstrous(LineTask):
    """At some updates the targets are huge, the first time they are asked for."""

    def __init__(self, *huge: int) -> None:
        super().__init__()
        self.huge = set(huge)

    def batches(self, update: int) -> list[Points]:
        shift = 1e4 * (update in self.huge)
        self.huge.discard(update)
        return [Points(batch.x, batch.y + shift) for batch in super().batches(update)]


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize(("every", "back"), [(20, 60), (37, 37)])
def test_losses_far_too_large_go_back_to_a_checkpoint_and_round_the_place(
    tmp_path: Path, late: int, every: int, back: int
) -> None:
    """A checkpoint from just before (74 of 37) may be of weights that have gone astray already: it is not used."""
    task = Monstrous(73, 74, 75)
    keys = ["training.updates=90", f"training.checkpoint_every={every}", "training.validate_every=1000"]
    loop = make(tmp_path / "a", task, *keys)
    loop.late, said = late, []
    loop.events.say = said.append  # type: ignore[method-assign]
    state = loop.go()
    assert (state.update, state.recovered, state.left_out) == (90, 1, list(range(68, 76)))
    assert f"Back to the checkpoint of update {back}; updates 69 to 76 are passed over (1 of at most 5)" in said[0]
    steps = [event["step"] for event in told(tmp_path / "a", "train")]
    assert steps == [step for step in range(1, 91) if step not in range(69, 77)]
    assert [event["step"] for event in told(tmp_path / "a", "recovered")] == [76]
    plain = LineTask()
    make(tmp_path / "b", plain, *keys, state=TrainState(total=90, left_out=state.left_out)).go()
    assert torch.equal(task.objective.model.weight, plain.objective.model.weight)


def test_going_back_leaves_no_best_that_is_not_there(tmp_path: Path) -> None:
    """35 was the best until 70 was; 70 is left behind, 35 has long been removed, and 60 still believes in it."""
    task = Monstrous(73, 74, 75)
    task.validations = iter([0.5, 0.4, 0.9, 0.9, 0.9, 0.9])
    keys = ["training.updates=90", "training.checkpoint_every=20", "training.validate_every=35", "training.keep=2"]
    state = make(tmp_path, task, *keys).go()
    assert state.recovered == 1
    run = RunFolder(tmp_path)
    best = run.pointed("best")
    assert best is not None
    assert best == state.best_update
    assert (run.checkpoints / f"step-{best}").is_dir()


def test_one_loss_far_too_large_is_a_harder_text(tmp_path: Path) -> None:
    state = make(tmp_path, Monstrous(60, 62, 70, 71), "training.updates=90", "training.checkpoint_every=20").go()
    assert (state.update, state.recovered, state.left_out) == (90, 0, [])


def test_without_a_checkpoint_losses_far_too_large_are_told_and_the_run_goes_on(tmp_path: Path) -> None:
    loop = make(tmp_path, Monstrous(60, 61, 62), "training.updates=90", "training.checkpoint_every=100")
    said: list[str] = []
    loop.events.say = said.append  # type: ignore[method-assign]
    assert loop.go().update == 90
    assert "There is no checkpoint from before" in said[0]


def test_too_many_losses_far_too_large_end_the_run(tmp_path: Path) -> None:
    keys = ["training.updates=90", "training.checkpoint_every=20", "training.skip_bad=0"]
    with pytest.raises(Failure, match=r"update 63: the loss is .* has diverged; the checkpoint of update 60 is kept"):
        make(tmp_path, Monstrous(60, 61, 62), *keys).go()


def test_early_stopping_and_the_best_checkpoint(tmp_path: Path) -> None:
    task = LineTask(validations=[0.9, 0.5, 0.6, 0.7, 0.8, 0.4])
    keys = ["training.updates=100", "training.validate_every=2", "training.patience=3", "training.keep=1"]
    state = make(tmp_path, task, *keys).go()
    assert state.stopped == "no progress in 3 validations"
    assert state.update == 10
    run = RunFolder(tmp_path)
    assert (run.pointed("best"), run.pointed("last")) == (4, 10)
    assert {path.name for path in run.checkpoints.iterdir()} == {"step-4", "step-10"}


def test_a_plateau_cuts_the_rate(tmp_path: Path) -> None:
    task = LineTask(validations=[0.5, 0.6, 0.6, 0.6, 0.6, 0.6])
    keys = [
        "training.schedule=plateau",
        "training.plateau_patience=1",
        "training.validate_every=1",
        "training.updates=6",
    ]
    make(tmp_path, task, *keys).go()
    assert [event["learning_rate"] for event in told(tmp_path, "train")] == [0.05, 0.05, 0.05, 0.025, 0.025, 0.0125]


@pytest.mark.parametrize("problem", [math.nan, math.inf, Failure("row 0, step 3: not a number")])
def test_a_validation_that_is_not_a_number_stops_the_run(tmp_path: Path, problem: float | Failure) -> None:
    class Diverged(LineTask):
        def validate(self) -> dict[str, float]:
            if isinstance(problem, Failure):
                raise problem
            return {"loss": problem}

    loop = make(tmp_path, Diverged(), "training.updates=9", "training.validate_every=4", "training.checkpoint_every=3")
    with pytest.raises(Failure, match=r"validation after update 4 .*checkpoint of update 3 is kept.*learning_rate"):
        loop.go()
