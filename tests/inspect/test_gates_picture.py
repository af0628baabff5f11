"""Gates to look at: the same numbers in every form, nothing from outside, nothing that text could break."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from seeded import seed as seed

from jumok.errors import BadInput
from jumok.inspect.gates import Gates, read
from jumok.inspect.gates_picture import page, show, table, write_gates
from jumok.layers.recurrent import Recurrent

Make = Callable[..., Gates]


@pytest.fixture
def make() -> Make:
    def make(cell: str = "lstm", tokens: tuple[str, ...] = ("나는", "a[b]c", "$x$", "<eos>"), **options: Any) -> Gates:
        recurrent = Recurrent(cell, 4, 6, **options).eval()
        return Gates(tokens, cell, tuple(read([recurrent], torch.randn(1, len(tokens), 4))))

    return make


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_the_table_has_every_token_and_number(make: Make, cell: str) -> None:
    gates = make(cell, bidirectional=True)
    shown = table(gates)
    rows = [line for line in shown.splitlines() if line.startswith("a[b]c")]  # markup of the terminal's is text here
    assert len(rows) == 2
    for row, reading in zip(rows, gates.readings, strict=True):
        assert [float(number) for number in row.split()[1 : 1 + len(reading.gates)]] == [
            pytest.approx(gate[1].mean(), abs=0.0051) for gate in reading.gates.values()
        ]
        assert f"{reading.gradient[1]:#.2g}" in row
    assert f"{gates.difference:.1e}" in shown


def test_a_terminal_without_unicode(make: Make) -> None:
    raw = io.BytesIO()
    plain = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    show(make(), Console(file=plain, width=80))
    assert "|dh/dx|" in raw.getvalue().decode("ascii")


def test_json_brings_every_number_back(make: Make, tmp_path: Path) -> None:
    gates = make("gru", layers=2)
    write_gates(gates, tmp_path / "gates.json")
    told = json.loads((tmp_path / "gates.json").read_text(encoding="utf-8"))
    assert (told["kind"], told["tokens"]) == ("gru", list(gates.tokens))
    for one, reading in zip(told["readings"], gates.readings, strict=True):
        assert (one["layer"], one["direction"], one["cell"]) == (reading.layer, "forward", None)
        for name in ("reset", "update"):
            assert (np.array(one["gates"][name], np.float32) == reading.gates[name]).all()
        assert (np.array(one["gradient"], np.float32) == reading.gradient).all()
        assert one["distance"] == [3, 2, 1, 0]


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_pictures_are_the_same_each_time(make: Make, tmp_path: Path, cell: str) -> None:
    gates = make(cell, ("I", "am", "$x$", "<eos>"))
    for name, start in (("one.png", b"\x89PNG"), ("one.svg", b"<?xml")):
        write_gates(gates, tmp_path / name)
        first = (tmp_path / name).read_bytes()
        assert first.startswith(start)
        write_gates(gates, tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
        write_gates(gates, tmp_path / name, dark=True)
        assert (tmp_path / name).read_bytes() != first


def test_other_endings_are_refused(make: Make, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="none of"):
        write_gates(make(), tmp_path / "gates.gif")


def test_the_page_tells_numbers_offline(make: Make, tmp_path: Path, visit: Any, evil: tuple[str, ...]) -> None:
    gates = make("lstm", evil, bidirectional=True)
    write_gates(gates, tmp_path / "gates.html")
    opened = visit(tmp_path / "gates.html")
    assert opened.evaluate("window.hacked") is None
    assert [column.inner_text() for column in opened.query_selector_all(".tokens .word")] == list(evil)
    opened.focus("canvas.map")
    opened.keyboard.press("ArrowRight")  # the first cell
    opened.keyboard.press("ArrowRight")  # the second token of the unit on top
    forward = gates.readings[0]
    told = opened.inner_text(".readout")
    unit = int(told.partition("of unit ")[2].split()[0])
    held = forward.gates["forget"].mean(axis=0)
    assert held[unit] > held.max() - 1 / 255  # the page sorts by its bytes: to it, units nearer than that are alike
    assert float(told.split()[2]) == pytest.approx(forward.gates["forget"][1, unit], abs=0.003)
    assert "at distance 2" in told
    opened.select_option("select >> nth=0", "1")
    opened.select_option("select >> nth=1", label="cell state")
    told = opened.inner_text(".readout")
    assert told.startswith("cell state")
    assert "at distance 1" in told


def test_a_notebook_gets_the_page(make: Make) -> None:
    gates = make()
    assert "srcdoc=" in gates._repr_html_()
    assert "나는" in page(gates) or "\\ub098\\ub294" in page(gates)
