from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.errors import Failure
from jumok.inspect.attention import Attention
from jumok.inspect.html import ATTENTION_SCRIPTS, embed, escape, page, write_page

Make = Callable[..., Attention]
Visit = Callable[..., Any]


class Tags(html.parser.HTMLParser):
    """What a browser would see as elements, and the address-like attributes among them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs


def test_embedded_data_cannot_leave_its_script() -> None:
    data = {"a": "</script><!--<script>&", "b": ["\u2028", "\ud800", "학생"]}
    block = embed("data", data)
    inner = block.removeprefix('<script type="application/json" id="data">').removesuffix("</script>")
    assert not set("<>&") & set(inner)
    assert json.loads(inner) == data


def test_text_from_data_is_escaped() -> None:
    assert escape("<b a='1' b=\"2\">&\x00\u202e") == "&lt;b a=&#x27;1&#x27; b=&quot;2&quot;&gt;&amp;\\x00\\u202e"
    assert escape("می\u200cخواهم") == "می\u200cخواهم"


def test_the_page_has_no_address_and_no_handler(make_attention: Make, evil: tuple[str, ...]) -> None:
    text = page([make_attention(evil, evil), make_attention()], title=evil[0])
    tags = Tags(text)
    assert "img" not in tags.names
    assert tags.names.count("script") == 1 + len(ATTENTION_SCRIPTS)  # the data and ours
    assert not [name for name, _ in tags.attributes if name in ("src", "href", "style") or name.startswith("on")]
    assert "default-src 'none'" in text
    assert "unsafe" not in text
    text.encode("utf-8")


def test_writing_to_a_place_that_is_not_there(make_attention: Make, tmp_path: Path) -> None:
    with pytest.raises(Failure, match="nowhere"):
        write_page(tmp_path / "nowhere" / "x.html", [make_attention()])


@pytest.mark.browser
def test_hovering_shows_the_number(make_attention: Make, tmp_path: Path, visit: Visit) -> None:
    sentences = [make_attention(5, 4, seed=1), make_attention(["the", "책"], ["학생은", "b", "c"], seed=2)]
    write_page(tmp_path / "x.html", sentences)
    view = visit(tmp_path / "x.html")
    for number, attention in enumerate(sentences):
        section = view.locator("section.attention").nth(number)
        assert section.locator("td").count() == attention.weights.size
        for t, s in ((0, 1), (2, 0)):
            section.locator(f'td[data-t="{t}"][data-s="{s}"]').hover()
            said = section.locator(".readout").inner_text()
            assert said == f"{attention.target[t]} looks at {attention.source[s]} {attention.weights[t, s]:.3f}"
    view.locator("h1").hover()
    assert "Point at a cell" in view.locator(".readout").nth(1).inner_text()


@pytest.mark.browser
def test_each_picture_says_which_attention_it_is_and_whose(make_attention: Make, tmp_path: Path, visit: Visit) -> None:
    whose = {"cross": ["source", "output"], "self": ["source", "source"], "causal": ["output", "output"]}
    pictures = [replace(make_attention(), kind=kind, name=f"<b>{kind}</b>, head 3") for kind in whose]
    write_page(tmp_path / "x.html", pictures, languages=("en", "fr"))
    view = visit(tmp_path / "x.html")
    for number, kind in enumerate(whose):
        section = view.locator("section.attention").nth(number)
        assert section.locator("header").inner_text().endswith(f"<b>{kind}</b>, head 3")
        assert section.locator(".line > b").all_inner_texts() == whose[kind]
        spoken = [section.locator(f".line.{line} .chip").first.get_attribute("lang") for line in ("source", "target")]
        assert spoken == ["en" if side == "source" else "fr" for side in whose[kind]]
    introduction = view.locator("main > p").first.inner_text()
    assert all(words in introduction for words in ("of the source, the keys", "itself included", "had written before"))
    write_page(tmp_path / "y.html", pictures[:1])
    assert "itself included" not in visit(tmp_path / "y.html").locator("main > p").first.inner_text()


@pytest.mark.browser
def test_the_colours_follow_the_weights(tmp_path: Path, visit: Visit) -> None:
    weights = np.array([[0.0, 1.0, np.nan]])
    write_page(tmp_path / "x.html", [Attention(("a", "b", "c"), ("x",), weights)])
    cells = visit(tmp_path / "x.html").locator("td")
    colours = [cells.nth(i).evaluate("cell => getComputedStyle(cell).backgroundColor") for i in range(3)]
    assert colours == ["rgb(0, 34, 78)", "rgb(254, 232, 56)", "rgba(0, 0, 0, 0)"]  # the ends of cividis; no number


@pytest.mark.browser
def test_a_click_pins_a_row_until_the_next(make_attention: Make, tmp_path: Path, visit: Visit) -> None:
    attention = make_attention(5, 4, seed=3)
    write_page(tmp_path / "x.html", [attention])
    view = visit(tmp_path / "x.html")
    view.locator('td[data-t="2"][data-s="1"]').click()
    view.locator("h1").hover()
    buttons = view.locator("tbody button")
    pressed = [buttons.nth(i).get_attribute("aria-pressed") for i in range(4)]
    assert pressed == ["false", "false", "true", "false"]
    top = np.argsort(-attention.weights[2])[:3]
    said = view.locator(".readout").inner_text()
    assert said == "query2 looks at " + ", ".join(f"key{s} {attention.weights[2, s]:.3f}" for s in top)
    buttons.nth(2).click()
    view.locator("h1").hover()
    assert view.locator('[aria-pressed="true"]').count() == 0


@pytest.mark.browser
def test_the_keyboard_does_it_all(make_attention: Make, tmp_path: Path, visit: Visit) -> None:
    attention = make_attention(5, 4, seed=4)
    write_page(tmp_path / "x.html", [attention, make_attention()])
    view = visit(tmp_path / "x.html")
    said = view.locator(".readout").first
    view.keyboard.press("Tab")
    assert said.inner_text().startswith("query0 looks at")
    view.keyboard.press("ArrowDown")
    view.keyboard.press("ArrowRight")
    view.keyboard.press("ArrowRight")
    assert said.inner_text() == f"query1 looks at key1 {attention.weights[1, 1]:.3f}"
    view.keyboard.press("Enter")
    assert view.locator("tbody button").nth(1).get_attribute("aria-pressed") == "true"
    view.keyboard.press("Escape")
    assert view.locator('[aria-pressed="true"]').count() == 0
    view.keyboard.press("Tab")  # one stop for each sentence, not one for each row
    assert view.evaluate("document.activeElement.closest('section').dataset.index") == "1"


@pytest.mark.browser
def test_no_text_from_data_is_run(make_attention: Make, evil: tuple[str, ...], tmp_path: Path, visit: Visit) -> None:
    write_page(tmp_path / "x.html", [make_attention(evil, evil)], title=evil[1])
    view = visit(tmp_path / "x.html")
    for cell in view.locator("td").all():
        cell.hover()
    assert view.evaluate("window.hacked") is None
    assert view.locator("img").count() == 0
    shown = [button.inner_text() for button in view.locator("tbody button").all()]
    assert shown == list(evil)


@pytest.mark.browser
def test_the_policy_stops_what_is_not_ours(make_attention: Make, tmp_path: Path, browser: Any) -> None:
    """If a text ever got through the escaping, the browser would still refuse it."""
    text = page([make_attention()]).replace("</main>", "<script>window.hacked = 1</script></main>")
    (tmp_path / "x.html").write_text(text, encoding="utf-8")
    view = browser.new_page()
    view.goto((tmp_path / "x.html").as_uri())
    assert view.evaluate("window.hacked") is None
    assert view.locator("td").count() == 20  # our own script still runs
    view.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1280])
def test_light_dark_and_narrow(make_attention: Make, tmp_path: Path, visit: Visit, width: int) -> None:
    write_page(tmp_path / "x.html", [make_attention(40, 30)], languages=("en", "ko"))
    papers = []
    for scheme in ("light", "dark"):
        view = visit(tmp_path / "x.html", color_scheme=scheme, viewport={"width": width, "height": 800})
        papers.append(view.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert view.evaluate("document.documentElement.scrollWidth") <= width  # only the map itself may scroll
    brightness = [sum(map(int, re.findall(r"\d+", paper))) for paper in papers]
    assert brightness[0] > 600 > 200 > brightness[1]
    assert view.locator("tbody button").first.get_attribute("lang") == "ko"
