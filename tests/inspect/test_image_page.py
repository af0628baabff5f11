"""The page of an evaluation of images, in a real browser: mistakes that can be chosen, images inside the file."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_files import guessed
from PIL import Image

from jumok.errors import Failure
from jumok.inspect import image_page
from jumok.inspect.image_mistakes import Mistake, worst
from jumok.inspect.image_page import common_folder, data_uri, write_image_page

Visit = Callable[..., Any]
LABELS = ["고양이", "개", "새"]


def rows_of(path: Path) -> list[list[Any]]:
    found = re.search(r'id="evaluation-data">(.*?)</script>', path.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(found[1])["rows"]


def pixels_of(uri: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def listed(view: Any) -> int:
    return int(re.match(r"[\d,]+", view.locator(".found").inner_text())[0].replace(",", ""))


def test_small_images_are_held_pixel_by_pixel(tmp_path: Path) -> None:
    scores, mistakes = guessed(LABELS, 60)
    write_image_page(tmp_path / "x.html", "t", scores, worst(mistakes, 300))
    rows = rows_of(tmp_path / "x.html")
    assert [row[0] for row in rows] == [one.number for one in worst(mistakes, 300)]
    by_number = {one.number: one for one in mistakes}
    for row in rows:
        one = by_number[row[0]]
        np.testing.assert_array_equal(pixels_of(row[7]), one.pixels)
        assert (f"test/{row[1]}", LABELS[row[3]], LABELS[row[4]]) == (one.name, one.gold, one.said)
        assert row[5] == pytest.approx(one.probability, abs=1e-4)
    assert 'class="examples images enlarged"' in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_what_all_names_begin_with_is_told_once() -> None:
    assert common_folder(["a/b/c.png", "a/b/d/e.png", "a/bb/c.png"]) == "a/"
    assert common_folder(["a/b.png"]) == "a/"
    assert common_folder(["image 1", "image 2"]) == common_folder([]) == ""


def test_large_images_are_made_small(tmp_path: Path) -> None:
    smooth = np.broadcast_to(np.linspace(0, 255, 150).astype(np.uint8)[None, :, None], (100, 150, 1))
    address = data_uri(np.ascontiguousarray(smooth))
    assert address.startswith("data:image/jpeg;base64,")
    assert np.abs(pixels_of(address).astype(int) - smooth[:, :, 0]).mean() < 3
    scores, mistakes = guessed(LABELS, 60, (100, 150), 3)
    write_image_page(tmp_path / "x.html", "t", scores, mistakes)
    assert "images enlarged" not in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_the_page_stays_small_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, mistakes = guessed(LABELS, 400)
    write_image_page(tmp_path / "x.html", "t", scores, mistakes[:10])
    said = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert f"holds 10 of the {len(mistakes):,} images" in said
    monkeypatch.setattr(image_page, "MOST_CHARACTERS", 3000)
    write_image_page(tmp_path / "x.html", "t", scores, mistakes)
    held = rows_of(tmp_path / "x.html")
    assert 1 <= len(held) < 15
    assert f"holds {len(held)} of" in (tmp_path / "x.html").read_text(encoding="utf-8")
    monkeypatch.undo()
    write_image_page(tmp_path / "x.html", "t", scores, mistakes)
    assert 'class="left-out"' not in (tmp_path / "x.html").read_text(encoding="utf-8")
    with pytest.raises(Failure, match="nowhere"):
        write_image_page(tmp_path / "nowhere" / "x.html", "t", scores, mistakes)


@pytest.mark.browser
def test_mistakes_are_chosen_by_class_and_name(tmp_path: Path, visit: Visit) -> None:
    scores, mistakes = guessed(LABELS, 300)
    write_image_page(tmp_path / "x.html", "three classes", scores, worst(mistakes, 300), ["a note about it"])
    view = visit(tmp_path / "x.html")
    assert "A note about it." in view.locator("ul.notes").inner_text()
    assert listed(view) == len(mistakes)
    first = view.locator(".example").first
    top = worst(mistakes, 1)[0]
    assert first.locator(".number").inner_text() == str(top.number)
    assert top.gold in first.inner_text()
    assert first.locator(".bad").inner_text() == top.said
    image = first.locator("img")
    assert image.evaluate("one => one.decode().then(() => [one.naturalWidth, one.naturalHeight])") == [8, 8]
    assert image.evaluate("one => getComputedStyle(one).imageRendering") == "pixelated"
    for gold in range(3):
        for said in range(3):
            if gold != said and scores.confusion[gold, said]:
                view.locator(f'td [data-gold="{gold}"][data-predicted="{said}"]').click()
                assert listed(view) == scores.confusion[gold, said]
    view.locator('td [data-gold="1"][data-predicted="1"]').click()
    assert "right are not kept" in view.locator(".found").inner_text()
    view.locator('button[type="reset"]').click()
    view.locator(".found", has_text=f"{len(mistakes)} of").wait_for()
    view.locator('[name="search"]').fill(f"/{top.number - 1}.PNG")
    assert listed(view) == 1
    view.locator('[name="search"]').fill("")
    view.locator('[name="order"]').select_option("unsure")
    assert view.locator(".example .number").first.inner_text() == str(worst(mistakes, 999)[-1].number)
    view.locator('[name="order"]').select_option("")
    view.locator('[name="shown"]').select_option("unsure")
    assert listed(view) == sum(round(one.probability, 5) < 0.5 for one in mistakes)


@pytest.mark.browser
def test_nothing_from_data_is_run_and_nothing_is_fetched(evil: tuple[str, ...], tmp_path: Path, visit: Visit) -> None:
    labels = ['<b>"x"</b>', *evil]
    scores, mistakes = guessed(labels, 60)
    named = [
        Mistake(one.number, evil[one.number % 4], one.gold, one.said, one.probability, one.loss, one.pixels)
        for one in mistakes
    ]
    write_image_page(tmp_path / "x.html", evil[0], scores, named, evil)
    view = visit(tmp_path / "x.html")
    assert listed(view) == len(mistakes)
    for text in evil:
        assert text in view.locator(".examples").inner_text()
    assert '<b>"x"</b>' in view.locator("table.numbers").inner_text()
    assert view.locator("b", has_text="x").count() == 0
    assert view.evaluate("window.hacked") is None
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.count("<script") == 2, "the data and ours"
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", page)
    assert "default-src 'none'" in page


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(tmp_path: Path, visit: Visit, width: int, scheme: str) -> None:
    scores, mistakes = guessed(["a very long label that will not fit " * 3, "b", "긴 이름표"], 80, (100, 400))
    write_image_page(tmp_path / "x.html", "제목" * 60, scores, mistakes)
    view = visit(tmp_path / "x.html", color_scheme=scheme, viewport={"width": width, "height": 800})
    assert view.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_without_mistakes_it_is_still_a_page(tmp_path: Path, visit: Visit) -> None:
    scores, _ = guessed(LABELS, 30)
    write_image_page(tmp_path / "x.html", "t", scores, [])
    view = visit(tmp_path / "x.html")
    assert listed(view) == 0
    assert view.locator("img").count() == 0
