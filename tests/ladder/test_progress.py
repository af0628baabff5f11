"""What is told of several runs at once."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from jumok.ladder.progress import Progress


@pytest.mark.parametrize("terminal", [False, True])
def test_runs_that_begin_go_on_and_end(terminal: bool) -> None:
    screen = io.StringIO()
    with Progress(
        2, Console(file=screen, force_terminal=terminal, width=120, highlight=False), seconds=0.0
    ) as progress:
        progress.begin("rnn-1", "RNN, seed 1")
        progress.begin("gru-1", "GRU, seed 1")
        progress.tell("rnn-1", 0, None, "")
        progress.tell("gru-1", 20, 100, "loss 3.210  [red]1,000[/red] tokens/s")
        progress.end("gru-1", "trained")
        progress.tell("rnn-1", 30, 60, "valid BLEU 1.00")
        progress.end("rnn-1", "failed")
    said = screen.getvalue()
    assert "[1/2] GRU, seed 1: trained, update 20/100  loss 3.210  [red]1,000[/red] tokens/s" in said
    assert "[2/2] RNN, seed 1: failed, update 30/60  valid BLEU 1.00" in said
    if not terminal:
        assert "RNN, seed 1: training" in said
        assert "RNN, seed 1: update 0\n" in said
