"""`jumok studio`: what is wrong is told before anything is loaded; started, it prints its address and ends quietly."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from asked import Ask, refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--run", "nowhere"], "nowhere"), (["--host", "nowhere.invalid"], "--host"), (["--port", "70000"], "65535")],
)
def test_what_is_wrong_is_told(ask: Ask, arguments: list[str], words: str) -> None:
    refused(ask("studio", *arguments), words)


def test_what_it_needs_is_named(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(ask("studio"), "jumok[studio]")


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_answers_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "jumok", "studio", "--port", "0", "--no-open", "--no-first"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        found = re.fullmatch(r"jumok studio: (http://127\.0\.0\.1:\d+)/#token=([\w-]{32,})\n", line)
        assert found is not None, line
        with urllib.request.urlopen(f"{found[1]}/api/runs", timeout=20) as answer:
            assert b'"en-fr"' in answer.read()
        running.send_signal(number)
        _, said = running.communicate(timeout=20)
    assert (running.returncode, said) == (0, "")


def test_the_browser_is_opened_without_the_token_on_a_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from jumok.studio.server import opened

    asked: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: asked.append(address))
    with opened("http://127.0.0.1:1/#token=secret"):
        (address,) = asked
        assert "secret" not in address
        path = Path(address.removeprefix("file://"))
        assert "url=http://127.0.0.1:1/#token=secret" in path.read_text(encoding="utf-8")
        if os.name == "posix":
            assert path.stat().st_mode & 0o077 == 0
    assert not path.exists()
