"""Any view as PNG, SVG or one offline page, opened again in the browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from studio_server import NUMBERS, Studio, shown

from jumok.studio import assets
from jumok.studio.offline import MARK, modules, offline_page

pytestmark = pytest.mark.browser
VIEW = "#/lessons?text=%3Cimg%20src%3Dx%3E&pin='2.3&head=first"
WORDS = {"png": "Picture (PNG)", "svg": "Drawing (SVG)", "html": "Offline page (HTML)"}


def save(page: Any, kind: str, folder: Path, name: str = "lessons") -> Path:
    page.click(".menu summary")
    with page.expect_download() as told:
        page.click(f"text={WORDS[kind]}")
    assert told.value.suggested_filename == f"jumok-{name}.{kind}"
    path = folder / told.value.suggested_filename
    told.value.save_as(path)
    return path


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_picture_shows_the_view(scratch: Studio, open_page: Callable[..., Any], tmp_path: Path, theme: str) -> None:
    page = open_page(VIEW, theme=theme, viewport={"width": 900, "height": 700})
    page.wait_for_timeout(200)
    path = save(page, "png", tmp_path)
    box = page.locator("#view").bounding_box()
    with Image.open(path) as image:
        assert image.size == (2 * round(box["width"]), 2 * round(box["height"]))
        pixels = np.asarray(image.convert("RGB")).astype(int)
    paper = {"light": (252, 252, 251), "dark": (20, 23, 28)}[theme]
    field = {"light": (10, 10, 250), "dark": (250, 10, 10)}[theme]
    assert np.abs(pixels[2, 2] - paper).max() <= 2
    canvas = page.locator("#coloured").bounding_box()
    x, y = (int(2 * (canvas[side] + canvas[size] / 2 - box[side])) for side, size in (("x", "width"), ("y", "height")))
    assert np.abs(pixels[y, x] - field).max() <= 2  # in its place
    screen = np.asarray(Image.open(_screen(page, tmp_path)).convert("RGB").resize(_half(pixels))).astype(int)
    drawn = np.asarray(Image.open(path).convert("RGB").resize(_half(pixels))).astype(int)
    assert np.abs(screen - drawn).mean() < 4  # what is seen is what is saved


def _screen(page: Any, folder: Path) -> Path:
    page.evaluate("document.querySelector('.notices').remove()")
    page.mouse.move(0, 0)
    page.locator("#view").screenshot(path=folder / "screen.png")
    return folder / "screen.png"


def _half(pixels: np.ndarray[Any, Any]) -> tuple[int, int]:
    return pixels.shape[1] // 2, pixels.shape[0] // 2


@pytest.mark.full
def test_drawing_opens_from_a_file(
    scratch: Studio, open_page: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = open_page(VIEW, viewport={"width": 900, "height": 700})
    page.wait_for_timeout(200)
    path = save(page, "svg", tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert re.search(r'<svg[^>]* width="\d+" height="\d+"', text)
    assert "foreignObject" not in text  # which only browsers draw
    opened = visit(path)
    texts = opened.locator("text").all_text_contents()
    assert "Lessons" in texts
    assert any("36 numbers, 주목" in one for one in texts)
    assert any("<img src=x>" in one for one in texts)  # as text
    assert opened.locator("img").count() == 0
    pictures = opened.eval_on_selector_all("image", "all => all.map(one => one.getAttribute('href'))")
    assert pictures
    assert all(one.startswith("data:image/png") for one in pictures)


@pytest.mark.full
@pytest.mark.parametrize("language", ["en", "ko"])
def test_offline_page_works_without_the_studio(
    scratch: Studio,
    open_page: Callable[..., Any],
    visit: Callable[..., Any],
    tmp_path: Path,
    language: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = scratch.shelf.entries
    monkeypatch.setattr(
        scratch.shelf, "entries", lambda: [*real(), {**real()[0], "name": "private", "title": "private"}]
    )
    page = open_page(VIEW, token=True, viewport={"width": 900, "height": 700})
    path = save(page, "html", tmp_path)
    text = path.read_text(encoding="utf-8")
    assert scratch.settings.token not in text
    assert scratch.url not in text
    assert "private" not in text  # other runs are nobody's business
    opened = visit(path)
    shown(opened)
    if language == "ko":
        opened.click("text=한국어")
        shown(opened)
    words = {"en": "36 numbers, 주목", "ko": "숫자 36개, 주목"}
    assert opened.locator("#heard").text_content() == words[language]
    assert opened.locator("#tokens bdi").last.text_content() == "<img src=x>"
    assert opened.locator(".pin").count() == 1  # the state came along
    assert opened.locator(".pin .number").text_content() == f"{NUMBERS[2, 3]:.3f}".replace("-", "−")
    assert opened.locator("nav a").count() == 1
    before = opened.evaluate("document.documentElement.dataset.theme")
    opened.click(".theme")
    assert opened.evaluate("document.documentElement.dataset.theme") != before
    opened.click("text=Fail")  # what was not on the page cannot be asked for, and that is said
    opened.wait_for_selector(".notice.wrong")
    shown(opened)  # and the page shows again what it holds
    assert opened.locator("#heard").text_content() == words[language]
    assert opened.locator(".notice.wrong").count() == 1


PAGES = ["translate", "attention", "recurrent", "positions", "vision", "reading", "train", "compare", "lessons"]


@pytest.mark.full
@pytest.mark.parametrize("name", PAGES)
def test_every_page_can_be_taken_along(
    studio: Studio, open_page: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    page = open_page(f"#/{name}")
    page.wait_for_timeout(300)
    saw = page.locator("h1").text_content()
    opened = visit(save(page, "html", tmp_path, name))
    shown(opened)
    assert opened.locator("h1").text_content() == saw
    assert opened.locator(".complaint, .notice").count() == 0, opened.locator("#view").text_content()
    assert (tmp_path / f"jumok-{name}.html").stat().st_size < 30_000_000
    with Image.open(save(page, "png", tmp_path, name)) as image:
        assert image.convert("L").getextrema()[0] < 100 < image.convert("L").getextrema()[1]  # ink on paper


KEEP = """async () => {
    const { Recorder, remembering } = await import("/static/asking.js");
    const [recorder, size] = [new Recorder(), 1 << 20];
    const names = () => recorder.answers().map(([question]) => JSON.parse(question)[0]);
    const ask = async (name) => {
        const keep = () => recorder.keep(name, null, { data: new Float32Array(1), shape: [1], about: {} }, size);
        keep();
        return { keep };
    };
    const map = remembering(ask, 40);
    recorder.keep("look", null, { groups: [] }, 1000);
    for (let number = 0; number < 20; number += 1) await map(number);
    const before = [names(), recorder.cut];
    await map(0);  // it is looked at again
    for (let number = 20; number < 40; number += 1) await map(number);
    const between = names();
    await map(5);  // the page still has it, the recorder had let it go
    const again = names();
    for (let number = 100; number < 100 + 30; number += 1) recorder.keep(`said ${number}`, null, {}, size);
    return [before, between, again, names(), recorder.cut, recorder.bytes];
}"""


def test_what_a_view_needs_most_is_kept(studio: Studio, open_page: Callable[..., Any]) -> None:
    """24 MB: the arrays that nobody has looked at for longest go first, and that some are gone is known."""
    page = open_page("#/train")
    (first, cut), between, again, last, cut_then, held = page.evaluate(KEEP)
    assert (first, cut) == (["look", *range(20)], False)
    assert between == ["look", 18, 19, 0, *range(20, 40)]
    assert again == ["look", 19, 0, *range(20, 40), 5]
    assert (cut_then, held) == (True, 24 << 20)
    assert last == [f"said {number}" for number in range(106, 130)]


@pytest.mark.full
def test_an_offline_page_says_what_it_has_not(
    studio: Studio, open_page: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = open_page("#/attention?run=en-fr&text=The+cat+sleeps.")
    page.wait_for_selector(".attention-steps table")
    whole = save(page, "html", tmp_path, "attention").read_text(encoding="utf-8")
    assert '"cut":false' in whole
    (tmp_path / "cut.html").write_text(whole.replace('"cut":false', '"cut":true'), encoding="utf-8")
    opened = visit(tmp_path / "cut.html")
    shown(opened)
    assert "what was looked at longest ago is left out" in opened.locator(".saved").inner_text()
    assert opened.locator(".notice, .complaint").count() == 0
    opened.get_by_label("Sentence").fill("The dog sleeps.")
    opened.keyboard.press("Enter")
    said = "This saved page does not hold that. Open it in jumok studio."
    opened.locator(".notice.wrong", has_text=said).wait_for()
    opened.locator("#view:not([aria-busy]) .matrix").wait_for()  # what it has is still there
    assert opened.get_by_label("Sentence").input_value() == "The cat sleeps."


def test_offline_page_has_all_that_is_imported() -> None:
    for page in (name[6:-3] for name in assets.files() if re.fullmatch(r"pages/[a-z]+\.js", name)):
        text = offline_page(page)
        assert text.count(MARK) == 1
        assert "static/" not in text.split("<script")[0]
        for name, source in modules(["shell.js", f"pages/{page}.js"]):
            for target in re.findall(r"""\b(?:from|import)\s*\(?\s*["']([\w./-]+)["']""", source):
                assert target.removeprefix("studio/") in assets.files(), f"{name} imports {target}"
