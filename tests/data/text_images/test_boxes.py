"""Boxes of words: every way to write one, each that is none named by its number, and what is cut out of a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jumok.data.images.raw import RawImage
from jumok.data.text_images.boxes import BadBox, Box, box_of, boxed, cut, read_boxes
from jumok.errors import BadInput


def a_page(height: int = 60, width: int = 90) -> np.ndarray:
    return np.random.default_rng().integers(0, 256, (height, width, 3), dtype=np.uint8)


def a_smooth_page(height: int = 120, width: int = 160) -> np.ndarray:
    """Its colours say where each pixel is, so that what was cut out can be told from them."""
    down, across = np.mgrid[:height, :width]
    return np.stack((across * 255 // width, down * 255 // height, 0 * down + 128), axis=2).astype(np.uint8)


def written(path: Path, boxes: object) -> Path:
    path.write_text(boxes if isinstance(boxes, str) else json.dumps(boxes), encoding="utf-8")
    return path


def test_a_rectangle_in_all_its_spellings(tmp_path: Path) -> None:
    page = a_page()
    named = {"x": 10, "y": 5, "width": 30, "height": 20}
    corners = [[10, 5], [40, 5], [40, 25], [10, 25]]
    file = written(tmp_path / "b.json", [[10, 5, 30, 20], named, {"box": [10, 5, 30, 20], "id": 7}, {"box": named}])
    boxes = read_boxes(file)
    assert [box.number for box in boxes if isinstance(box, Box)] == [1, 2, 3, 4]
    for box in boxes:
        assert isinstance(box, Box)
        np.testing.assert_array_equal(cut(page, box, "x"), page[5:25, 10:40])
    assert isinstance(boxes[2], Box)
    assert boxes[2].given == {"box": [10, 5, 30, 20], "id": 7}
    rectified = cut(page, box_of(corners, 1, "x"), "x")
    np.testing.assert_array_equal(rectified, page[5:25, 10:40])
    grey = page[:, :, :1]
    np.testing.assert_array_equal(cut(np.ascontiguousarray(grey), box_of(corners, 1, "x"), "x"), grey[5:25, 10:40])


@pytest.mark.parametrize("turn", range(4))
def test_the_first_corner_is_where_the_word_begins(turn: int) -> None:
    """Corners that begin elsewhere are a word that was turned: it comes out upright."""
    page = a_page()
    corners = [[10, 5], [40, 5], [40, 25], [10, 25]]
    expected = np.rot90(page[5:25, 10:40], turn)
    turned = corners[turn:] + corners[:turn]
    for given in (turned, [turned[0], turned[3], turned[2], turned[1]]):  # around it in either direction
        np.testing.assert_allclose(cut(page, box_of(given, 1, "x"), "x"), expected, atol=1)


def test_a_slanted_box_is_rectified() -> None:
    page = a_smooth_page()
    chance = np.random.default_rng()
    corners = np.array([[30, 30], [120, 40], [115, 80], [25, 75]]) + chance.uniform(-6, 6, (4, 2))
    found = cut(page, box_of(corners.tolist(), 1, "x"), "x").astype(float)
    for (row, column), (x, y) in zip(((0, 0), (0, -1), (-1, -1), (-1, 0)), corners, strict=True):
        across, down, _ = found[row, column]
        # a pixel's colour is that of its middle, rounded down
        assert across == pytest.approx(255 * (x - 0.5) / 160 - 0.5, abs=4)
        assert down == pytest.approx(255 * (y - 0.5) / 120 - 0.5, abs=4)
    wide = max(np.hypot(*(corners[1] - corners[0])), np.hypot(*(corners[2] - corners[3])))
    assert found.shape[1] == round(wide)
    middle = np.linalg.solve(  # where the diagonals cross is in the middle of a rectified picture
        np.stack((corners[2] - corners[0], corners[1] - corners[3]), axis=1), corners[1] - corners[0]
    )
    x, y = corners[0] + middle[0] * (corners[2] - corners[0])
    across, down, _ = found[found.shape[0] // 2, found.shape[1] // 2]
    assert across == pytest.approx(255 * x / 160, abs=4)
    assert down == pytest.approx(255 * y / 120, abs=4)


def test_what_reaches_over_the_edge_is_cut_off() -> None:
    page = a_page()
    np.testing.assert_array_equal(cut(page, box_of([-10, 50, 30, 30], 1, "x"), "x"), page[50:, :20])
    np.testing.assert_array_equal(cut(page, box_of([89.999, 59.999, 5, 5], 1, "x"), "x"), page[59:, 89:])
    np.testing.assert_array_equal(cut(page, box_of([-5, -5, 5.001, 5.001], 1, "x"), "x"), page[:1, :1])
    over = cut(page, box_of([[-20, 10], [30, 10], [30, 30], [-20, 30]], 1, "x"), "x")
    assert over.shape[0] == 20
    np.testing.assert_allclose(over[:, -25:], page[10:30, 5:30], atol=1)
    far = cut(page, box_of([[-1e6, 10], [30, 10], [30, 30], [-1e6, 30]], 1, "x"), "x")
    assert far.shape[1] <= 120


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ([1, 2, 3], "is no box"), ([1, 2, 0, 5], "above 0"), ([1, 2, 5, -1], "above 0"), (None, "is no box"),
        ("1,2,3,4", "is no box"), ({"x": 1, "y": 2}, "width, height is missing"), ({"box": 3}, "is no box"),
        ([float("nan"), 1, 2, 3], "numbers that a page can have"), ([1, 1, float("inf"), 3], "a page can have"),
        ([1, 1, 10**400, 3], "a page can have"), (["1", 1, 2, 3], "all in numbers"), ([True, 1, 2, 3], "in numbers"),
        ([[0, 0], [9, 0], [9, 9]], "is no box"), ([[0, 0], [9, 0], [9, 9], [0]], "all in numbers"),
        ([[0, 0], [9, 9], [9, 0], [0, 9]], "sides cross"), ([[0, 0], [5, 0], [9, 0], [2, 0]], "nothing lies between"),
        ([[0, 0], [9, 0], [2, 2], [0, 9]], "cross or bend"), ([[1, 1]] * 4, "nothing lies between"),
        ([500, 1, 5, 5], "outside of the page, which has 90 × 60"), ([-5, 1, 5, 5], "outside of the page"),
        ([[100, 0], [120, 0], [120, 9], [100, 9]], "outside of the page"), ([[1, 2]] * 99, "…"),
    ],
)  # fmt: skip
def test_what_is_no_box_is_named_and_the_others_are_cut(tmp_path: Path, box: Any, said: str) -> None:
    file = written(tmp_path / "b.json", [[1, 1, 5, 5], box, [2, 2, 5, 5]])
    Image.fromarray(a_page()).save(tmp_path / "page.png")
    page = RawImage("page.png", None, (tmp_path / "page.png").read_bytes())
    first, bad, last = boxed(page, read_boxes(file), 3, "b.json")
    assert isinstance(bad, BadBox)
    assert "b.json: box 2: " in str(bad)
    assert said in str(bad)
    assert len(str(bad)) < 300
    assert not isinstance(first, BadBox)
    assert not isinstance(last, BadBox)
    assert (first[1].name, last[1].name) == ("page.png#1", "page.png#3")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[[1,2,3,4],", "line 1: not JSON"), ("[\n[1,2\n3]]", "line 3: not JSON"), ('{"boxes": []}', "a list of boxes"),
        ("[1, 2, 3, 4]", "put it into a list"), ("", "not JSON"), ("[" * 100_000, "lists in lists|not JSON"),
        (f"[[1, 2, 3, {'9' * 5000}]]", "not to be read: .*digits"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_boxes(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as error:
        read_boxes(written(tmp_path / "b.json", content))
    assert "b.json" in str(error.value)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ('"\\ud800": 1', "ud800 is half a character"), ('"id": "a\\udfff"', "udfff is half"), ('"sure": NaN', "NaN"),
        ('"sure": [-Infinity]', "Infinity"), ('"sure": 1e999', "Infinity"),
        ('"deep": ' + "[" * 200 + "]" * 200, "lists in lists"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_beside_a_reading_is_no_box(tmp_path: Path, extra: str, said: str) -> None:
    box = '{"box": [1, 2, 3, 4], "id": "\\ud83d\\ude42"}'
    first, bad, last = read_boxes(written(tmp_path / "b.json", f'[{box}, {{"box": [1, 2, 3, 4], {extra}}}, {box}]'))
    assert isinstance(bad, BadBox)
    assert "b.json: box 2: " in str(bad)
    assert said in str(bad)
    assert isinstance(first, Box)
    assert isinstance(last, Box)
    assert last.number == 3


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        read_boxes(tmp_path / "gone.json")
    (tmp_path / "b.json").write_bytes(b"[\xff]")
    with pytest.raises(BadInput, match="not UTF-8 at byte 1"):
        read_boxes(tmp_path / "b.json")
    (tmp_path / "b.json").write_bytes(b"\xef\xbb\xbf[[1, 2, 3, 4]]")  # as Windows writes it
    assert len(read_boxes(tmp_path / "b.json")) == 1
    assert read_boxes(written(tmp_path / "b.json", [])) == []


def test_boxes_are_of_the_page_held_upright(tmp_path: Path) -> None:
    page = a_page(40, 80)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(page).save(tmp_path / "page.png", exif=exif)
    raw = RawImage("page.png", None, (tmp_path / "page.png").read_bytes())
    found = next(boxed(raw, [box_of([3, 50, 20, 9], 1, "x")], 3, "x"))
    assert not isinstance(found, BadBox)
    np.testing.assert_array_equal(found[1].data, np.rot90(page, -1)[50:59, 3:23])
