"""Runs in one picture: every run has its curve and its name, on any paper, with any name."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from runs import make_run

from jumok.errors import BadInput
from jumok.inspect.run_curves import COLOURS, curves_of, draw_runs, page, write_comparison
from jumok.training.comparison import Summary, summarise


@pytest.fixture
def summaries(tmp_path: Path) -> list[Summary]:
    return [
        summarise(make_run(tmp_path / "plain", "model.width=32")),
        summarise(make_run(tmp_path / "$x^2$ <b>", "model.width=64", losses=(9.0, 1.0, 0.5))),
        summarise(tmp_path / "nothing"),
    ]


def test_each_run_has_a_curve_of_its_own_colour(summaries: list[Summary]) -> None:
    curves = curves_of(summaries, "loss")
    assert [curve.name for curve in curves] == ["plain", "$x^2$ <b>"]
    assert curves[1].validation.finite == [(13.0, 9.0), (26.0, 1.0), (40.0, 0.5)]
    assert [curve.best for curve in curves] == [2.0, 0.5]
    svg = draw_runs(curves, "loss", "svg").decode()
    assert all(colour in svg for colour in COLOURS[:2])
    assert COLOURS[2] not in svg
    assert draw_runs(curves, "loss", "png").startswith(b"\x89PNG")
    assert draw_runs(curves, "loss", "svg") == svg.encode()  # the same bytes again
    assert draw_runs(curves, "loss", "svg", dark=True) != svg.encode()


def test_training_is_drawn_without_smoothing_where_that_is_known(tmp_path: Path) -> None:
    path = make_run(tmp_path / "one", losses=(2.0,))
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"event": "train", "step": 41, "loss": 5.0, "nll": 1.5}\n')
    (curve,) = curves_of([summarise(path)], "loss")
    assert curve.training.finite == [(41.0, 1.5)]


def test_a_score_has_no_training_curve(summaries: list[Summary]) -> None:
    curves = curves_of(summaries, "bleu")
    assert [curve.best for curve in curves] == [40.0, 30.0]
    assert not any(curve.training.finite for curve in curves)
    assert draw_runs(curves, "bleu", "svg")


def test_the_page_holds_tables_and_picture_and_no_foreign_markup(summaries: list[Summary]) -> None:
    text = page(summaries, curves_of(summaries, "loss"), "loss")
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert "model.width" in text
    pictures = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", text)
    assert len(pictures) == 2
    assert all(base64.b64decode(picture).startswith(b"<?xml") for picture in pictures)


def test_more_runs_than_colours(tmp_path: Path) -> None:
    runs = [summarise(make_run(tmp_path / f"run-{number}")) for number in range(len(COLOURS) + 2)]
    svg = draw_runs(curves_of(runs, "loss"), "loss", "svg").decode()
    assert "stroke-dasharray" in svg


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_the_ending_decides(summaries: list[Summary], tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"out.{ending}"
    write_comparison(summaries, out)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!DOCTYPE"}[ending]
    assert out.read_bytes().startswith(start)


def test_what_cannot_be_drawn_is_refused(summaries: list[Summary], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none of .png"):
        write_comparison(summaries, tmp_path / "out.jpg")
    with pytest.raises(BadInput, match="a folder that exists"):
        write_comparison(summaries, tmp_path / "no" / "out.png")
    with pytest.raises(BadInput, match="has a chrf to draw"):
        write_comparison(summaries, tmp_path / "out.png", "chrf")
    with pytest.raises(BadInput, match="too many"):
        write_comparison(summaries[:1] * 25, tmp_path / "out.png")
