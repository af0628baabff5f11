"""Averaged weights: the running one against its formula, the mean of checkpoints, and both through kills."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from line import LineTask, Points, make, told
from safetensors.torch import load_file, save_file
from torch import nn

from jumok.errors import BadInput
from jumok.training import checkpoint
from jumok.training.averaging import RunningAverage, average_run, mean_weights
from jumok.training.loop import Loop
from jumok.training.run import RunFolder
from jumok.training.state import TrainState
from jumok.training.verify import differences


def test_the_running_average_follows_its_formula() -> None:
    model = nn.Linear(3, 2)
    average = RunningAverage(model, 0.75)
    expected = {name: p.detach().double() for name, p in model.named_parameters()}
    for update in range(40):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        average.note(update)
        decay = min(0.75, (1 + update) / (10 + update))
        for name, parameter in model.named_parameters():
            expected[name] = decay * expected[name] + (1 - decay) * parameter.detach().double()
    for name, tensor in average.weights.items():
        torch.testing.assert_close(tensor, expected[name].float())


def test_the_models_own_weights_come_back_to_the_bit() -> None:
    model = nn.Linear(3, 2)
    average = RunningAverage(model, 0.5)
    with torch.no_grad():
        model.weight += 1
    own = model.weight.detach().clone()
    with average.applied():
        assert torch.equal(model.weight, average.weights["weight"])
        assert not torch.equal(model.weight, own)
    assert torch.equal(model.weight, own)


def test_the_mean_of_checkpoints(tmp_path: Path) -> None:
    tensors = [torch.randn(4, 3) for _ in range(5)]
    for number, tensor in enumerate(tensors):
        (tmp_path / str(number)).mkdir()
        save_file({"w": tensor}, tmp_path / str(number) / checkpoint.MODEL)
    mean = mean_weights([tmp_path / str(number) for number in range(5)])["w"]
    assert mean.dtype == torch.float32
    torch.testing.assert_close(mean, torch.stack(tensors).double().mean(0).float(), rtol=0, atol=0)


# ------------------------------------------------------------ in a run


class Honest(LineTask):
    """Validates what the model really is: its mean error on fixed points."""

    def validate(self) -> dict[str, float]:
        points = super().batches(10_000)[0]
        with torch.no_grad():
            return {"loss": float((self.objective.model(points.x).squeeze(1) - points.y).abs().mean())}


KEYS = [
    "training.updates=20", "training.log_every=3", "training.validate_every=6", "training.checkpoint_every=1",
    "training.keep=1", "training.learning_rate=0.3",
]  # fmt: skip


def resume(path: Path, task: LineTask, *keys: str) -> Loop:
    found = checkpoint.newest_good(RunFolder(path), print)
    if found is None:
        return make(path, task, *keys)
    state = TrainState.from_json(json.loads((found / checkpoint.STATE).read_text()))
    loop = make(path, task, *keys, state=state)
    assert loop.restore(found) == state
    checkpoint.repair_pointers(loop.run, loop.state)
    return loop


def test_the_checkpoint_holds_the_average_and_the_own_weights_beside_it(tmp_path: Path) -> None:
    task = Honest()
    loop = make(tmp_path, task, *KEYS, "training.ema=0.9")
    loop.go()
    validated = told(tmp_path, "valid")[-1]
    stored = load_file(tmp_path / "checkpoints" / "step-20" / checkpoint.MODEL)
    assert loop.average is not None
    assert torch.equal(stored["weight"], loop.average.weights["weight"])
    assert not torch.equal(stored["weight"], task.objective.model.weight)
    again = Honest()
    other = make(tmp_path, again, *KEYS, "training.ema=0.9")
    other.restore(tmp_path / "checkpoints" / "step-20")
    assert torch.equal(again.objective.model.weight, task.objective.model.weight)
    # whoever only loads the weights gets the average, and what was validated is the average
    checkpoint.load(tmp_path / "checkpoints" / "step-20", again.objective.model)
    assert torch.equal(again.objective.model.weight, stored["weight"])
    assert validated["loss"] == again.validate()["loss"]


class Stop(BaseException):
    """A kill: nobody may catch it."""


AVERAGES = [["training.ema=0.8"], ["training.average=3"], ["training.ema=0.8", "training.average=2"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RunFolder]:
    """The run that nobody disturbed, made once for all that are compared with it."""
    place = tmp_path_factory.mktemp("whole")

    @functools.cache
    def made(sizes: tuple[int, ...], *keys: str) -> RunFolder:
        path = place / str(len(list(place.iterdir())))
        make(path, Honest(sizes), *keys).go()
        return RunFolder(path)

    return made


@pytest.mark.parametrize("average", AVERAGES, ids=str)
@pytest.mark.parametrize("stop", [1, 6, 13, 19])
def test_stopped_anywhere_and_resumed_it_is_the_same_run(
    tmp_path: Path, whole: Callable[..., RunFolder], stop: int, average: list[str]
) -> None:
    keys = [*KEYS, *average]

    class Stopping(Honest):
        def batches(self, update: int) -> list[Points]:
            if update == stop:
                raise Stop
            return super().batches(update)

    with pytest.raises(Stop):
        make(tmp_path / "stopped", Stopping((3, 4)), *keys).go()
    resume(tmp_path / "stopped", Honest((3, 4)), *keys).go()
    assert differences(whole((3, 4), *keys), RunFolder(tmp_path / "stopped")) == []


@pytest.mark.parametrize("number", range(40))
def test_killed_at_any_write_of_the_end_it_is_the_same_run(
    tmp_path: Path, whole: Callable[..., RunFolder], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write to the disk after the last update is, in turn, the one that does not happen."""
    keys = [*KEYS, "training.average=3", "training.checkpoint_every=99"]
    expected = whole((5,), *keys)
    count = itertools.count()
    ended = True

    def armed(function: Any) -> Any:
        def wrapped(*arguments: Any, **others: Any) -> Any:
            nonlocal ended
            if loop.state.update >= 20 and next(count) == number:
                ended = False
                raise Stop
            return function(*arguments, **others)

        return wrapped

    for name in ("replace_file", "_save_tensors", "flush_file", "flush_folder", "remove_folder"):
        monkeypatch.setattr(checkpoint, name, armed(getattr(checkpoint, name)))
    monkeypatch.setattr(RunFolder, "point", armed(RunFolder.point))
    monkeypatch.setattr(Path, "rename", armed(Path.rename))
    loop = make(tmp_path / "killed", Honest(), *keys)
    try:
        loop.go()
    except Stop:
        pass
    finally:
        monkeypatch.undo()
    if ended:
        assert number >= 20, f"only {next(count)} writes were seen"
        return
    again = resume(tmp_path / "killed", Honest(), *keys)
    if again.state.stopped is None:
        again.go()
    assert differences(expected, RunFolder(tmp_path / "killed")) == []


