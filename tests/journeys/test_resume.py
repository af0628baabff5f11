"""Killed and resumed equals never killed, to the bit: real processes, real kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from journey import SMALL, jumok

from jumok import recipe as recipes
from jumok.training.run import RunFolder
from jumok.training.verify import differences, verify

Corpus = tuple[Path, Path, Path]


def small_recipe(corpus: Corpus, name: str, *keys: str) -> recipes.Recipe:
    files = [f"data.train.source={corpus[0]}", f"data.train.target={corpus[1]}", "data.valid=null"]
    return recipes.read(name, [*files, *SMALL, *keys])


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("lstm-luong", ["model.dropout=0.3", "training.accumulate=2"]),
        ("gru", ["training.schedule=plateau", "training.plateau_patience=0", "training.teacher_forcing=0.7"]),
    ],
)
def test_random_kills_change_nothing(corpus: Corpus, name: str, keys: list[str]) -> None:
    told: list[str] = []
    result = verify(small_recipe(corpus, name, *keys), updates=24, kills=2, say=told.append)
    assert result.kills, "\n".join(told)
    assert result.identical, result.summary()


@pytest.mark.full
def test_many_kills_change_nothing(corpus: Corpus) -> None:
    told: list[str] = []
    result = verify(small_recipe(corpus, "lstm-luong"), updates=400, kills=12, say=told.append)
    assert result.kills >= 6, "\n".join(told)
    assert result.kills_while_writing >= 2, "\n".join(told)
    assert result.identical, result.summary()


def test_the_command_proves_it_on_a_users_recipe(corpus: Corpus, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(recipes.dump(small_recipe(corpus, "lstm-luong")), encoding="utf-8")
    result = jumok("verify-resume", file, "--updates", 10, "--kills", 1)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "identical" in result.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for other processes")
def test_control_c_saves_and_says_how_to_go_on(corpus: Corpus, tmp_path: Path) -> None:
    file, plain, stopped = tmp_path / "recipe.yaml", tmp_path / "plain", tmp_path / "stopped"
    keys = [
        "training.updates=60",
        "training.log_every=7",
        "training.checkpoint_every=1000",
        "training.validate_every=30",
    ]
    file.write_text(recipes.dump(small_recipe(corpus, "lstm-luong", *keys)), encoding="utf-8")
    assert jumok("train", file, "--run", plain).returncode == 0
    command = [sys.executable, "-m", "jumok", "train", str(file), "--run", str(stopped)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while not (stopped / "metrics.jsonl").exists() or not (stopped / "metrics.jsonl").stat().st_size:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert f"jumok train --resume --run {stopped}" in errors
    assert "Traceback" not in errors
    step = json.loads((stopped / "last.json").read_text())["step"]
    assert 0 < step < 60
    # the same command line with --resume, as a user repeats it from the shell's history
    assert jumok("train", file, "--run", stopped, "--resume").returncode == 0
    assert differences(RunFolder(plain), RunFolder(stopped)) == []
