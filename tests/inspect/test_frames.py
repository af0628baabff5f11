"""Pages inside a notebook: the frame that `_repr_html_` gives shows in a real browser what the page itself shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from translators import sentences, translator

from jumok.inspect.all_heads import all_heads
from jumok.inspect.attention import Attention
from jumok.inspect.attribution import attribute
from jumok.inspect.describe import describe_recipe
from jumok.inspect.gates import gates_of
from jumok.inspect.pictures import LONGEST_TABLE
from jumok.inspect.record import record
from jumok.inspect.steps import steps_of
from jumok.recipe import read

Visit = Callable[..., Any]


def attention() -> Attention:
    return Attention(("I", "</iframe>"), ("je", "suis"), np.array([[0.75, 0.25], [0.5, 0.5]]))


def long() -> Attention:
    words = [f"word{number}" for number in range(LONGEST_TABLE + 1)]
    return Attention(words, words, np.eye(len(words)))


def recorded() -> Any:
    model = translator("transformer")
    with record(model) as seen:
        model.translate(sentences(2))
    return seen


SHOWN: dict[str, tuple[Callable[[], Any], str]] = {
    "attention": (attention, "section.attention td"),
    "long": (long, "#heads canvas"),
    "recorded": (recorded, "section.attention td"),
    "all heads": (lambda: all_heads(translator("transformer"), sentences(1)[0]), "#heads .grid canvas"),
    "gates": (lambda: gates_of(translator("lstm"), sentences(1)[0]), "canvas"),
    "steps": (lambda: steps_of(translator("lstm"), sentences(1)[0], "1"), "img"),
    "attribution": (lambda: attribute(translator("lstm"), sentences(1)[0], steps=2), "section.attention td"),
    "architecture": (lambda: describe_recipe(read("transformer-tiny", []), "transformer-tiny"), "svg"),
}


@pytest.mark.browser
@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_shows_the_page(name: str, visit: Visit, tmp_path: Path) -> None:
    make, drawn = SHOWN[name]
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!DOCTYPE html><meta charset=utf-8>{make()._repr_html_()}", encoding="utf-8")
    frame = visit(notebook).frame_locator("iframe").first
    frame.locator(drawn).first.wait_for(state="attached")
    assert "\\n" not in frame.locator("body").inner_text()


@pytest.mark.browser
def test_in_a_notebook_one_can_point_at_numbers(visit: Visit, tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!DOCTYPE html>{attention()._repr_html_()}", encoding="utf-8")
    frame = visit(notebook).frame_locator("iframe")
    frame.locator("td").first.hover()
    assert "0.75" in frame.locator("body").inner_text()
    assert frame.locator("iframe").count() == 0
