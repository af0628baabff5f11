"""Events reach the console, metrics.jsonl and TensorBoard."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from jumok.training.events import ConsoleProgress, Events, MetricsFile, TensorBoard

TRAIN = {"loss": 2.5, "tokens_per_second": 1234.0, "learning_rate": 0.1}


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


def lines(terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100)
    progress = ConsoleProgress(100, console=console, seconds=0.0)
    progress.event("message", 0, {"text": "data: [red]not markup[/red]"})
    progress.event("train", 50, TRAIN)
    progress.event("valid", 50, {"loss": 1.5, "bleu": 20.0, "best": True})
    progress.event("train", 100, TRAIN)
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
    ):
        assert word in text


def test_a_live_bar_where_there_is_one() -> None:
    text = lines(terminal=True)
    assert "\x1b[" in text
    assert "1,234 tokens/s" in text
    assert "bleu 20.00" in text


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
