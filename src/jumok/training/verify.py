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
from jumok.training import checkpoint
from jumok.training.run import RunFolder

CLOCK = {"tokens_per_second", "reason"}  # what may differ: only what the clock says


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
        told = f"{self.kills} kills ({self.kills_while_writing} while a checkpoint was being written)"
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
        last = json.loads((plain / "checkpoints" / f"step-{updates}" / checkpoint.STATE).read_text(encoding="utf-8"))
        seconds = 0.8 * last["seconds"] / kills  # so that all kills fall into the training itself
        done = writing = 0
        process = _start(file, disturbed, False, plugins)
        for number in range(kills):
            was_writing = _wait_for_moment(process, disturbed, moments, seconds, while_writing=number % 2 == 1)
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
    process: subprocess.Popen[bytes], run: Path, moments: random.Random, seconds: float, while_writing: bool
) -> bool:
    """Wait until the run has begun, then for a random while, or for a checkpoint to be under way."""
    metrics = run / "metrics.jsonl"
    before = metrics.stat().st_size if metrics.exists() else 0
    while process.poll() is None and (not metrics.exists() or metrics.stat().st_size <= before):
        time.sleep(0.002)
    until = time.monotonic() + moments.uniform(0.0, seconds)
    while process.poll() is None:
        if while_writing and any((run / "checkpoints").glob(".writing-*")):
            return True
        if not while_writing and time.monotonic() > until:
            return False
        time.sleep(0.0005)
    return False


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
