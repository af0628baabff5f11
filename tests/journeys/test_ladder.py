"""A user's ladder with runs side by side, killed in the middle: the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from journey import jumok, write_corpus

from jumok.training.run import RunFolder

TINY = [
    "tokenizer.vocabulary=300", "model.width=16", "model.embedding=8", "model.layers=1", "training.batch_tokens=256",
    "training.validate_every=20", "training.validate_sentences=3", "search.max_ratio=1", "threads=1",
]  # fmt: skip
NAMES = ("gru-1", "luong-1")


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    source, target, _ = write_corpus(tmp_path, 300, "train")
    test_source, test_target, _ = write_corpus(tmp_path, 20, "test")
    files = ["--source", source, "--target", target, "--test-source", test_source, "--test-target", test_target]
    how = ["--rungs", "gru,luong", "--updates", "60", "--jobs", "2", "--out", str(tmp_path / "out")]
    return [*map(str, files), *TINY, *how]


@pytest.mark.full
@pytest.mark.parametrize("how", [signal.SIGTERM, "kill"], ids=["SIGTERM", "kill"])
def test_killed_side_by_side_and_gone_on_with(asked: list[str], tmp_path: Path, how: signal.Signals | str) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "jumok", "ladder", *asked]
    environment = {**os.environ, "NO_COLOR": "1"}
    ladder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    while ladder.poll() is None and not any(RunFolder(out / name).events() for name in NAMES):
        time.sleep(0.02)
    if isinstance(how, signal.Signals):
        ladder.send_signal(how)
    else:
        ladder.kill()  # what it started goes on by itself, and is waited for
    said = ladder.communicate()[1].decode()
    if isinstance(how, signal.Signals):
        assert ladder.returncode == 130, said
        assert "The same command goes on" in said
    assert not (out / "results.json").exists()
    begun = {name: [event["step"] for event in RunFolder(out / name).events()] for name in NAMES}
    assert any(begun.values())

    told = jumok("ladder", *asked)
    assert told.returncode == 0, told.stderr
    assert "GRU" in told.stdout
    assert "up to 2 runs side by side" in told.stdout
    rows = json.loads((out / "results.json").read_text(encoding="utf-8"))["rungs"]
    assert [(row["rung"], row["updates"]) for row in rows] == [("gru", 60), ("luong", 60)]
    for name in NAMES:
        steps = [event["step"] for event in RunFolder(out / name).events() if event["event"] == "train"]
        assert steps == sorted(set(steps))  # nothing was done twice
        assert steps[-1] == 60
