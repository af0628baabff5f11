"""`jumok verify-resume`: a killed and resumed run against the undisturbed one, bit for bit, with real kills.

Both runs are separate processes. The second is killed without warning: in the middle of an update, and while a
checkpoint is being written.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumok import recipe as recipes
from jumok.errors import Failure
from jumok.recipe import Recipe
from jumok.training import checkpoint, meter
from jumok.training.run import RunFolder

CLOCK = {*meter.CLOCK, "reason"}  # what may differ: only what the clock says, and the machine


@dataclass(frozen=True)
class Comparison:
    updates: int
    kills: int  # that really ended a running process
    kills_while_writing: int
    differences: list[str]

    @property
    def identical(self) -> bool:
        return not self.differences

    def summary(self) -> str:
        kills = f"{self.kills} kill{'s' * (self.kills > 1)}"
        told = f"{kills} ({self.kills_while_writing} while a checkpoint was being written)"
        if not self.kills:
            return f"nothing was proved: all was over before the first kill. Give more --updates than {self.updates}"
        if self.identical:
            return f"identical: weights, optimiser, losses and best checkpoint after {self.updates} updates and {told}"
        return f"DIFFERENT after {told}: " + "; ".join(self.differences)


def verify(
    recipe: Recipe,
    updates: int,
    kills: int,
    say: Callable[[str], None],
    seed: int | None = None,
    plugins: Sequence[Path] = (),
) -> Comparison:
    """Train `updates` updates twice, the second time with `kills` kills, and compare everything."""
    often = max(1, updates // 8)
    short = recipe.training.model_copy(
        update={"updates": updates, "checkpoint_every": often, "validate_every": max(1, updates // 2), "log_every": 1}
    )
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="jumok-verify-") as place:
        file = Path(place) / "recipe.yaml"
        file.write_text(recipes.dump(recipe.model_copy(update={"training": short})), encoding="utf-8")
        plain, disturbed = Path(place) / "undisturbed", Path(place) / "killed"
        say(f"training {updates} updates undisturbed …")
        _finish(_start(file, plain, False, plugins))
        span = max(1, updates // (kills + 1))
        done = writing = 0
        process = _start(file, disturbed, False, plugins)
        for number in range(kills):
            was_writing = _wait_for_moment(process, disturbed, moments, span, updates - 1, number % 2 == 1)
            if process.poll() is not None:
                break
            process.kill()
            process.wait()
            reached = RunFolder(disturbed).pointed("last") or 0
            if reached < updates:  # a kill after the last update proves nothing
                done += 1
                writing += was_writing
            say(f"killed; the last checkpoint is of update {reached}; resuming …")
            process = _start(file, disturbed, (disturbed / "recipe.yaml").exists(), plugins)
        _finish(process)
        return Comparison(updates, done, writing, differences(RunFolder(plain), RunFolder(disturbed)))


def _start(recipe: Path, run: Path, resume: bool, plugins: Sequence[Path]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "jumok", *(word for path in plugins for word in ("--plugin", str(path)))]
    command += ["train", str(recipe), "--run", str(run), *(["--resume"] if resume else [])]
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)


def _finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate()
    if process.returncode:
        raise Failure(
            f"a training run ended with code {process.returncode}:\n{errors.decode(errors='replace')[-2000:]}"
        )


def _wait_for_moment(
    process: subprocess.Popen[bytes], run: Path, moments: random.Random, span: int, last: int, while_writing: bool
) -> bool:
    """Wait until the run has gone a random way beyond its last checkpoint, or until it is writing one.

    Told by its progress, not by the clock: a machine that is busy now and idle in a moment must not spoil the proof.
    """
    metrics = run / "metrics.jsonl"
    before = metrics.stat().st_mtime_ns if metrics.exists() else None
    while process.poll() is None and (not metrics.exists() or metrics.stat().st_mtime_ns == before):
        time.sleep(0.002)  # it is still starting; what the file holds is of the time before
    target = min((RunFolder(run).pointed("last") or 0) + moments.randint(1, span), last)
    while process.poll() is None:
        if while_writing and any((run / "checkpoints").glob(".writing-*")):
            return True
        if not while_writing and _progress(metrics) >= target:
            time.sleep(moments.uniform(0.0, 0.02))  # not always right behind a line of progress
            return False
        time.sleep(0.0005)
    return False


def _progress(metrics: Path) -> int:
    """The last update that metrics.jsonl tells of; a line that is just being written does not count."""
    for line in reversed(metrics.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]):
        if line.startswith('{"event": "train", "step": '):
            return int(json.loads(line)["step"])
    return 0


def differences(one: RunFolder, other: RunFolder) -> list[str]:
    """Everything in which two finished runs differ, apart from the clock."""
    found = []
    steps = [folder.pointed("last") for folder in (one, other)]
    if steps[0] != steps[1]:
        return [f"last checkpoints are of updates {steps[0]} and {steps[1]}"]
    for name in (checkpoint.MODEL, checkpoint.OPTIMIZER):
        contents = [(folder.checkpoints / f"step-{steps[0]}" / name).read_bytes() for folder in (one, other)]
        if contents[0] != contents[1]:
            found.append(f"{name} of update {steps[0]} differs")
    if one.pointed("best") != other.pointed("best"):
        found.append(f"the best checkpoints are of updates {one.pointed('best')} and {other.pointed('best')}")
    for number, pair in enumerate(itertools.zip_longest(_told(one), _told(other)), 1):
        if pair[0] != pair[1]:
            found.append(f"event {number} of metrics.jsonl differs: {pair[0]} and {pair[1]}")
            break
    return found


def _told(run: RunFolder) -> list[dict[str, Any]]:
    lines = run.metrics.read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key not in CLOCK} for line in lines]
