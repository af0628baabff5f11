from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from PIL import Image

from jumok.errors import BadInput
from jumok.inspect.all_heads import Kind, Place
from jumok.inspect.forced import Side
from jumok.inspect.head_sheet import coarse, draw_heads


def made(tokens: int, layers: int = 2, heads: int = 3, weight: float = 0.5) -> Kind:
    side = Side([f"w{i}" for i in range(tokens)], list(range(tokens)), [f"w{i}" for i in range(tokens)])
    places = tuple(Place(layer, head) for layer in range(layers) for head in (None, *range(heads)))
    return Kind("self", side, side, places, np.full((len(places), tokens, tokens), weight, dtype=np.float32))


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def test_every_map_has_its_place_and_the_colours_are_fixed() -> None:
    kind = made(4)
    kind.weights[5] = 1.0  # layer 1, head 0
    image = pixels(draw_heads(kind))
    areas = {
        weight: (np.abs(image - np.array(matplotlib.colormaps["cividis"](weight)[:3]) * 255).max(axis=2) <= 1.5).sum()
        for weight in (0.5, 1.0)
    }
    assert areas[0.5] / areas[1.0] == pytest.approx(7, rel=0.1)  # of eight maps one is full


@pytest.mark.parametrize("dark", [False, True])
def test_the_same_input_gives_the_same_bytes_in_both_formats(dark: bool) -> None:
    kind = made(3)
    assert draw_heads(kind, "png", dark=dark) == draw_heads(kind, "png", dark=dark)
    root = ElementTree.fromstring(draw_heads(kind, "svg", title="<b>", dark=dark))
    assert not [element for element in root.iter() if element.tag.endswith(("}text", "}script"))]


def test_a_sharp_line_stays_visible_in_a_long_text() -> None:
    small = coarse(np.eye(512, dtype=np.float32), 100)
    assert small.shape == (100, 100)
    assert (small.diagonal() == 1).all()
    assert small.sum() < 300
    np.testing.assert_array_equal(coarse(np.eye(7, dtype=np.float32)), np.eye(7))


def test_an_empty_sentence_is_refused() -> None:
    with pytest.raises(BadInput, match="empty"):
        draw_heads(made(0))
