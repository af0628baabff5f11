"""Pages of what an image model is like beyond one image: their numbers, their texts, and what a browser says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.inspect.vision_distance import Distances, HeadDistance
from jumok.inspect.vision_model_page import by_steps, distances_page, filters_page, positions_page
from jumok.inspect.vision_weights import Filters

NAME = "<b>그림</b> & more"


def filters(count: int, name: str, shares: tuple[float, ...] = ()) -> Filters:
    return Filters(np.random.default_rng().normal(size=(count, 3, 4, 4)).astype(np.float32), name, shares)


def alike() -> np.ndarray:
    """Of places that are what they are by their row alone, which turns by 60° each."""
    rows = np.arange(3)
    cosines = np.cos(np.pi / 3 * (rows[:, None] - rows[None]))
    return np.broadcast_to(cosines[:, None, :, None], (3, 5, 3, 5)).astype(np.float32)


def distances() -> Distances:
    heads = tuple(HeadDistance(layer, head, 2.0 + layer + 2 * head, 0.1) for layer in range(2) for head in range(2))
    return Distances(1, (32, 48), (8, 12), heads, 20.0, (7, 1001), (2.6, 5.5), 1e-7)


PAGES: dict[str, Callable[[], str]] = {
    "filters": lambda: filters_page([filters(2, "patch embedding", (0.5, 0.25)), filters(3, "<i>CNN</i>")], NAME),
    "positions": lambda: positions_page(alike(), "learned", NAME),
    "distances": lambda: distances_page(distances(), NAME),
}


def cells(page: str) -> list[list[str]]:
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in body.split("<tr>")[1:]]


def test_the_numbers() -> None:
    assert cells(PAGES["filters"]()) == [["1", "50.0 %", "50.0 %"], ["2", "25.0 %", "75.0 %"]]
    steps = [["1", "0.500", "1.000"], ["2", "−0.500", "1.000"], ["3", "", "1.000"], ["4", "", "1.000"]]
    assert cells(PAGES["positions"]()) == steps
    assert cells(PAGES["distances"]()) == [
        ["0", "2.0", "3.0", "4.0", "2.6", "7"],
        ["1", "3.0", "4.0", "5.0", "5.5", "1,001"],
    ]
    assert "on 1 image of 32×48 pixels" in PAGES["distances"]()


def test_steps_are_along_a_column_and_along_a_row() -> None:
    down, across = by_steps(alike())
    np.testing.assert_allclose(down, [1, 0.5, -0.5], atol=1e-6)
    np.testing.assert_allclose(across, np.ones(5), atol=1e-6)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(name: str, scheme: str, tmp_path: Path, visit: Callable[..., Any]) -> None:
    (tmp_path / "page.html").write_text(PAGES[name](), encoding="utf-8")
    page = visit(tmp_path / "page.html", color_scheme=scheme, viewport={"width": 390, "height": 800})
    assert page.locator("h1").inner_text().startswith(f"{NAME}: ")
    assert page.locator("b, i").count() == 0
    assert page.evaluate("document.querySelector('img').naturalWidth") > 200
    drawn = page.evaluate("document.querySelector('img').currentSrc")
    chosen = page.locator("source" if scheme == "dark" else "img").get_attribute(
        "srcset" if scheme == "dark" else "src"
    )
    assert drawn == chosen
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
