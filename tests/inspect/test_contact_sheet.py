"""The sheet of mistakes: each image is on it, in its order, and what is written below can be drawn."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from image_files import guessed
from PIL import Image

from jumok.errors import Failure
from jumok.inspect.contact_sheet import contact_sheet, headline, percent, write_contact_sheet
from jumok.inspect.image_mistakes import Mistake, worst

NAMES = ["고양이", '<b>"x"</b>', "ship $x_1$", "a class with a name that is much too long for an image"]


def opened(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def flat(colour: tuple[int, int, int], number: int) -> Mistake:
    return Mistake(number, "x", NAMES[0], NAMES[1], 0.9, 2.0, np.full((8, 8, 3), colour, np.uint8))


def test_at_most_forty_eight_in_eight_columns() -> None:
    scores, mistakes = guessed(NAMES, 400)
    assert len(mistakes) > 60
    forty_eight = opened(contact_sheet(worst(mistakes, 60), scores))
    assert 1500 < forty_eight.shape[1] < 2000
    assert 1300 < forty_eight.shape[0] < 2000
    one, two = (opened(contact_sheet(mistakes[:count], scores)) for count in (1, 2))
    assert one.shape[0] == two.shape[0] < forty_eight.shape[0] / 3
    np.testing.assert_array_equal(forty_eight, opened(contact_sheet(worst(mistakes, 48), scores)))


def test_each_image_stands_in_its_place() -> None:
    scores, _ = guessed(NAMES, 50)
    chance = np.random.default_rng()
    colours = [tuple(int(part) for part in chance.integers(0, 200, 3)) for _ in range(12)]
    sheet = opened(contact_sheet([flat(colour, number) for number, colour in enumerate(colours)], scores))
    places = []
    for colour in colours:
        rows, columns = np.nonzero((np.abs(sheet - colour) <= 1).all(axis=2))
        assert len(rows) > 150 * 150, colour
        places.append((np.median(rows), np.median(columns)))
    tops = [place[0] for place in places]
    assert tops == sorted(tops)
    rows_of = {round(top / 40) for top in tops}
    assert 2 <= len(rows_of) <= 4
    for row in rows_of:
        lefts = [left for top, left in places if round(top / 40) == row]
        assert lefts == sorted(lefts)


@pytest.mark.parametrize(("size", "channels"), [((8, 32), 1), ((48, 8), 3), ((8, 400), 3), ((240, 240), 1)])
def test_images_of_any_shape(size: tuple[int, int], channels: int) -> None:
    scores, mistakes = guessed(NAMES, 40, size, channels)
    sheet = opened(contact_sheet(mistakes, scores, dark=True))
    assert max(sheet.shape) < 4000
    assert (sheet[0, 0] < 60).all()  # the paper is dark


def test_what_is_said_about_it() -> None:
    scores, mistakes = guessed(NAMES, 300)
    assert f"the 48 most confident of {len(mistakes)} mistakes" in headline(48, scores)
    assert f"all {len(mistakes)} mistakes" in headline(len(mistakes), scores)
    assert (percent(0.999), percent(0.9999), percent(0.5), percent(1.0)) == ("99.9 %", "99.9 %", "50 %", "100.0 %")


def test_no_mistakes_and_no_place(tmp_path: Path) -> None:
    scores, _ = guessed(NAMES, 300)
    write_contact_sheet(tmp_path / "x.png", [], scores)
    assert Image.open(tmp_path / "x.png").width > 300
    with pytest.raises(Failure, match="nowhere"):
        write_contact_sheet(tmp_path / "nowhere" / "x.png", [], scores)
