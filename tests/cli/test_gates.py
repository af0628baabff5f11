"""`jumok gates` with the run that the package carries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from commands import invoke

from jumok.cli.gates import gates
from jumok.errors import BadInput


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(gates)
    return app


def test_in_the_terminal_and_into_a_file(app: typer.Typer, tmp_path: Path) -> None:
    shown = invoke(app, "I am a student .", "--device", "cpu").output
    for word in ("forget", "student", "layer 0, forward", "layer 0, backward", "differ by"):
        assert word in shown
    out = tmp_path / "gates.json"
    said = invoke(app, "I am a student .", "--layer", "0", "--out", str(out)).output
    assert f"written: {out}" in said
    assert json.loads(out.read_text(encoding="utf-8"))["tokens"][-1] == "<eos>"


def test_what_cannot_be_is_refused(app: typer.Typer) -> None:
    with pytest.raises(BadInput, match="layer 4"):
        invoke(app, "I am here.", "--layer", "4")
    with pytest.raises(BadInput, match=r"none of \.png"):
        invoke(app, "I am here.", "--out", "gates.gif")
