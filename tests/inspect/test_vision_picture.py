"""Pictures of what an image model looks at: valid files, the same bytes every time, and what they show."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image
from seeded import seed as seed

from jumok.errors import BadInput
from jumok.inspect import vision_plots
from jumok.inspect.drawing import sheet, style
from jumok.inspect.vision import Map
from jumok.inspect.vision_distance import Distances, HeadDistance
from jumok.inspect.vision_picture import (
    MARK,
    MOST_IMAGES,
    SHADES,
    Shown,
    colour,
    draw_maps,
    most_of,
    overlay,
    told_apart,
)
from jumok.inspect.vision_plots import as_picture, draw_distances, draw_filters, draw_positions, tiled
from jumok.inspect.vision_weights import Filters


def made(
    grid: tuple[int, int] = (3, 4), count: int = 3, place: int | None = None, seed: int = 0, channels: int = 3
) -> Shown:
    chance = np.random.default_rng(seed)
    maps = [Map(chance.random(grid, np.float32), f"head {number}", 0.1, place) for number in range(count)]
    image = chance.integers(0, 256, (channels, 12, 20), np.uint8)
    return Shown(image, "그림 <one> $x$.png", maps, "고양이 93 %")


def distances(layers: int, heads: int) -> Distances:
    found = tuple(
        HeadDistance(layer, head, 3.0 + layer + head, 0.1) for layer in range(layers) for head in range(heads)
    )
    fields = tuple(3 + 4 * layer for layer in range(layers))
    return Distances(7, (32, 48), (8, 12), found, 20.0, fields, tuple(field * 0.38 for field in fields), 1e-7)


@pytest.mark.parametrize(("layers", "steep"), [(1, 1.0), (6, 0.2), (12, 3.0)])
def test_no_width_of_a_field_touches_the_line_of_its_network(layers: int, steep: float) -> None:
    found = distances(layers, 2)
    rising = tuple(20 * (1 - 0.5 ** (steep * layer)) for layer in range(layers))
    with style("", False):
        figure = vision_plots._distances(replace(found, field_distances=rising), "a CNN", False)
        figure.canvas.draw()
        axes = figure.axes[0]
        (line,) = (one for one in axes.lines if one.get_label() == "a CNN")
        points = axes.transData.transform(line.get_xydata())
        path = np.concatenate([np.linspace(*pair, 200) for pair in pairwise(points)] or [points])
        boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == layers
    for box in boxes:
        assert box.x1 <= axes.bbox.x1
        assert not any(box.contains(x, y) for x, y in path)


DRAWN: dict[str, Any] = {
    "maps": lambda format, dark: draw_maps([made()], "layer 1, from the class token", format, dark=dark),
    "many": lambda format, dark: draw_maps([made(count=13, place=5), made(count=2)], "", format, dark=dark),
    "grey": lambda format, dark: draw_maps([made(channels=1, count=1)], "grey", format, dark=dark),
    "filters": lambda format, dark: draw_filters(
        [
            Filters(np.random.default_rng(0).normal(size=(9, 3, 4, 4)).astype(np.float32), "patches", (0.1,) * 9),
            Filters(np.random.default_rng(1).normal(size=(3, 1, 5, 3)).astype(np.float32), "a CNN"),
        ],
        format,
        dark=dark,
    ),
    "positions": lambda format, dark: draw_positions(
        np.zeros((3, 20, 3, 20), np.float32), "learned", format, dark=dark
    ),
    "distances": lambda format, dark: draw_distances(distances(12, 3), format, dark=dark),
    "one layer": lambda format, dark: draw_distances(distances(1, 1), format, dark=dark),
}


@pytest.mark.parametrize("name", DRAWN)
def test_files_are_valid_and_the_same_every_time(name: str) -> None:
    draw = DRAWN[name]
    before = plt.get_fignums()
    light, again, dark = draw("png", False), draw("png", False), draw("png", True)
    assert light == again != dark
    with Image.open(io.BytesIO(light)) as picture:
        picture.load()
        assert min(picture.size) > 150
    assert ElementTree.fromstring(draw("svg", False)).tag.endswith("svg")
    assert plt.get_fignums() == before  # nothing is kept


def test_what_differs_in_colour_alone_is_seen_in_grey() -> None:
    image = np.zeros((20, 20, 3), np.uint8)
    image[:, :] = (0, 200, 0)
    image[5:15, 5:15] = (200, 0, 0)  # as light as what is around it
    assert abs(float(told_apart(image)[10, 10] - told_apart(image)[0, 0])) > 75
    image[5:15, 5:15] = (250, 250, 250)
    assert told_apart(image)[10, 10] > told_apart(image)[0, 0] + 75  # light stays light


@pytest.mark.parametrize("grey", [0, 90, 255])
def test_a_flat_image_is_neither_dark_nor_light(grey: int) -> None:
    image = np.full((20, 20, 3), grey, np.uint8)
    assert np.array_equal(told_apart(image), np.full((20, 20), sum(SHADES) / 2))
    image[3, 4] = 128  # a single pixel can still be seen
    shown = told_apart(image)
    assert (shown.min(), shown.max()) == SHADES
    assert (shown[3, 4] > shown[0, 0]) == (grey < 128)


def test_the_brightest_patch_is_the_largest_value() -> None:
    values = np.full((3, 4), 0.02, np.float32)
    values[1, 2] = 0.5
    figure = sheet(4, 3)
    axes = figure.add_axes((0, 0, 1, 1))
    overlay(axes, np.full((3, 12, 20), 128, np.uint8), Map(values, "x"))
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    height, width = pixels.shape[:2]
    middle = [
        [pixels[int((row + 0.5) * height / 3), int((column + 0.5) * width / 4)] for column in range(4)]
        for row in range(3)
    ]
    brightness = np.array(middle).sum(axis=-1)
    assert np.unravel_index(brightness.argmax(), (3, 4)) == (1, 2)
    assert middle[1][2][0] > middle[1][2][2] + 80, "yellow"
    assert (np.delete(brightness.ravel(), 6) == brightness[0, 0]).all()


@pytest.mark.parametrize("place", [None, 7])
def test_the_patch_that_looks_is_framed(place: int | None) -> None:
    drawn = draw_maps([made(place=place)], format="svg").decode()
    assert (MARK in drawn) == (place is not None)


def test_colours_and_words() -> None:
    grey = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    np.testing.assert_array_equal(colour(grey)[..., 0], grey[0])
    assert colour(grey).shape == (2, 3, 3)
    assert most_of(Map(np.array([[0.1, 0.3]], np.float32), "")) == "up to 0.3, 1.5× the mean"
    assert most_of(Map(np.zeros((2, 2), np.float32), "")) == "nothing above 0"
    filter_ = np.array([[[0.0, 2.0], [-1.0, -2.0]]], np.float32)
    np.testing.assert_allclose(as_picture(filter_), [[0.5, 1.0], [0.25, 0.0]])
    np.testing.assert_allclose(as_picture(np.zeros((3, 2, 2), np.float32)), 0.5)


def test_each_place_has_its_map_where_it_is(seed: int) -> None:
    alike = np.random.default_rng(seed).random((2, 3, 2, 3)).astype(np.float32)
    whole = tiled(alike)
    assert whole.shape == (2 * 3 - 1, 3 * 4 - 1)
    for row in range(2):
        for column in range(3):
            part = whole[row * 3 : row * 3 + 2, column * 4 : column * 4 + 3]
            np.testing.assert_array_equal(part, alike[row, column])
    assert np.isnan(whole[2]).all()


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(BadInput, match="no image to draw"):
        draw_maps([])
    with pytest.raises(BadInput, match=f"at most {MOST_IMAGES}"):
        draw_maps([made(count=0)] * (MOST_IMAGES + 1))


def test_nothing_is_written_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw_maps([made()])
    assert not list(tmp_path.iterdir())
