from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from PIL import Image

from jumok.errors import BadInput
from jumok.inspect.all_heads import Kind, Place
from jumok.inspect.drawing import style
from jumok.inspect.forced import Side
from jumok.inspect.head_sheet import _figure, coarse, draw_heads, map_size


def made(tokens: int, layers: int = 2, heads: int = 3, weight: float = 0.5) -> Kind:
    side = Side([f"w{i}" for i in range(tokens)], list(range(tokens)), [f"w{i}" for i in range(tokens)])
    places = tuple(Place(layer, head) for layer in range(layers) for head in (None, *range(heads)))
    return Kind("self", side, side, places, np.full((len(places), tokens, tokens), weight, dtype=np.float32))


def named(keys: str, queries: str, layers: int = 2, heads: int = 3) -> Kind:
    sides = [Side(text.split(), list(range(len(text.split()))), text.split()) for text in (keys, queries)]
    places = tuple(Place(layer, head) for layer in range(layers) for head in (None, *range(heads)))
    shape = len(places), len(sides[1].tokens), len(sides[0].tokens)
    return Kind("cross", *sides, places, np.full(shape, 0.5, dtype=np.float32))


def words(count: int, first: str = "first", middle: str = "w", last: str = "last") -> str:
    return " ".join([first, *[middle] * (count - 2), last])


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


def test_short_sentences_have_their_words_beside_the_maps() -> None:
    kind = named("나는 학생 입니다 . <eos>", "I am a student .")
    size = map_size(kind)
    assert size is not None
    with style("나는학생입니다Iamastudent<eos>↓→", False):
        (axes, _) = _figure(kind, size, "", False).axes
    for labels, side, count in (
        (axes.get_yticklabels(minor=True), kind.queries.tokens, 2),
        (axes.get_xticklabels(minor=True), kind.keys.tokens, 4),
    ):
        assert [label.get_text() for label in labels] == list(side) * count
        assert min(label.get_fontsize() for label in labels) >= 6
    # each beside its own row: five rows a layer
    assert [int(place * 5) for place in axes.get_yticks(minor=True)] == list(range(10))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1"]
    assert axes.get_title(loc="left") == ""


def test_the_picture_itself_has_them() -> None:
    assert draw_heads(named("a b c", "d e")) != draw_heads(named("a b x", "d e"))
    assert draw_heads(named("a b c", "d e")) != draw_heads(named("a b c", "x e"))


def test_maps_grow_so_that_words_can_be_read_but_not_for_ever() -> None:
    short, longer = map_size(named(words(5), words(5))), map_size(named(words(15), words(15)))
    assert short is not None
    assert longer is not None
    assert short < longer
    assert map_size(named(words(15), words(15), heads=16)) is None  # too wide a sheet
    assert map_size(named(words(15), words(15), layers=24)) is None
    assert map_size(named(words(60), words(5))) is None
    assert map_size(named(words(5), words(60))) is None


def test_of_long_sentences_the_title_names_the_first_and_the_last_word() -> None:
    drawn = draw_heads(named(words(60), words(60), heads=4), title="cross attention")
    for other in (named(words(60, first="x"), words(60), heads=4), named(words(60), words(60, last="x"), heads=4)):
        assert draw_heads(other, title="cross attention") != drawn
    # what stands between is not drawn: no font is needed for it
    between = named(words(60, middle="\U0001fad8"), words(60), heads=4)
    assert draw_heads(between, title="cross attention") == drawn


def test_a_title_that_does_not_fit_names_none() -> None:
    narrow, other = (named(words(60, first=first), words(60), heads=0) for first in ("first", "x"))
    assert draw_heads(narrow, title="cross") == draw_heads(other, title="cross")
