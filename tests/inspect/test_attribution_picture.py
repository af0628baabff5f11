"""Attributions side by side, in pictures and in a browser; text from data stays text."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jumok.errors import BadInput
from jumok.inspect.attribution import Attribution
from jumok.inspect.attribution_picture import agreement_lines, draw, write_attribution


def an_attribution(source: tuple[str, ...], target: tuple[str, ...]) -> Attribution:
    random = np.random.default_rng(3)
    shape = len(target), len(source)
    values = {
        "attention": random.dirichlet(np.ones(shape[1]), shape[0]),
        "integrated gradients": random.normal(size=shape),
        "occlusion": np.zeros(shape),
    }
    return Attribution(source, target, (-0.5,) * len(target), values, "unknown", 0.01)


def test_it_is_drawn(tmp_path: Path) -> None:
    found = an_attribution(("The", "$x^2$", "한국어", "<eos>"), ("Le", "chat", "<eos>"))
    light = draw(found)
    with Image.open(io.BytesIO(light)) as image:
        assert image.width > 2 * image.height > 200
    assert draw(found) == light
    assert draw(found, dark=True) != light
    write_attribution(found, tmp_path / "x.svg")
    assert "</svg>" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    with pytest.raises(BadInput, match="too many"):
        draw(an_attribution(("a",) * 70, ("b",)))


def test_the_page_in_a_browser(tmp_path: Path, visit: Callable[..., Any], evil: tuple[str, ...]) -> None:
    write_attribution(an_attribution(evil, evil), tmp_path / "x.html")
    page = visit(tmp_path / "x.html")
    assert page.locator("section.attention").count() == 3
    assert page.locator("table.list tbody tr").count() == 3
    assert page.evaluate("window.hacked") is None


def test_in_a_notebook_it_is_the_page_in_a_frame() -> None:
    shown = an_attribution(("The", "</iframe>"), ("Le", "chat"))._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert shown.count("</iframe>") == 1


def test_agreement_that_cannot_be_told_is_a_dash() -> None:
    lines = {pair: tau for pair, tau, _ in agreement_lines(an_attribution(("a", "b", "c"), ("x", "y")))}
    assert lines["attention – occlusion"] == "–"
    assert lines["attention – integrated gradients"][0] in "+−"
