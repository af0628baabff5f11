"""Events reach the console, metrics.jsonl and TensorBoard."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from jumok.errors import BadInput
from jumok.training.events import ConsoleProgress, Events, MetricsFile, TensorBoard, WeightsAndBiases

TRAIN = {"loss": 2.5, "tokens_per_second": 1234.0, "learning_rate": 0.1}
MACHINE = {"mfu": 0.3456, "memory": 1.5e9, "gradient_norm": 0.77}


def test_metrics_are_lines_of_json_and_are_cut_on_resume(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    with Events([sink := MetricsFile(file, 0)]) as events:
        events("train", 10, **TRAIN)
        kept = sink.bytes
        events("train", 20, loss=float("nan"))
        events.say("hello")
    assert [json.loads(line)["step"] for line in file.read_text().splitlines()] == [10, 20]
    assert json.loads(file.read_text().splitlines()[1])["loss"] is None
    with Events([MetricsFile(file, kept)]) as events:
        events("valid", 15, loss=1.0)
    assert [json.loads(line)["step"] for line in file.read_text().splitlines()] == [10, 15]


def lines(terminal: bool, width: int = 100) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width)
    progress = ConsoleProgress(100, console=console, seconds=0.0)
    progress.event("message", 0, {"text": "data: [red]not markup[/red]"})
    progress.event("train", 50, TRAIN)
    progress.event("valid", 50, {"loss": 1.5, "bleu": 20.0, "best": True})
    progress.event("train", 100, TRAIN | MACHINE)
    progress.close()
    return out.getvalue()


def test_plain_lines_where_there_is_no_terminal() -> None:
    text = lines(terminal=False)
    assert "\x1b" not in text
    for word in (
        "[red]not markup[/red]",
        "update 50/100",
        "loss 2.500",
        "1,234 tokens/s",
        "eta",
        "bleu 20.00",
        "best so far",
        "MFU 34.6%",
        "1.5 GB",
        "norm 0.77",
    ):
        assert word in text


def test_speed_is_told_in_what_is_counted() -> None:
    out = io.StringIO()
    progress = ConsoleProgress(100, counted="values", console=Console(file=out, width=100), seconds=0.0)
    progress.event("train", 50, TRAIN)
    assert "1,234 values/s" in out.getvalue()
    assert "tokens" not in out.getvalue()


def test_a_long_way_to_go_is_told_in_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    now = iter([100.0, 110.0])
    monkeypatch.setattr("jumok.training.events.time.monotonic", lambda: next(now))
    progress = ConsoleProgress(1001, console=Console(file=out, width=100), seconds=0.0)
    progress.event("train", 1, TRAIN)
    progress.event("train", 2, TRAIN)
    assert "eta 2:46:30" in out.getvalue()  # 999 updates of ten seconds


def test_a_live_bar_where_there_is_one() -> None:
    text = lines(terminal=True)
    assert "\x1b[" in text
    assert "1,234 tokens/s" in text
    assert "bleu 20.00" in text
    assert "MFU 34.6%" in text


def test_a_narrow_terminal_loses_the_last_numbers_and_not_the_time_left() -> None:
    text = re.sub(r"\x1b\[[\d;?]*\w", "", lines(terminal=True, width=80))
    assert "1,234 tokens/s" in text
    assert "eta 0:00:00" in text
    assert "norm" not in text


def test_tensorboard_can_read_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Events([TensorBoard(tmp_path)]) as events:
        events("train", 10, **TRAIN)
        events("valid", 10, loss=1.5, bleu=20.0)
    reader = EventAccumulator(str(tmp_path))
    reader.Reload()
    assert {"train/loss", "valid/bleu"} <= set(reader.Tags()["scalars"])
    assert reader.Scalars("valid/bleu")[0].value == 20.0


class FakeRun:
    """What `wandb.init` gives, as far as it is used."""

    def __init__(self) -> None:
        self.logged: list[dict[str, Any]] = []
        self.axes: dict[str, str | None] = {}
        self.finished = False

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.axes[name] = step_metric

    def log(self, values: dict[str, Any]) -> None:
        self.logged.append(values)

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A `wandb` without a network: it remembers how it was started."""
    module: Any = ModuleType("wandb")
    module.started = []

    def init(**options: Any) -> FakeRun:
        module.started.append(options)
        return FakeRun()

    module.init = init
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return module


def test_weights_and_biases_gets_the_numbers_by_update(wandb: Any, tmp_path: Path) -> None:
    with Events([sink := WeightsAndBiases(tmp_path / "first", {"seed": 3})]) as events:
        events("train", 10, **TRAIN)
        events("valid", 10, loss=1.5, bleu=20.0)
        events("plan", 10, updates=100, reason="time")
        events.say("hello")
    (started,) = wandb.started
    assert (started["project"], started["name"], started["config"]) == ("jumok", "first", {"seed": 3})
    assert sink.run.axes == {"update": None, "*": "update"}
    assert sink.run.logged[0] == {"update": 10, **{f"train/{name}": value for name, value in TRAIN.items()}}
    assert sink.run.logged[1:] == [{"update": 10, "valid/loss": 1.5, "valid/bleu": 20.0}]
    assert sink.run.finished


def test_a_resumed_run_goes_on_in_its_own_chart(wandb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    for name in ("one", "one", "two"):
        WeightsAndBiases(tmp_path / name, {}).close()
    first, again, other = (started["id"] for started in wandb.started)
    assert first == again != other
    assert all(started["resume"] == "allow" and started["project"] == "mine" for started in wandb.started)


def test_weights_and_biases_that_is_missing_or_does_not_start_is_told(
    wandb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**options: Any) -> None:
        raise RuntimeError("api_key not configured\nmore")

    wandb.init = refuse
    with pytest.raises(BadInput, match=r"api_key not configured\).*wandb login.*WANDB_MODE=offline"):
        WeightsAndBiases(tmp_path, {})
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(BadInput, match=r"jumok\[wandb\]"):
        WeightsAndBiases(tmp_path, {})
