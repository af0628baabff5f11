"""Progress in words: how many, how fast, how long still."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from jumok.streaming.progress import Pace


def test_lines_tell_speed_and_time_left_without_what_was_done_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    said = io.StringIO()
    with Pace(10_000, console=Console(file=said, width=100)) as pace:
        pace.skipped(500, 5_000)
        now[0] += 2
        pace.advance(520, 5_200)
        assert said.getvalue() == "", "nothing is said of what takes a moment"
        now[0] += 8
        pace.advance(600, 6_000)
        now[0] += 1
        pace.advance(610, 6_100)
    assert said.getvalue() == "600 sentences  10.0/s  60 %  eta 0:40\n"


def test_without_a_known_size_there_is_no_eta_and_silence_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    said = io.StringIO()
    for shown in (True, False):
        with Pace(None, shown, Console(file=said, width=100)) as pace:
            now[0] += 10
            pace.advance(1000, 70)
    assert said.getvalue() == "1,000 sentences  100.0/s\n"


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    said = io.StringIO()
    with Pace(100, console=Console(file=said, width=100, force_terminal=True)) as pace:
        pace.advance(7, 50)
        assert pace.bar is not None
        pace.bar.refresh()
    assert "7 sentences" in said.getvalue()
