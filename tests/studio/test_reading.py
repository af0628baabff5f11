"""The page "Reading": maps, texts and numbers are those of Python; what is no picture is refused in words."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from looked_runs import reader_run
from looking_words import blot_image, digits
from PIL import Image
from playwright.sync_api import expect
from starlette.testclient import TestClient
from studio_server import Studio

from jumok.data.images.raw import RawImage
from jumok.data.rendering.asked import AskedWords
from jumok.inspect.reading_attention import frames_of
from jumok.inspect.reading_drift import drift_of
from jumok.studio.shelf import Shelf

Open = Callable[..., Any]
READY = ".reading-result:not([aria-busy]) .reading-stage"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A reader with position queries, one with a decoder of two layers, and a CTC reader."""
    folder = tmp_path_factory.mktemp("runs")
    made = {
        "queries": reader_run(folder / "queries"),
        "layers": reader_run(folder / "layers", decoder="transformer", decoder_layers=2),
        "ctc": reader_run(folder / "ctc", decoder="ctc"),
    }
    return {name: run.path for name, run in made.items()}


def shelf_with(shelf: Shelf, runs: dict[str, Path]) -> Shelf:
    for name, path in runs.items():
        shelf.add(name, path)
    return shelf


def shelf_of(client: TestClient, runs: dict[str, Path]) -> Shelf:
    return shelf_with(client.app.state.shelf, runs)  # type: ignore[attr-defined]


def ask(client: TestClient, path: str, status: int = 200, **body: Any) -> Any:
    answer = client.post(f"/api/reading/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer


def numbers(answer: Any) -> Any:
    shape = tuple(int(side) for side in answer.headers["X-Shape"].split(","))
    return np.frombuffer(answer.content, "<f4").reshape(shape)


def png(pixels: Any) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def a_word(reader: Any, least: int = 1) -> tuple[str, int, Any]:
    """A word, the number of its picture, and its pixels, in which so many characters are read."""
    words = AskedWords(reader.recipe, reader.charset)
    for _ in range(200):
        text, number = digits(2, 5), random.randrange(1000)
        pixels, _ = words.draw(text, number)
        if len(frames_of(reader, [RawImage("", None, pixels)])[0].characters) >= least:
            return text, number, pixels
    raise AssertionError("nothing is ever read")


def a_picture(reader: Any) -> tuple[Any, RawImage]:
    """One in which something is read: random models see nothing in some."""
    for _ in range(50):
        image = blot_image("blot.png")
        frames = frames_of(reader, [image])[0]
        if frames.characters:
            return frames, image
    raise AssertionError("nothing is ever read")


# ---------------------------------------------------------------- routes


def test_a_drawn_word_is_the_renderers_and_its_maps_are_pythons(client: TestClient, runs: dict[str, Path]) -> None:
    reader = shelf_of(client, runs).load("layers")
    text, number = digits(2, 5), random.randrange(1000)
    pixels, centres = AskedWords(reader.recipe, reader.charset).draw(text, number)
    for view in ({}, {"layer": 1}, {"layer": 0, "head": 1}):
        (frames,) = frames_of(reader, [RawImage("", None, pixels)], **view)  # type: ignore[arg-type]
        told = ask(client, "look", run="layers", text=text, number=number, **view).json()
        assert np.array_equal(numbers(ask(client, "maps", run="layers", text=text, number=number, **view)), frames.maps)
        assert (told["text"], told["drawn"]) == (frames.text, text)
        assert told["confidence"] == frames.confidence
        assert [one["probability"] for one in told["characters"]] == list(frames.confidences)
        if len(frames.text) == len(text):
            assert told["known"]
            assert np.allclose([one["place"] for one in told["characters"]], centres[:, 0])
        picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(told["picture"].split(",")[1]))))
        assert np.array_equal(picture, pixels.repeat(3, axis=2))


def test_heads_come_together(client: TestClient, runs: dict[str, Path]) -> None:
    shelf_of(client, runs)
    word = {"run": "layers", "text": digits(3, 5)}
    answer = ask(client, "heads", **word)
    found = numbers(answer)
    assert answer.headers["X-About"] == '{"places":[[0,0],[0,1],[1,0],[1,1]]}'
    assert np.array_equal(found[2], numbers(ask(client, "maps", **word, layer=1, head=0)))
    assert np.allclose(found.mean(axis=0), numbers(ask(client, "maps", **word)), atol=1e-6)
    assert numbers(ask(client, "heads", run="ctc", text="12")).shape[0] == 0


def test_the_columns_of_a_ctc_reader_become_its_word(client: TestClient, runs: dict[str, Path]) -> None:
    reader = shelf_of(client, runs).load("ctc")
    word = {"run": "ctc", "text": digits(3, 5), "number": random.randrange(100)}
    answer = ask(client, "columns", **word)
    about, found = json.loads(answer.headers["X-About"]), numbers(answer)
    joined = [label for label, before in zip(about["path"], ["", *about["path"]], strict=False) if label != before]
    assert "".join(joined) == ask(client, "look", **word).json()["text"]
    assert about["labels"][0] == ""
    assert found.shape == (len(about["labels"]), reader.model.section.columns)
    assert [about["labels"][best] for best in found.argmax(axis=0)] == about["path"]
    assert (found.sum(axis=0) <= 1 + 1e-5).all()
    assert "no CTC" in ask(client, "columns", 400, run="layers", text="12").json()["error"]["message"]


