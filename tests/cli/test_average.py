"""`jumok average` wherever the user stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from line import LineTask, make

from jumok.cli.main import run
from jumok.training.run import RunFolder


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    keys = ("training.updates=6", "training.checkpoint_every=1", "training.validate_every=3", "training.keep=4")
    make(tmp_path / "run", LineTask(), *keys).go()
    return tmp_path / "run"


def test_a_run_may_be_the_folder_one_stands_in(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    assert run(["average", "--run", ".", "--last", "2"]) == 0
    assert RunFolder(trained.parent / "run-average-2").pointed("best") == 6
    monkeypatch.chdir(trained / "checkpoints")
    assert run(["average", "--run", "..", "--last", "3"]) == 0
    assert RunFolder(trained.parent / "run-average-3").pointed("best") == 6


def test_so_may_the_folder_that_is_made(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained.parent)
    assert run(["average", "--run", "run", "--last", "2", "--out", "."]) == 2
    assert "is not empty" in capfd.readouterr().err
    empty = trained.parent / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert run(["average", "--run", str(trained), "--last", "2", "--out", "."]) == 0
    assert RunFolder(empty).pointed("best") == 6
