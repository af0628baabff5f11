"""Runs side by side, stopped, and gone on with one after the other."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumok.ladder.progress import Progress
from jumok.training.comparison import is_running, summarise
from jumok.training.run import RunFolder
from jumok.training.verify import differences

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.full
def test_what_trains_side_by_side_is_stopped_with_the_ladder_and_goes_on_alone(
    climbed: Path, asked: list[str], tmp_path: Path, jumok: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while two train: both save what they have. In the end they are what two undisturbed runs are."""
    out = tmp_path / "ladder"
    runs = [RunFolder(out / name) for name in ("gru-1", "luong-1")]
    command = [*asked, "--rungs", "gru,luong", "--out", str(out)]

    def interrupt(self: Progress, *anything: Any) -> None:
        if all(run.events() for run in runs):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Progress, "tell", interrupt)
        patched.setattr(Progress, "end", lambda *anything: None)
        stopped = jumok(*command, "--jobs", 2)
    assert stopped.returncode == 130, stopped.stderr
    assert "The same command goes on" in stopped.stderr
    assert not any(is_running(run) for run in runs)
    assert all((run.pointed("last") or 0) > 0 for run in runs)

    told = jumok(*command)
    assert told.returncode == 0, told.stderr
    assert "up to 2 runs side by side" in told.stdout  # part of them, and a minute was worth less then
    for run in runs:
        assert summarise(run.path).state == "done"
        assert differences(run, RunFolder(climbed / run.path.name)) == []


@pytest.mark.full
def test_a_process_that_fails_is_told_in_its_own_words(
    climbed: Path, asked: list[str], tmp_path: Path, jumok: Command
) -> None:
    out = tmp_path / "ladder"
    options = ["--rungs", "gru", "--seeds", "2", "--out", str(out), "--jobs", "2"]
    out.mkdir()
    for name in ("gru-1", "gru-2"):
        (out / name).mkdir()
        (out / name / "recipe.yaml").write_text("format: 1\nnonsense: true\n")
    shutil.copytree(climbed / "tokenizer", out / "tokenizer")
    shutil.copy(climbed / "ladder.json", out)
    told = jumok(*asked, *options)
    assert told.returncode == 1
    assert "2 runs failed" in told.stderr
    assert 'unknown key "nonsense"' in told.stderr
    assert "Traceback" not in told.stderr