def test_the_average_is_the_mean_of_the_last_validations_and_the_best_when_it_is(tmp_path: Path) -> None:
    """Validated at 6, 12, 18 and 20; the rate is so large that the single points jump about."""
    state = make(tmp_path, Honest(), *KEYS, "training.average=3").go()
    other = tmp_path / "kept"
    make(other, Honest(), *KEYS, "training.keep=99").go()
    run = RunFolder(tmp_path)
    assert state.update == run.pointed("last") == 21
    assert state.stopped == "all 20 updates are done; the last 3 validated checkpoints are averaged"
    average = load_file(run.checkpoints / "step-21" / checkpoint.MODEL)
    folders = [other / "checkpoints" / f"step-{update}" for update in (12, 18, 20)]
    torch.testing.assert_close(average["weight"], mean_weights(folders)["weight"], rtol=0, atol=0)
    *before, last = told(tmp_path, "valid")
    assert last["averaged"] == 3
    is_best = last["loss"] <= min(event["loss"] for event in before)
    assert last["best"] == is_best
    assert (run.pointed("best") == 21) == is_best
    names = {path.name for path in run.checkpoints.iterdir()}
    assert names == {"step-21", f"step-{run.pointed('best')}"}, "what was kept for the average is gone"


@pytest.mark.parametrize(("last", "is_best"), [(0.4, True), (0.5, True), (0.6, False)])
def test_an_average_as_good_as_the_best_is_the_best(tmp_path: Path, last: float, is_best: bool) -> None:
    task = LineTask(validations=[0.9, 0.5, 0.7, 0.6, last])
    make(tmp_path, task, *KEYS, "training.average=2").go()
    run = RunFolder(tmp_path)
    assert run.pointed("best") == (21 if is_best else 12)
    assert math.isclose(json.loads((tmp_path / "best.json").read_text())["value"], -min(0.5, last))


