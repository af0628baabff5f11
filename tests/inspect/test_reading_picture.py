"""Frames side by side: colours where the map is, the same bytes for the same input, no words that could be markup."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from looking_words import frames, pointing
from PIL import Image

from jumok.errors import BadInput
from jumok.inspect.reading_attention import MOST_PICTURES
from jumok.inspect.reading_picture import FAINT, STRONG, draw_frames, laid_over


def opened(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def test_the_map_is_laid_over_the_picture() -> None:
    chance = np.random.default_rng()
    picture = chance.integers(0, 256, (6, 9, 3), np.uint8)
    map_HW = chance.random((6, 9)).astype(np.float32)
    map_HW[2, 3] = 0
    made = laid_over(picture, map_HW, float(map_HW.max()))
    for row, column in ((2, 3), np.unravel_index(map_HW.argmax(), map_HW.shape), (5, 8)):
        share = map_HW[row, column] / map_HW.max()
        cover = FAINT + (STRONG - FAINT) * share
        colour = 255 * np.array(matplotlib.colormaps["cividis"](float(share))[:3])
        np.testing.assert_allclose(
            made[row, column], cover * colour + (1 - cover) * picture[row, column].mean(), atol=1
        )
    assert laid_over(picture, np.zeros((6, 9), np.float32), 0.0).shape == picture.shape


def test_a_sheet_has_a_frame_for_each_character() -> None:
    """On a black picture the only bright yellow is where characters look: in a frame each, and from left to right."""
    black = np.zeros((30, 100, 3), np.uint8)
    shown = pointing([1, 8, 15], 17, picture=black, size=(30, 100))
    yellow = 255 * (FAINT + STRONG - FAINT) * np.array(matplotlib.colormaps["cividis"](1.0)[:3])
    made = opened(draw_frames([shown]))
    bright = (abs(made - yellow).max(axis=2) < 12).any(axis=0)
    starts = np.flatnonzero(bright[1:] & ~bright[:-1])
    groups = np.split(starts, np.flatnonzero(np.diff(starts) > 60) + 1)
    assert len(groups) == 3
    one_inch = 150
    steps = np.diff([group.mean() for group in groups])
    assert (steps > one_inch * (1.7 + 0.14)).all()  # a tile and some of its width


@pytest.mark.parametrize("dark", [False, True])
def test_the_same_frames_give_the_same_bytes(dark: bool) -> None:
    shown = [frames("3가나"), frames("7", grid=(1, 12), size=(90, 30)), frames("12345678", size=(400, 1200))]
    first = draw_frames(shown, dark=dark)
    assert draw_frames(shown, dark=dark) == first
    made = opened(first)
    assert made.shape[1] < 2600
    assert (made[0, 0].mean() < 60) == dark


def test_svg_and_words_that_look_like_markup() -> None:
    shown = frames("<&>", name="a<b>&$x^2$.png", about="attention <i>")
    tree = ElementTree.fromstring(draw_frames([shown], "svg").decode())
    assert tree.tag.endswith("svg")
    assert any(one.tag.endswith("}image") for one in tree.iter())


def test_nothing_read_and_extreme_shapes() -> None:
    none = frames("1", characters=(), confidences=(), maps=np.zeros((0, 2, 8), np.float32))
    for shown in (none, frames("1", size=(3, 900)), frames("12", size=(900, 3)), frames("1", size=(1, 1))):
        assert opened(draw_frames([shown])).size
    blank = frames(" ")
    assert opened(draw_frames([blank])).size


def test_how_many() -> None:
    with pytest.raises(BadInput, match="no picture"):
        draw_frames([])
    with pytest.raises(BadInput, match=str(MOST_PICTURES)):
        draw_frames([frames("1")] * (MOST_PICTURES + 1))
