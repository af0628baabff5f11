"""Pictures of what heads are worth: every shape of model, and the page in a browser."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from jumok.errors import BadInput
from jumok.inspect.ablation import Ablation, Importance
from jumok.inspect.ablation_picture import draw, page, signed, write_ablation


def an_ablation(layers: int, heads: int | None, kinds: tuple[str, ...], bleu: float | None = 40.0) -> Ablation:
    found = [
        Importance(
            f"decoder.{layer}.{kind}", kind, layer, head, 1.5, 0.01 * layer - 0.001, bleu, bleu and -0.5 * layer, 0.3
        )
        for kind in kinds
        for layer in range(layers)
        for head in (range(heads) if heads else [None])
    ]
    return Ablation("zero", 10, 1.4, 5, bleu, tuple(found))


@pytest.mark.parametrize(
    "ablation",
    [
        an_ablation(1, None, ("cross",)),
        an_ablation(6, 8, ("self",), None),
        an_ablation(2, 4, ("self", "causal", "cross")),
    ],
    ids=["whole", "many", "all kinds"],
)
def test_it_is_drawn_whatever_the_model(ablation: Ablation, tmp_path: Path) -> None:
    light, dark = (draw(ablation, dark=dark) for dark in (False, True))
    with Image.open(io.BytesIO(light)) as image:
        assert min(image.size) > 200
    assert light != dark
    assert draw(ablation) == light  # the same bytes again
    write_ablation(ablation, tmp_path / "x.svg")
    assert "</svg>" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    write_ablation(ablation, tmp_path / "x.json")
    assert len(json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["heads"]) == len(ablation.heads)


def test_the_page_in_a_browser(tmp_path: Path, visit: Callable[..., Any]) -> None:
    ablation = an_ablation(2, 4, ("self", "cross"))
    write_ablation(ablation, tmp_path / "x.html")
    shown = visit(tmp_path / "x.html")
    assert shown.locator("tbody tr").count() == 16
    assert shown.locator("img").evaluate("image => image.naturalWidth") > 100
    assert "−0.0010" in shown.locator("tbody").inner_text()
    assert page(ablation) == (tmp_path / "x.html").read_text(encoding="utf-8")


def test_signs_and_wrong_names(tmp_path: Path) -> None:
    assert (signed(0.0123, 3), signed(-3.44, 1)) == ("+0.012", "−3.4")
    with pytest.raises(BadInput, match=r"none of \.png"):
        write_ablation(an_ablation(1, 1, ("self",)), tmp_path / "x.txt")
