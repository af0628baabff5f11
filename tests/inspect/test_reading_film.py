"""The film as a page: nothing from elsewhere, text stays text, and in a browser it plays, steps and rests."""

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
from looking_words import frames, pointing
from PIL import Image

from jumok.errors import BadInput
from jumok.inspect.reading_attention import CTC, MOST_PICTURES, Frames
from jumok.inspect.reading_drift import drift_of
from jumok.inspect.reading_film import page, write_page
from jumok.inspect.reading_overlay import Box, spread
from jumok.inspect.reading_picture import laid_over

Visit = Callable[..., Any]


def data_of(text: str) -> Any:
    found = re.search(r'id="reading-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def nothing() -> Frames:
    return frames("1", characters=(), confidences=(), maps=np.zeros((0, 2, 8), np.float32), name="empty.png")


def test_the_page_holds_the_maps_and_the_drift() -> None:
    shown = frames("30715")
    text = page([shown])
    (data,) = data_of(text)
    drift = drift_of(shown)
    assert (data["word"], data["grid"], data["box"]) == ("30715", [2, 8], [0, 0, 1, 1])
    for number, frame in enumerate(data["frames"]):
        weights = np.frombuffer(base64.b64decode(frame["map"]), np.uint8).reshape(2, 8) / 255 * frame["most"]
        np.testing.assert_allclose(weights, shown.maps[number], atol=frame["most"] / 255)
        assert frame["drift"] == pytest.approx(drift.widths[number], abs=1e-3)
        assert frame["place"] == pytest.approx((number + 0.5) / 5, abs=1e-4)
        np.testing.assert_allclose(frame["centre"], shown.centres[number], atol=1e-4)
    assert "taken to stand evenly" in text
    assert f"Mean drift {drift.mean:.2f} character widths" in text
    (source,) = re.findall(r'class="source"[^>]*src="data:image/png;base64,([^"]+)"', text)
    with Image.open(io.BytesIO(base64.b64decode(source))) as picture:
        assert np.array_equal(np.asarray(picture), shown.picture)


def test_what_is_said_of_ctc_and_of_known_places() -> None:
    ctc = page([frames("12", grid=(1, 8), about=CTC)])
    assert "CTC: the columns where it was written" in ctc
    assert "This model has no attention" in ctc
    known = page([frames("12", places=np.array([0.2, 0.9]))])
    assert "the pictures were rendered" in known
    assert "taken to stand evenly" not in known
    assert "This model has no attention" not in known


def test_several_pictures_have_an_index() -> None:
    shown = [frames(name="first.png"), nothing(), frames(name="third.png")]
    text = page(shown)
    assert re.findall(r'href="(#picture-\d)"', text) == ["#picture-1", "#picture-2", "#picture-3"]
    assert all(f'id="picture-{number}"' in text for number in (1, 2, 3))
    assert "reads nothing in this picture" in text
    assert "<nav" not in page(shown[:1])
    with pytest.raises(BadInput, match=f"at most {MOST_PICTURES}"):
        page([frames()] * (MOST_PICTURES + 1))
    with pytest.raises(BadInput, match="no picture"):
        page([])


def test_nothing_comes_from_elsewhere_and_text_stays_text(evil: tuple[str, ...]) -> None:
    shown = frames("1", characters=tuple(evil), confidences=(0.5,) * 4, name=evil[0], about=evil[1],
                   maps=frames("1234").maps)  # fmt: skip
    text = page([shown, nothing()])
    assert not re.search(r'(?:src|href|srcset|action)="(?!data:image/png;base64,|#picture-)', text)
    assert "http:" not in text.replace("http-equiv", "")
    assert "https:" not in text
    assert "default-src 'none'" in text
    assert ' style="' not in text  # the policy would not let it
    for word in evil[:2]:
        assert word not in text


def test_a_page_is_written(tmp_path: Path) -> None:
    write_page(tmp_path / "x.html", [frames()])
    assert (tmp_path / "x.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


# ---------------------------------------------------------------- in a browser

RESTING: dict[str, Any] = {"reduced_motion": "reduce"}


def open_film(visit: Visit, folder: Path, shown: list[Frames], **options: Any) -> Any:
    (folder / "x.html").write_text(page(shown), encoding="utf-8")
    view = visit(folder / "x.html", **options)
    view.locator('body[data-ready="yes"]').wait_for()
    return view


def current(view: Any, section: int = 0) -> int:
    chips = view.locator(".reading").nth(section).locator(".characters button")
    marked = [chips.nth(number).get_attribute("aria-current") for number in range(chips.count())]
    assert marked.count("true") == 1
    return marked.index("true")


def pixel(view: Any, x: float, y: float) -> list[int]:
    """Of the first canvas, by shares of its width and height."""
    script = """([x, y]) => {
        const canvas = document.querySelector("canvas");
        const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        pen.drawImage(canvas, -Math.floor(x * canvas.width), -Math.floor(y * canvas.height));
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }"""
    return list(view.evaluate(script, [x, y]))


@pytest.mark.browser
def test_the_canvas_shows_the_map_over_the_picture(tmp_path: Path, visit: Visit) -> None:
    for box in (Box(), Box(0.25, 0, 0.75, 1), Box(0, -0.5, 1, 1.5)):
        shown = frames("1234", size=(24, 60), grid=(3, 10), box=box)
        view = open_film(visit, tmp_path, [shown], **RESTING)
        fine = round(960 / 60)
        enlarged = shown.picture.repeat(fine, axis=0).repeat(fine, axis=1)
        for number in (0, 2):
            view.locator(".characters button").nth(number).click()
            seen = shown.maps[number]
            expected = laid_over(enlarged, spread(seen, box, enlarged.shape[:2]), seen.max()).astype(int)
            for x, y in ((0.05, 0.2), (0.5, 0.1), (0.52, 0.8), (0.95, 0.9), (0.3, 0.5)):
                wanted = expected[int(y * 24 * fine), int(x * 60 * fine)]
                if abs(x - shown.centres[number][0]) > 0.05 and abs(x - drift_of(shown).places[number]) > 0.05:
                    assert abs(np.array(pixel(view, x, y)) - wanted).max() <= 12  # of cividis the page has ten stops


@pytest.mark.browser
def test_keys_buttons_and_pointer_step(tmp_path: Path, visit: Visit, evil: tuple[str, ...]) -> None:
    shown = frames("1", characters=(evil[0], "b", evil[2], " ", "가"), confidences=(0.9, 0.2, 0.8, 0.7, 0.6),
                   maps=frames("12345").maps, name=evil[1])  # fmt: skip
    view = open_film(visit, tmp_path, [shown], **RESTING)
    assert view.evaluate("window.hacked") is None
    assert current(view) == 0
    assert view.locator(".play").inner_text() == "Play"  # who wants little motion starts it
    readout, canvas = view.locator(".readout"), view.locator("canvas")
    assert evil[0] in readout.inner_text()
    canvas.focus()
    canvas.press("ArrowRight")
    canvas.press("ArrowRight")
    assert current(view) == 2
    canvas.press("End")
    assert current(view) == 4
    assert view.get_by_label("One character on").is_disabled()
    canvas.press("ArrowRight")
    assert current(view) == 4
    canvas.press("Home")
    assert current(view) == 0
    view.get_by_label("One character on").click()
    assert current(view) == 1
    drift = drift_of(shown).widths[1]
    said = readout.inner_text()
    assert f"{abs(drift):.2f} character widths" in said
    assert ("to its right" if drift > 0 else "to its left") in said
    chips = view.locator(".characters button")
    chips.nth(3).hover()
    assert current(view) == 3
    assert "␣" in readout.inner_text()
    view.locator("h1").hover()
    assert current(view) == 1  # back where it was
    chips.nth(4).click()
    view.locator("h1").hover()
    assert current(view) == 4  # pressed, it stays
    assert "character 5 of 5" in canvas.get_attribute("aria-label")
    assert view.locator("tr.on th").text_content() == "가"
    assert view.locator(".strip g.on text").text_content() == "가"
    assert "unsure" in (chips.nth(1).get_attribute("class") or "")


@pytest.mark.browser
def test_it_plays_once_and_rests_and_one_film_at_a_time(tmp_path: Path, visit: Visit) -> None:
    shown = [frames("123"), nothing(), frames("4567")]
    view = open_film(visit, tmp_path, shown)
    plays = view.locator(".play")
    assert plays.count() == 2
    assert plays.first.inner_text() == "Pause"  # it begins by itself
    first = view.locator(".reading").first
    assert first.locator(".readout").get_attribute("aria-live") == "off"
    first.locator("select").select_option("4")
    first.locator('.characters li:nth-child(3) [aria-current="true"]').wait_for()
    view.locator(".play", has_text="Pause").wait_for(state="detached")
    assert current(view) == 2
    assert first.locator(".readout").get_attribute("aria-live") == "polite"
    plays.first.click()
    assert current(view) == 0  # from the beginning
    plays.last.click()
    assert [one.inner_text() for one in plays.all()] == ["Play", "Pause"]
    last = view.locator(".reading").last.locator("canvas")
    last.focus()
    last.press("Space")
    assert [one.inner_text() for one in plays.all()] == ["Play", "Play"]
    assert current(view, 2) < 3


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(tmp_path: Path, visit: Visit, scheme: str) -> None:
    long = frames("1" * 40, name="a/very/long/name/" + "x" * 80 + ".png", size=(40, 600))
    options = {**RESTING, "color_scheme": scheme, "viewport": {"width": 360, "height": 740}}
    view = open_film(visit, tmp_path, [long, pointing([0, 3], 4), nothing()], **options)
    assert view.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    view.locator("summary").first.click()
    assert view.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    paper = view.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark")
    strip, canvas = (view.locator(where).first.bounding_box() for where in (".strip", "canvas"))
    assert abs(strip["x"] - canvas["x"]) < 1
    assert abs(strip["width"] - canvas["width"]) < 1  # so that its lines stand below what they are about
