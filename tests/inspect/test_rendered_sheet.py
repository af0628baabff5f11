"""Rendered words on one sheet."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumok.data.images.raw import Pixels
from jumok.errors import Failure
from jumok.inspect.rendered_sheet import COLUMNS, rendered_sheet, write_rendered_sheet


def pictures(count: int, channels: int = 3, text: str = "word") -> list[tuple[Pixels, str]]:
    dice = np.random.default_rng()
    return [(dice.integers(0, 256, (8, 24, channels), np.uint8), text) for _ in range(count)]


def shape_of(content: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(content)) as picture:
        return picture.size


@pytest.mark.parametrize("channels", [1, 3])
def test_every_picture_has_its_place(channels: int) -> None:
    one = shape_of(rendered_sheet(pictures(1, channels)))
    row = shape_of(rendered_sheet(pictures(COLUMNS, channels)))
    more = shape_of(rendered_sheet(pictures(COLUMNS + 1, channels)))
    assert row[0] > 4 * one[0]
    assert row[1] == pytest.approx(one[1], abs=2)
    assert more[0] == pytest.approx(row[0], abs=2)
    assert more[1] > 1.5 * row[1]


def test_the_pixels_are_those_of_the_picture() -> None:
    red = np.zeros((8, 24, 3), np.uint8)
    red[..., 0] = 200
    grey = np.full((8, 24, 1), 90, np.uint8)
    for pixels, colour in ((red, (200, 0, 0)), (grey, (90, 90, 90))):
        with Image.open(io.BytesIO(rendered_sheet([(pixels, "x")]))) as picture:
            shown = np.asarray(picture.convert("RGB")).reshape(-1, 3)
        assert (shown == colour).all(axis=1).mean() > 0.3


def test_it_is_the_same_each_time_and_dark_where_asked_for() -> None:
    given = pictures(3)
    assert rendered_sheet(given) == rendered_sheet(given)
    light, dark = (
        np.asarray(Image.open(io.BytesIO(rendered_sheet(given, dark=each))).convert("L")) for each in (False, True)
    )
    assert light[0, 0] > 250
    assert dark[0, 0] < 40


@pytest.mark.parametrize("text", ["", "$x_1^2$", r"\frac", "한글", "<b>&", "a" * 200, "\u202eabc", "a\tb"])
def test_any_text_can_stand_below(text: str) -> None:
    wide = shape_of(rendered_sheet(pictures(2, text="plain")))[0]
    assert shape_of(rendered_sheet(pictures(2, text=text)))[0] < 1.5 * wide


def test_it_is_written_or_told_why_not(tmp_path: Path) -> None:
    write_rendered_sheet(tmp_path / "sheet.png", pictures(2))
    assert (tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(Failure, match="writing the sheet"):
        write_rendered_sheet(tmp_path / "missing" / "sheet.png", pictures(1))
