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
from forked import Popen, fork_instead
from journey import SMALL, jumok

from jumok import api
from jumok import recipe as recipes
from jumok.text.tokenizer import Tokenizer
from jumok.training import verify as verify_resume
from jumok.training.run import RunFolder
from jumok.training.verify import differences, verify

Corpus = tuple[Path, Path, Path]


EVERYTHING = [
    "tokenizer.kind=bpe", "tokenizer.vocabulary=400", "training.bpe_dropout=0.1", "training.r_drop=2",
    "training.ema=0.9", "training.average=2", "training.schedule=paper", "training.accumulate=2",
]  # fmt: skip


def small_recipe(corpus: Corpus, name: str, *keys: str) -> recipes.Recipe:
    files = [f"data.train.source={corpus[0]}", f"data.train.target={corpus[1]}", "data.valid=null"]
    return recipes.read(name, [*files, *SMALL, *keys])


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        pytest.param("lstm-luong", ["model.dropout=0.3", "training.accumulate=2"], marks=pytest.mark.full),
        pytest.param(
            "gru",
            ["training.schedule=plateau", "training.plateau_patience=0", "training.teacher_forcing=0.7"],
            marks=pytest.mark.full,
        ),
        ("lstm-luong", [*EVERYTHING, "training.batch_tokens=512"]),
    ],
)
def test_random_kills_change_nothing(
    corpus: Corpus, name: str, keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fork_instead(monkeypatch, verify_resume)
    told: list[str] = []
    result = verify(small_recipe(corpus, name, *keys), updates=16, kills=2, say=told.append)
    assert result.kills, "\n".join(told)
    assert result.identical, result.summary()


@pytest.mark.full
def test_many_kills_change_nothing(corpus: Corpus) -> None:
    told: list[str] = []
    result = verify(small_recipe(corpus, "lstm-luong"), updates=400, kills=12, say=told.append)
    assert result.kills >= 6, "\n".join(told)
    assert result.kills_while_writing >= 2, "\n".join(told)
    assert result.identical, result.summary()


@pytest.mark.full
def test_the_command_proves_it_on_a_users_recipe(corpus: Corpus, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(recipes.dump(small_recipe(corpus, "lstm-luong")), encoding="utf-8")
    result = jumok("verify-resume", file, "--updates", 40, "--kills", 1)  # a way long enough to be killed on it
    assert result.returncode == 0, result.stdout + result.stderr
    assert "identical" in result.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for other processes")
def test_control_c_saves_and_says_how_to_go_on(corpus: Corpus, tmp_path: Path) -> None:
    file, plain, stopped = tmp_path / "recipe.yaml", tmp_path / "plain", tmp_path / "stopped"
    keys = [
        "training.updates=80",
        "training.log_every=7",
        "training.checkpoint_every=1000",
        "training.validate_every=40",
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
    assert 0 < step < 80
    # the same command line with --resume, as a user repeats it from the shell's history
    assert jumok("train", file, "--run", stopped, "--resume").returncode == 0
    assert differences(RunFolder(plain), RunFolder(stopped)) == []


def test_minutes_survive_a_kill_before_the_first_checkpoint(corpus: Corpus, tmp_path: Path) -> None:
    file, run = tmp_path / "recipe.yaml", tmp_path / "run"
    file.write_text(recipes.dump(small_recipe(corpus, "lstm-luong", "training.updates=99999")), encoding="utf-8")
    command = [sys.executable, "-m", "jumok", "train", str(file), "--run", str(run), "--minutes", "0.05"]
    process = Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while not (run / "last.json").exists():
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    result = jumok("train", "--resume", "--run", run)
    assert result.returncode == 0, result.stderr
    assert json.loads((run / "last.json").read_text())["step"] < 99999


def test_a_kill_before_the_pointers_is_repaired(corpus: Corpus, tmp_path: Path) -> None:
    """The checkpoint is there, last.json and best.json still name older ones: they are set right."""
    run = tmp_path / "run"
    keys = ["training.updates=20", "training.validate_every=5", "training.keep=9"]
    recipe = small_recipe(corpus, "lstm-luong", *keys)
    api.train(recipe, run, quiet=True)
    folder = RunFolder(run)
    best = folder.pointed("best")
    assert best is not None
    folder.point("best", 5)
    folder.point("last", 15)
    (run / "report.html").unlink()
    api.train(None, run, resume=True, quiet=True)
    assert folder.pointed("best") == best
    assert folder.pointed("last") == 20
    assert (run / "report.html").exists(), "a report that a kill prevented is written on resume"


def test_a_kill_between_the_two_tokenizers_is_no_joint_vocabulary(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = Tokenizer.save
    calls: list[Path] = []

    def save_once(self: Tokenizer, folder: Path) -> None:
        if calls:
            raise KeyboardInterrupt
        calls.append(folder)
        saved(self, folder)

    monkeypatch.setattr(Tokenizer, "save", save_once)
    recipe, run = small_recipe(corpus, "lstm-luong", "training.updates=4"), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        api.train(recipe, run, quiet=True)
    monkeypatch.undo()
    model = api.train(None, run, resume=True, quiet=True)
    assert model.source.fingerprint != model.target.fingerprint