def test_early_stopping_ends_with_the_average_too(tmp_path: Path) -> None:
    task = LineTask(validations=[0.9, 0.5, 0.6, 0.7, 0.3])
    state = make(tmp_path, task, *KEYS, "training.updates=100", "training.patience=2", "training.average=2").go()
    assert state.update == 25
    assert state.stopped == "no progress in 2 validations; the last 2 validated checkpoints are averaged"
    assert RunFolder(tmp_path).pointed("best") == 25


def test_a_damaged_checkpoint_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Breaking(Honest):
        def batches(self, update: int) -> list[Points]:
            if update == 19:
                (tmp_path / "checkpoints" / "step-12" / checkpoint.MODEL).write_bytes(b"")
            return super().batches(update)

    class Ear:
        def event(self, event: str, update: int, values: dict[str, Any]) -> None:
            if event == "message":
                print(values["text"])

        def close(self) -> None:
            pass

    loop = make(tmp_path, Breaking(), *KEYS, "training.average=3")
    loop.events.sinks.append(Ear())
    assert "the last 2 validated" in str(loop.go().stopped)
    assert "step-12" in capsys.readouterr().out


# ------------------------------------------------------------ as a run of its own


def test_a_run_from_the_newest_checkpoints(tmp_path: Path) -> None:
    make(tmp_path / "run", Honest(), *KEYS, "training.keep=4").go()
    run, out = RunFolder(tmp_path / "run"), tmp_path / "averaged"
    (run.path / "tokenizer").mkdir()
    (run.path / "tokenizer" / "about.json").write_text("{}")
    assert average_run(run, 3, out) == [18, 19, 20]
    made = RunFolder(out)
    assert made.recipe() == run.recipe()
    assert (made.pointed("last"), made.pointed("best")) == (20, 20)
    found = checkpoint.newest_good(made, print, prefer="best")
    assert found is not None
    model = nn.Linear(4, 1)
    state = checkpoint.load(found, model)
    assert "mean of updates 18, 19, 20" in str(state.stopped)
    mean = mean_weights([run.checkpoints / f"step-{step}" for step in (18, 19, 20)])
    assert torch.equal(model.weight, mean["weight"])
    assert {path.name for path in out.iterdir()} == {
        "recipe.yaml", "tokenizer", "checkpoints", "last.json", "best.json",
    }  # fmt: skip


def test_an_average_is_not_averaged_again(tmp_path: Path) -> None:
    make(tmp_path / "run", Honest(), *KEYS, "training.keep=4", "training.average=2").go()
    assert RunFolder(tmp_path / "run").pointed("last") == 21
    assert average_run(RunFolder(tmp_path / "run"), 3, tmp_path / "out") == [18, 19, 20]


def test_too_few_checkpoints_and_a_used_folder_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "run", Honest(), *KEYS).go()
    run = RunFolder(tmp_path / "run")
    with pytest.raises(BadInput, match=r"not 5.*training\.keep=5"):
        average_run(run, 5, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    full = tmp_path / "full"
    full.mkdir()
    (full / "precious").write_text("mine")
    make(tmp_path / "other", Honest(), *KEYS, "training.keep=3").go()
    with pytest.raises(BadInput, match="not empty"):
        average_run(RunFolder(tmp_path / "other"), 2, full)
    with pytest.raises(BadInput, match="holds a run"):
        average_run(RunFolder(tmp_path / "other"), 2, run.path)
    assert [path.name for path in full.iterdir()] == ["precious"]