def test_a_dropped_picture_is_read_as_a_file_is(client: TestClient, runs: dict[str, Path]) -> None:
    reader = shelf_of(client, runs).load("queries")
    frames, image = a_picture(reader)
    drift = drift_of(frames)
    kept = ask(client, "picture", image=png(image.data), name="a <b>.png").json()["picture"]
    told = ask(client, "look", run="queries", picture=kept).json()
    assert (told["text"], told["drawn"], told["known"], told["name"]) == (frames.text, None, False, "a <b>.png")
    assert np.array_equal(numbers(ask(client, "maps", run="queries", picture=kept)), frames.maps)
    assert np.allclose([one["drift"] for one in told["characters"]], drift.widths)
    assert np.allclose([one["centre"] for one in told["characters"]], frames.centres)


def test_what_cannot_be_looked_at_is_refused_in_words(client: TestClient, runs: dict[str, Path]) -> None:
    shelf_of(client, runs)
    for path, body, words in (
        ("look", {"run": "queries", "text": "12é"}, "é (U+00E9"),
        ("look", {"run": "queries", "text": "123456"}, "at most 5"),
        ("look", {"run": "queries", "text": ""}, "write a word"),
        ("look", {"run": "queries", "picture": "0" * 16}, "no longer here"),
        ("look", {"run": "queries", "text": "1", "head": 9}, "head 9"),
        ("look", {"run": "ctc", "text": "1", "layer": 0}, "CTC"),
        ("look", {"run": "en-fr", "text": "1"}, "does not read words"),
        ("look", {"run": "../queries"}, "there is no run"),
        ("picture", {"image": "!!"}, "base64"),
        ("picture", {"image": base64.b64encode(b"<svg onload=alert(1)>" * 9).decode(), "name": "x\n.svg"}, "SVG"),
        ("picture", {"image": ""}, "empty"),
    ):
        message = ask(client, path, 400, **body).json()["error"]["message"]
        assert words in message
        assert "\n" not in message


