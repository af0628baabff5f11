"""One run of two processes under torchrun, with kills without warning: of a worker, of torchrun itself, and while a
checkpoint is being written. It ends with the weights, to the bit, of the run that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import secrets
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ranks import together
from torchrun import Torchrun, progress
from training_together import LSTM, PAIRS, SMALL, Stop, StopAt, train

from jumok import api
from jumok import recipe as recipes
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc")

KINDS = ["worker", "writing", "parent"]


class Chaos:
    """Kills a run again and again, and has it go on: torchrun starts its workers anew by itself, as often as it may."""

    def __init__(self, place: Path, keys: list[str], updates: int, moments: random.Random) -> None:
        self.run, self.updates, self.moments = RunFolder(place / "run"), updates, moments
        self.recipe = place / "recipe.yaml"
        self.recipe.write_text(recipes.dump(recipes.read("demo", [*SMALL, *keys, f"training.updates={updates}"])))
        self.kills: list[str] = []
        self.seen = 0  # when metrics.jsonl was last written to by processes that are gone
        self.started: list[Torchrun] = []
        self.start(restarts=1)

    def start(self, restarts: int) -> None:
        self.restarts = restarts
        resume = ["--resume"] * self.run.recipe_file.exists()
        self.started.append(Torchrun("train", self.recipe, "--run", self.run.path, *resume, restarts=restarts))

    @property
    def told(self) -> int:
        return self.run.metrics.stat().st_mtime_ns if self.run.metrics.exists() else 0

    def strike(self, kind: str, left: int) -> None:
        """Wait for a moment that is right for this kind of kill; kill; look at what is left, and have it go on.

        The way that is left to go is shared with the `left` kills to come.
        """
        torchrun = self.started[-1]
        if not torchrun.wait_for(lambda: self.told != self.seen and len(torchrun.workers()) == 2):
            return  # all was done before, or it did not start: `finish` will tell
        workers, last = torchrun.workers(), self.run.pointed("last") or 0
        target = last + self.moments.randint(1, max(1, (self.updates - last) // (left + 2)))

        def right() -> bool:
            if kind == "writing":
                return any(self.run.checkpoints.glob(".writing-*"))
            return progress(self.run.path) >= target

        if not torchrun.wait_for(right):
            return
        last = self.run.pointed("last") or 0
        os.kill(*{
            "worker": (workers[self.moments.randrange(2)], 9),
            "writing": (workers[0], 9),
            "parent": (torchrun.process.pid, 9),
        }[kind])  # fmt: skip
        self.kills.append(kind)
        if kind == "parent":
            self.start(self.moments.randrange(2))  # while the workers of the other are still there
        elif not self.restarts:
            assert torchrun.finish() != 0
            assert "another process of this run has ended" in torchrun.said()
            self.start(self.moments.randrange(2))
        else:
            self.restarts -= 1
        torchrun.wait_until_gone(workers.values())
        self.seen = self.told
        found = checkpoint.newest_good(self.run, pytest.fail)
        assert found is not None or not last
        assert found is None or int(found.name.removeprefix("step-")) >= last, "a checkpoint is lost"

    def finish(self) -> None:
        torchrun = self.started[-1]
        assert torchrun.finish() == 0, torchrun.said()


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[object]:
    begun: list[Chaos] = []

    def start(keys: list[str], updates: int, seed: int) -> Chaos:
        begun.append(Chaos(tmp_path, keys, updates, random.Random(seed)))
        return begun[-1]

    yield start
    for torchrun in (torchrun for chaos in begun for torchrun in chaos.started):
        torchrun.end()


CASES = {
    "attention": [*PAIRS, *LSTM, "training.accumulate=3"],
    "everything": [*PAIRS, *LSTM, "training.ema=0.9", "training.average=2", "training.r_drop=1"],
}


@pytest.mark.parametrize(
    ("case", "kinds", "kills", "updates"),
    [
        ("attention", KINDS, 2, 40),  # other two each time
        pytest.param("attention", KINDS, 3, 60, marks=pytest.mark.full),
        pytest.param("everything", KINDS * 7, 21, 1000, marks=pytest.mark.full),
    ],
)
def test_random_kills_change_nothing(
    begin: object, tmp_path: Path, case: str, kinds: list[str], kills: int, updates: int
) -> None:
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    keys = [*CASES[case], f"training.validate_every={updates // 3}", "training.checkpoint_every=4"]
    undisturbed = tmp_path / "undisturbed"
    assert together(2, train, undisturbed, "demo", [*keys, f"training.updates={updates}"]) == ["trained"] * 2
    chaos = begin(keys, updates, seed)  # type: ignore[operator]
    chosen = chaos.moments.sample(kinds, kills)
    for done, kind in enumerate(chosen, 1):
        chaos.strike(kind, kills - done)
    chaos.finish()
    assert chaos.kills == chosen, "all kills hit a run that was still going"
    assert differences(RunFolder(undisturbed), chaos.run) == []


def test_an_interrupt_of_torchrun_saves_everything(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """SIGTERM; then one process goes on where two have stopped, and says so."""
    run, keys = tmp_path / "run", [*SMALL, *CASES["attention"], "training.updates=100000"]
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(recipes.dump(recipes.read("demo", keys)))
    torchrun = Torchrun("train", recipe, "--run", run)
    try:
        assert torchrun.wait_for(lambda: progress(run) > 3)
        torchrun.process.terminate()
        assert torchrun.finish() != 0
        stopped = RunFolder(run).pointed("last")
        said = torchrun.said()
        assert f"stopped after update {stopped}; everything is saved" in said
        assert said.count("jumok:") == 1, "it is said once"
        assert [event["step"] for event in RunFolder(run).events() if event["event"] == "train"][-1] == stopped
        with pytest.raises(Stop):
            api.train(None, run, resume=True, sinks=[StopAt((stopped or 0) + 2)])
        assert "note: this run used 2 processes and goes on with 1" in capfd.readouterr().err
        assert progress(run) > (stopped or 0)
    finally:
        torchrun.end()


@pytest.mark.full
def test_machines_may_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elastic: each torchrun stands for a machine. One begins, another joins it, and is gone without a word."""
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")  # else PyTorch 2.13 lets nobody join later
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"localhost:{free.getsockname()[1]}"
    machines = ["--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", address, "--rdzv-id", "job"]
    machines += ["--rdzv-conf", "last_call_timeout=2"]
    run, recipe = RunFolder(tmp_path / "run"), tmp_path / "recipe.yaml"
    keys = [*SMALL, *CASES["attention"], "training.updates=100000", "training.checkpoint_every=5"]
    recipe.write_text(recipes.dump(recipes.read("demo", keys)))

    def machine() -> Torchrun:
        return Torchrun("train", recipe, "--run", run.path, world=1, restarts=9, machines=machines)

    def trained_by(world: int) -> bool:
        found = checkpoint.newest_good(run, lambda message: None) if run.checkpoints.exists() else None
        return found is not None and json.loads((found / "state.json").read_text())["world"] == world

    stays = machine()
    goes = None
    try:
        assert stays.wait_for(lambda: trained_by(1))
        goes = machine()
        assert stays.wait_for(lambda: trained_by(2))
        workers = goes.workers()
        goes.process.kill()
        for worker in workers.values():
            os.kill(worker, 9)
        assert stays.wait_for(lambda: trained_by(1))
        stays.process.terminate()
        stays.finish()
        said = stays.said()
        assert "note: this run used 1 process and goes on with 2" in said
        assert "note: this run used 2 processes and goes on with 1" in said
        steps = [event["step"] for event in run.events() if event["event"] == "train"]
        assert steps == list(range(1, len(steps) + 1)), "no update is missing, none was done twice"
    finally:
        for torchrun in (stays, goes):
            if torchrun is not None:
                torchrun.end()
