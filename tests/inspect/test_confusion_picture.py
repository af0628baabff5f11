"""The confusion matrix as a picture: colours where they belong, numbers that can be read, names of any kind."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from image_files import guessed
from matplotlib.colors import to_rgb
from PIL import Image

from jumok.inspect.confusion_picture import (
    FINEST,
    INKS,
    _figure,
    brief,
    colours,
    contrast,
    draw_confusions,
    strength,
    write_confusion_picture,
)
from jumok.inspect.drawing import ink_and_paper, style

EVIL = ['<b>"x"</b>', "$\\frac{a}{b}$", "긴 이름" * 20, "</svg>&amp;"]


def written(scores: object, dark: bool = False) -> list[str]:
    """All texts of the picture."""
    with style("".join(scores.labels) + "0123456789%.,→", dark):  # type: ignore[attr-defined]
        figure = _figure(scores, "title", dark)  # type: ignore[arg-type]
    texts = [text for axes in figure.axes for text in (*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels())]
    return [text.get_text() for text in (*figure.texts, *texts)]


@pytest.mark.parametrize("count", [2, 10, 30])
def test_numbers_stand_in_the_cells(count: int) -> None:
    scores, _ = guessed([f"class {place}" for place in range(count)], 900)
    texts = written(scores)
    assert texts.count("class 1") == 2
    for number in (int(scores.confusion[0, 0]), int(scores.confusion[0, 1])):
        assert not number or str(number) in texts
    cells = [text for text in texts if text.isdecimal()]
    assert sum(map(int, cells)) == 900


def test_beyond_thirty_the_largest_are_named() -> None:
    scores, _ = guessed([f"class {place}" for place in range(31)], 900)
    texts = written(scores)
    largest = scores.confusions()
    assert f"the largest of {len(largest)} confusions" in texts
    named = [text for text in texts if "→" in text and "class" in text]
    assert named == [f"{one.gold} → {one.predicted}" for one in largest[:24]]


def test_colours_say_what_was_right_and_how_much_of_the_row() -> None:
    shares = np.array([[0.8, 0.2, 0.0], [0.02, 0.98, 0.0], [0.0, 0.0, 0.0]])
    for dark in (False, True):
        painted = colours(shares, dark)
        paper = np.array(to_rgb(ink_and_paper(dark)[1]))
        np.testing.assert_allclose(painted[0, 2], paper)
        np.testing.assert_allclose(painted[2], np.broadcast_to(paper, (3, 3)))
        away = np.abs(painted - paper).sum(axis=2)
        assert away[1, 1] > away[0, 0] > 0
        assert away[0, 1] > away[1, 0] > 0.02
        assert painted[1, 1, 2] > painted[1, 1, 0], "right is blue"
        assert painted[0, 1, 0] > painted[0, 1, 2], "wrong is orange"
    assert (np.diff(strength(np.linspace(0, 1, 50))) > 0).all()


@pytest.mark.parametrize("dark", [False, True])
def test_every_number_can_be_read(dark: bool) -> None:
    for share in np.linspace(0.001, 1, 200):
        for cell in colours(np.array([[share, share], [share, share]]), dark)[0]:
            best = max(contrast(to_rgb(ink), cell.tolist()) for ink in INKS)
            assert best >= 4.5, (share, dark)


def test_many_classes_fit_on_the_same_paper() -> None:
    scores, _ = guessed([f"class {place}" for place in range(700)], 900)
    picture = Image.open(io.BytesIO(draw_confusions(scores)))
    assert max(picture.size) < 2000
    shares = np.zeros((700, 700))
    shares[3, 690] = 0.001
    painted = colours(shares, False)
    assert painted.shape == (FINEST, FINEST, 3)
    assert (painted != 1).any(), "one small confusion of half a million cells is seen"
    names = [text for text in written(scores) if text.startswith("class") and "→" not in text]
    assert 20 < len(names) < 200


def test_written_as_its_ending_says(tmp_path: Path) -> None:
    scores, _ = guessed(EVIL, 200)
    write_confusion_picture(tmp_path / "x.png", scores, "title")
    picture = Image.open(tmp_path / "x.png")
    assert picture.format == "PNG"
    assert 300 < min(picture.size) < max(picture.size) < 1500
    write_confusion_picture(tmp_path / "x.svg", scores, EVIL[0], "examples")
    root = ElementTree.fromstring((tmp_path / "x.svg").read_text(encoding="utf-8"))
    assert root.tag.endswith("svg")
    assert draw_confusions(scores) == draw_confusions(scores), "the same input, the same bytes"


def test_large_numbers_are_brief() -> None:
    assert [brief(count) for count in (0, 9999, 12_345, 2_345_678)] == ["0", "9,999", "12k", "2.3M"]