@pytest.mark.full
def test_hostile_pictures(client: TestClient, runs: dict[str, Path]) -> None:
    """Cut off, too large, animated, deep, tiny: refused in words, or read."""
    shelf_of(client, runs)
    good = base64.b64decode(png(np.random.default_rng().integers(0, 256, (60, 90, 3), np.uint8)))
    header = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(header, "PNG")
    for data, words in (
        (good[: len(good) // 2], "cut off"), (good[:40], "PNG"), (header.getvalue(), "pixels"), (bytes(100), "zeros"),
        (random.randbytes(3000), "not an image"), (b"%PDF-1.4" + bytes(50), "PDF"), (b"GIF89a" + bytes(20), "GIF"),
    ):  # fmt: skip
        message = ask(client, "picture", 400, image=base64.b64encode(data).decode(), name="x").json()["error"][
            "message"
        ]
        assert words in message
    for size, mode in (((1, 1), "RGB"), ((2000, 3), "L"), ((3, 2000), "RGBA"), ((40, 30), "P"), ((40, 30), "I;16")):
        buffer = io.BytesIO()
        Image.new(mode, size).save(buffer, "PNG")
        kept = ask(client, "picture", image=base64.b64encode(buffer.getvalue()).decode()).json()["picture"]
        for run in runs:
            told = ask(client, "look", run=run, picture=kept).json()
            assert told["size"] == [size[1], size[0]]
            assert numbers(ask(client, "maps", run=run, picture=kept)).shape[0] == len(told["text"])


# ---------------------------------------------------------------- in the browser


def test_the_pages_numbers_are_pythons(studio: Studio, runs: dict[str, Path], open_page: Open) -> None:
    reader = shelf_with(studio.shelf, runs).load("queries")
    text, number, pixels = a_word(reader)
    (frames,) = frames_of(reader, [RawImage("", None, pixels)])
    page = open_page(f"#/reading?run=queries&text='{text}&n={number}&at=0")
    page.wait_for_selector(READY)
    shown = page.evaluate("Array.from(document.querySelector('.reading-stage').maps.data)")
    assert np.array_equal(np.array(shown, np.float32), frames.maps.ravel())
    assert page.locator(".reading-text").inner_text() == frames.text
    assert page.locator(".reading-chip-sure").all_inner_texts() == [f"{100 * p:.1f} %" for p in frames.confidences]
    rows = page.locator(".reading-numbers tbody tr")
    page.locator(".reading-numbers summary").click()
    assert rows.nth(0).locator("td").nth(1).inner_text() == f"{frames.maps[0].max():.4f}"
    # the keyboard steps, and the address follows
    page.locator(".reading-film").focus()
    page.keyboard.press("End")
    last = len(frames.characters) - 1
    assert f"at={last}" in page.url
    assert page.locator(".reading-facts dd").nth(2).inner_text() == f"{frames.maps[last].max():.3f}"
    # pointing tells the weight of the cell
    height, width = frames.maps.shape[1:]
    row, column = random.randrange(height), random.randrange(width)
    box = page.locator(".reading-stage").bounding_box()
    page.mouse.move(box["x"] + box["width"] * (column + 0.5) / width, box["y"] + box["height"] * (row + 0.5) / height)
    weight = float(frames.maps[last, row, column])
    assert float(page.locator(".reading-pointed").inner_text().replace("−", "-")) == pytest.approx(weight, abs=6e-4)
    # and so do the arrow keys on the picture, which leave the character as it is
    page.mouse.move(0, 0)
    page.locator(".reading-stage").focus()
    for key, cell in (("ArrowDown", (0, 0)), ("ArrowRight", (0, 1)), ("ArrowLeft", (0, 0)), ("ArrowUp", (0, 0))):
        page.keyboard.press(key)
        told = page.locator(".reading-pointed").inner_text()
        assert float(told.replace("e−", "e-")) == pytest.approx(float(frames.maps[last][cell]), abs=6e-4)
        assert page.locator(".reading-side [aria-live]").text_content() == f"{cell[0]}, {cell[1]}: {told}"
    assert f"at={last}" in page.url


@pytest.mark.full
def test_a_picture_is_dropped_and_a_hostile_one_refused(
    studio: Studio, runs: dict[str, Path], open_page: Open, tmp_path: Path
) -> None:
    reader = shelf_with(studio.shelf, runs).load("queries")
    frames, image = a_picture(reader)
    Image.fromarray(image.data).save(tmp_path / "<img src=x>.png")
    (tmp_path / "bad.png").write_bytes(b"<html>no</html>")
    text, number, _ = a_word(reader)
    page = open_page(f"#/reading?run=queries&text='{text}&n={number}&at=0")
    page.wait_for_selector(READY)
    page.locator("input[type=file]").set_input_files(tmp_path / "<img src=x>.png")
    page.wait_for_url(lambda url: "picture=" in url)
    expect(page.locator(".reading-text")).to_have_text(frames.text)
    assert page.locator(".reading-chosen").inner_text() == "Your picture: <img src=x>.png"
    link = page.url
    page.complaints.clear()
    page.locator("input[type=file]").set_input_files(tmp_path / "bad.png")
    expect(page.locator(".reading-message")).to_contain_text("web page")
    assert page.locator(".reading-text").inner_text() == frames.text  # what was there stays
    page.complaints.clear()  # the refusal itself
    again = open_page(link[link.index("#") :])  # the link reproduces the view
    assert again.locator(".reading-text").inner_text() == frames.text


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("run", ["layers", "ctc"])
def test_everybody_can_use_it(
    studio: Studio,
    runs: dict[str, Path],
    open_page: Open,
    axe: Callable[[Any], None],
    theme: str,
    language: str,
    run: str,
) -> None:
    text, number, _ = a_word(shelf_with(studio.shelf, runs).load(run))
    for viewport in ({"width": 1280, "height": 800}, {"width": 390, "height": 844}):
        page = open_page(
            f"#/reading?run={run}&text='{text}&n={number}&at=0", language=language, theme=theme, viewport=viewport
        )
        page.wait_for_selector(READY)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        axe(page)
        words = page.locator("h1").inner_text()
        assert words == {"en": "Reading", "ko": "글자 읽기"}[language]
    assert page.locator(".reading-columns").count() == (run == "ctc")
    assert page.locator(".reading-heads button").count() == (4 if run == "layers" else 0)


@pytest.mark.full
def test_the_film_plays_once_and_a_head_is_chosen(studio: Studio, runs: dict[str, Path], open_page: Open) -> None:
    reader = shelf_with(studio.shelf, runs).load("layers")
    text, number, pixels = a_word(reader, 2)
    page = open_page(f"#/reading?run=layers&text='{text}&n={number}&speed=4")
    page.wait_for_selector(READY)
    count = page.locator(".reading-chips").first.locator("button").count()
    page.wait_for_url(lambda url: f"at={count - 1}" in url)  # to the end
    assert page.locator(".reading-play").inner_text() == "▶ Play"
    page.locator(".reading-heads button").nth(3).click()
    expect(page.locator(".reading-heads button").nth(3)).to_have_attribute("aria-pressed", "true")
    assert "layer=1" in page.url
    assert "head=1" in page.url
    (frames,) = frames_of(reader, [RawImage("", None, pixels)], 1, 1)
    shown = page.evaluate("Array.from(document.querySelector('.reading-stage').maps.data)")
    assert np.array_equal(np.array(shown, np.float32), frames.maps.ravel())
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"  # the focus stays
