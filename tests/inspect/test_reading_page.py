"""The page of misread words, in a real browser: what can be chosen, what is marked, and nothing from data that runs."""

from __future__ import annotations

import base64
import io
import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from misread_words import misread
from PIL import Image

from jumok.errors import Failure
from jumok.inspect import reading_page
from jumok.inspect.reading_judging import Misread
from jumok.inspect.reading_page import compared, write_reading_page
from jumok.tasks.edit_distance import edits
from jumok.tasks.reading_kinds import MISTAKES, SCRIPTS, length_group, script_of
from jumok.tasks.reading_scores import reading_scores

Visit = Callable[..., Any]


def by_confidence(mistakes: list[Misread]) -> list[Misread]:
    return sorted(mistakes, key=lambda one: -one.confidence)


def rows_of(path: Path) -> list[list[Any]]:
    found = re.search(r'id="reading-data">(.*?)</script>', path.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(found[1])["rows"]


def pixels_of(uri: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def listed(view: Any) -> int:
    return int(re.match(r"[\d,]+", view.locator(".found").inner_text())[0].replace(",", ""))


def test_what_differs_is_marked() -> None:
    assert compared("Oslo", "0sl") == ([("O", 1), ("sl", 0), ("o", 1)], [("0", 1), ("sl", 0)])
    assert compared("a b", "ab") == ([("a", 0), ("␣", 1), ("b", 0)], [("ab", 0)])
    assert compared("", "x") == ([], [("x", 1)])
    assert compared("a\u202eb", "ab")[0] == [("a", 0), ("\\u202e", 1), ("b", 0)]


def test_rows_are_the_mistakes(tmp_path: Path) -> None:
    scores, mistakes = misread(120)
    shown = by_confidence(mistakes)
    write_reading_page(tmp_path / "x.html", "t", scores, shown)
    rows = rows_of(tmp_path / "x.html")
    assert [row[0] for row in rows] == [one.number for one in shown]
    for row, one in zip(rows, shown, strict=True):
        assert f"test/{row[1]}" == one.name
        assert "".join(text for text, _ in row[2]).replace("␣", " ") == one.truth
        assert "".join(text for text, _ in row[3]).replace("␣", " ") == one.read
        assert row[4] == pytest.approx(one.confidence, abs=1e-4)
        assert list(MISTAKES)[row[5]] == one.kind
        assert (SCRIPTS[row[6]], row[7]) == (script_of(one.truth), length_group(len(one.truth)))
        for number in row[8]:
            each = scores.confusions[number]
            assert (each.truth, each.read) in [(edit.truth, edit.read) for edit in edits(one.truth, one.read)]
        np.testing.assert_array_equal(pixels_of(row[10]), one.pixels)


def test_the_page_stays_small_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, mistakes = misread(300)
    write_reading_page(tmp_path / "x.html", "t", scores, mistakes[:10])
    assert f"holds 10 of the {len(mistakes):,} words" in (tmp_path / "x.html").read_text(encoding="utf-8")
    monkeypatch.setattr(reading_page, "MOST_CHARACTERS", 20_000)
    write_reading_page(tmp_path / "x.html", "t", scores, mistakes)
    held = rows_of(tmp_path / "x.html")
    assert 1 <= len(held) < 40
    assert f"holds {len(held)} of" in (tmp_path / "x.html").read_text(encoding="utf-8")
    monkeypatch.undo()
    write_reading_page(tmp_path / "x.html", "t", scores, mistakes)
    assert 'class="left-out"' not in (tmp_path / "x.html").read_text(encoding="utf-8")
    with pytest.raises(Failure, match="nowhere"):
        write_reading_page(tmp_path / "nowhere" / "x.html", "t", scores, mistakes)


@pytest.mark.browser
def test_words_are_chosen_in_every_way(tmp_path: Path, visit: Visit) -> None:
    scores, mistakes = misread(250)
    write_reading_page(tmp_path / "x.html", "misread", scores, by_confidence(mistakes), ["a note about it"])
    view = visit(tmp_path / "x.html")
    assert "A note about it." in view.locator("ul.notes").inner_text()
    assert listed(view) == len(mistakes)
    top = by_confidence(mistakes)[0]
    first = view.locator(".example").first
    assert f"no. {top.number} " in first.inner_text()
    written, read = (first.locator("dd").nth(place).inner_text().replace("␣", " ") for place in range(2))
    assert (written, read) == (top.truth or "(nothing)", top.read or "(nothing)")
    image = first.locator("img")
    assert image.evaluate("one => one.decode().then(() => [one.naturalWidth, one.naturalHeight])") == [40, 16]
    for part in scores.by_script:
        wrong = sum(script_of(one.truth) == part.name for one in mistakes)
        button = view.locator(f'[data-field="script"][data-value="{SCRIPTS.index(part.name)}"]')
        button.click()
        assert listed(view) == wrong
        assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert listed(view) == len(mistakes), "pressed again, it lets go"
    each = scores.confusions[0]
    view.locator('[data-field="confusion"][data-value="0"]').click()
    having = [
        one
        for one in mistakes
        if (each.truth, each.read) in [(edit.truth, edit.read) for edit in edits(one.truth, one.read)]
    ]
    assert listed(view) == len(having) > 0
    view.locator('button[type="reset"]').click()
    view.locator(".found", has_text=f"{len(mistakes)} of").wait_for()
    for number, kind in enumerate(MISTAKES):
        view.locator('[name="kind"]').select_option(str(number))
        assert listed(view) == sum(one.kind == kind for one in mistakes)
    view.locator('[name="kind"]').select_option("")
    group = length_group(4)
    view.locator('[name="size"]').select_option(str(group))
    view.locator('[name="script"]').select_option(str(SCRIPTS.index("latin")))
    both = [one for one in mistakes if len(one.truth) == 4 and script_of(one.truth) == "latin"]
    assert listed(view) == len(both)
    view.locator('button[type="reset"]').click()
    view.locator(".found", has_text=f"{len(mistakes)} of").wait_for()
    view.locator('[name="search"]').fill(f"{top.number - 1}.PNG")
    assert listed(view) == sum(f"{top.number - 1}.png" in one.name for one in mistakes)
    view.locator('[name="search"]').fill(unicodedata.normalize("NFD", "한글날"))
    assert listed(view) == sum("한글날" in one.truth + "\n" + one.read for one in mistakes)
    view.locator('[name="search"]').fill("")
    view.locator('[name="order"]').select_option("unsure")
    assert f"no. {by_confidence(mistakes)[-1].number} " in view.locator(".example").first.inner_text()
    view.locator('[name="order"]').select_option("data")
    assert f"no. {mistakes[0].number} " in view.locator(".example").first.inner_text()
    view.locator('[name="order"]').select_option("long")
    longest = max(len(one.truth) for one in mistakes)
    assert len(view.locator(".example dd").first.inner_text().replace("␣", " ")) == longest
    assert view.locator(".example").count() == 50
    view.locator("nav.pages button", has_text="»").click()
    assert view.locator(".example").count() == (len(mistakes) - 1) % 50 + 1


@pytest.mark.browser
def test_nothing_from_data_is_run_and_nothing_is_fetched(evil: tuple[str, ...], tmp_path: Path, visit: Visit) -> None:
    truth, read = [*evil, "<b>x</b>"], ["a", "b", "c", "d", "<i>y</i>"]
    pixels = np.zeros((8, 8, 3), np.uint8)
    mistakes = [
        Misread(number + 1, evil[number % 4], one, other, 0.5, "several", pixels)
        for number, (one, other) in enumerate(zip(truth, read, strict=True))
    ]
    scores = reading_scores(truth, read, [0.5] * 5)
    write_reading_page(tmp_path / "x.html", evil[0], scores, mistakes, evil)
    view = visit(tmp_path / "x.html")
    assert listed(view) == 5
    shown = view.locator(".examples").inner_text()
    for text in truth:
        assert text in shown.replace("\n", "")
    assert view.evaluate("window.hacked") is None
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.count("<script") == 2, "the data and ours"
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", page)
    assert "default-src 'none'" in page


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(tmp_path: Path, visit: Visit, width: int, scheme: str) -> None:
    scores, mistakes = misread(80, (60, 250))
    long = "x" * 300
    wide = Misread(999, f"{long}.png", long, long[1:], 0.9, "missing", np.zeros((2, 256, 3), np.uint8))
    write_reading_page(tmp_path / "x.html", "제목" * 60, scores, [wide, *mistakes])
    view = visit(tmp_path / "x.html", color_scheme=scheme, viewport={"width": width, "height": 800})
    assert view.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_without_mistakes_it_is_still_a_page(tmp_path: Path, visit: Visit) -> None:
    write_reading_page(tmp_path / "x.html", "t", reading_scores(["a", ""], ["a", ""], [0.9, 0.2]), [])
    view = visit(tmp_path / "x.html")
    assert listed(view) == 0
    assert "Every word was read as it is written" in view.locator("main").inner_text()
    assert "No character was read as another" in view.locator("main").inner_text()
