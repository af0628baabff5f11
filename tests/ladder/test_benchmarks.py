"""The benchmarks of the ladder and of alignments: what they call an answer."""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jumok.errors import Failure
from jumok.recipe import read
from jumok.training.events import MetricsFile
from jumok.training.resuming import recipe_to_train
from jumok.training.run import RunFolder

Load = Callable[[str], ModuleType]
KEYS = [
    "data.train.pairs=60", "data.valid.pairs=10", "model.width=16", "model.heads=2", "model.feed_forward=16",
    "model.encoder_layers=1", "model.decoder_layers=1", "training.updates=4", "training.validate_every=2",
    "training.checkpoint_every=2", "training.validate_sentences=2", "training.batch_tokens=256", "threads=1",
]  # fmt: skip


@pytest.fixture
def benchmark_file(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    folder = Path(__file__).parents[2] / "benchmarks"
    if not folder.exists():
        pytest.skip("the benchmarks are not part of this package")
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in {"multi30k", "quality"} - before:
        sys.modules.pop(name, None)


# ---------------------------------------------------------------- the ladder


def written(file: Path, scores: dict[str, float], seeds: int = 1) -> None:
    rows = [
        {"rung": rung, "bleu": {"score": score}, "tutorial": score, "each": dict.fromkeys(range(1, seeds + 1), score)}
        for rung, score in scores.items()
    ]
    file.write_text(json.dumps({"rungs": rows}), encoding="utf-8")


def test_only_a_whole_ladder_of_now_is_an_answer(benchmark_file: Load, tmp_path: Path) -> None:
    ladder, file = benchmark_file("ladder"), tmp_path / "results.json"
    with pytest.raises(SystemExit, match="not written by this ladder"):
        ladder.read_results(file, ["gru"], 1, None)
    written(file, {"gru": 30.0})
    assert ladder.read_results(file, ["gru"], 1, None)["rungs"][0]["rung"] == "gru"
    with pytest.raises(SystemExit, match="not written by this ladder"):
        ladder.read_results(file, ["gru"], 1, ladder.changed(file))
    with pytest.raises(SystemExit, match="not all seeds of luong"):
        ladder.read_results(file, ["gru", "luong"], 1, None)
    with pytest.raises(SystemExit, match="not all seeds of gru"):
        ladder.read_results(file, ["gru"], 2, None)


@pytest.mark.parametrize(
    ("ladder_code", "gru", "code"), [(0, 30.0, 0), (0, 42.0, 1), (0, 10.0, 1), (1, 30.0, 1), (130, 30.0, 130)]
)
def test_the_exit_code_says_whether_all_that_must_show_does(
    benchmark_file: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ladder_code: int, gru: float, code: int
) -> None:
    """GRU below Luong and ahead of the tutorial's 20.6 is as it must be."""
    ladder = benchmark_file("ladder")

    def climb(command: list[str], check: bool) -> argparse.Namespace:
        written(tmp_path / "results.json", {"gru": gru, "luong": 40.0})
        return argparse.Namespace(returncode=ladder_code)

    monkeypatch.setattr(ladder.subprocess, "run", climb)
    monkeypatch.setattr(sys, "argv", ["ladder.py", "gru", "luong", "--runs", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        ladder.main()
    assert ended.value.code == code


def test_batches_of_its_own_only_where_time_pays_for_them(benchmark_file: Load) -> None:
    ladder = benchmark_file("ladder")
    chosen = {"data": Path("data"), "seeds": 1, "minutes": 1.0, "jobs": 1, "device": "cpu", "runs": Path("x")}
    for updates, own in ((None, True), (100, False)):
        asked = ladder.command(argparse.Namespace(**chosen, set=[], updates=updates), ["lstm", "transformer"])
        assert ("transformer:training.batch_tokens=8192" in asked) == own


# ---------------------------------------------------------------- alignments


def never(*anything: object, **more: object) -> None:
    raise AssertionError("there is nothing to train")


def test_a_run_that_is_done_is_not_trained_again_and_another_is_refused(
    benchmark_file: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alignment = benchmark_file("alignment")
    first = alignment.trained("demo-transformer", KEYS, tmp_path / "run", None)[1]
    assert (first["updates"], first["keys"]["training.updates"], first["keys"]["model.width"]) == (4, 4, 16)
    assert first["cpu_seconds"] is not None
    monkeypatch.setattr(alignment.api, "train", never)
    again = alignment.trained("demo-transformer", KEYS, tmp_path / "run", None)[1]
    assert again == {**first, "cpu_seconds": None}
    for keys, minutes, words in (([*KEYS, "training.updates=5"], None, "training.updates"), (KEYS, 1.0, "--minutes")):
        with pytest.raises(SystemExit, match=words):
            alignment.trained("demo-transformer", keys, tmp_path / "run", minutes)


def test_a_run_that_was_stopped_goes_on(benchmark_file: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its first validation, when it has a best checkpoint; and before anything was saved."""
    alignment, tell = benchmark_file("alignment"), MetricsFile.event

    def interrupt(self: MetricsFile, event: str, update: int, values: dict[str, Any]) -> None:
        tell(self, event, update, values)
        if event == "valid" and update == 2:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(MetricsFile, "event", interrupt)
        with pytest.raises(Failure):
            alignment.trained("demo-transformer", KEYS, tmp_path / "stopped", None)
    assert (tmp_path / "stopped" / "best.json").is_file()
    bare = RunFolder(tmp_path / "bare")
    RunFolder.create(bare.path, recipe_to_train(read("demo-transformer", KEYS), bare, False))
    for name in ("stopped", "bare"):
        assert alignment.trained("demo-transformer", KEYS, tmp_path / name, None)[1]["updates"] == 4
        assert RunFolder(tmp_path / name).pointed("last") == 4
