"""What people reach and are told: runs that come, numbers by keyboard, errors in their language, old browsers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from looked_runs import translator_run
from studio_server import Studio, holds, shown, until

from jumok import recipe as recipes
from jumok.training.run import RunFolder

pytestmark = [pytest.mark.browser, pytest.mark.full]
Open = Callable[..., Any]
TITLES = "[...document.querySelectorAll('#run option')].map((one) => one.textContent).join()"


def a_run(folder: Path, steps: int) -> RunFolder:
    run = RunFolder.create(folder, recipes.read("demo-transformer"))
    lines = [{"event": "train", "step": step, "loss": 9 / step} for step in range(1, steps + 1)]
    run.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return run


# ---------------------------------------------------------------- runs that come


def test_a_run_that_comes_is_on_every_page(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    page = open_page("#/train")
    page.evaluate("window.same = true")
    studio.shelf.add("came-first", translator_run(tmp_path / "first").path)
    holds(page, f"{TITLES}.includes('came-first')")  # told while the page is open
    page.locator("nav a", has_text="Compare").click()
    holds(page, "document.querySelector('h1').textContent === 'Compare'")
    shown(page)
    assert page.locator("#view option", has_text="came-first").count() > 0
    studio.shelf.add("came-second", translator_run(tmp_path / "second").path)
    page.locator("nav a", has_text="Recurrent").click()
    holds(page, f"{TITLES}.includes('came-second')")
    assert page.evaluate("window.same")  # it was never loaded again


def test_a_checkpoint_that_comes_leaves_what_is_written(
    studio: Studio, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = studio.shelf.entry("en-fr")
    marks = [10, 20]
    heads = [{"kind": "cross", "layers": 2, "heads": 4}]
    monkeypatch.setattr(studio.shelf, "entries", lambda: [{**real, "heads": heads, "checkpoints": list(marks)}])
    page = open_page("#/train?checkpoint=10")
    head = page.locator(".train-look select").last
    assert head.locator("option").all_text_contents()[1:] == ["0", "1", "2", "3"]  # as Python counts
    sentence = page.locator(".train-sentence")
    sentence.fill("half a")
    page.evaluate("window.slider = document.querySelector('.train-slide input')")
    marks.append(30)
    holds(page, "document.querySelector('.train-slide input').max === '2'")
    assert sentence.input_value() == "half a"
    assert page.evaluate("document.activeElement.value") == "half a"
    assert page.evaluate("window.slider.isConnected && window.slider.value") == "0"
    del marks[0]  # the one that was chosen is gone
    holds(page, "window.slider.max === '1' && window.slider.value === '1'")


def test_lines_that_come_twice_are_drawn_once(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    run = a_run(tmp_path / "twice", 29)
    name = studio.shelf.add("twice", run.path)
    page = open_page("#/lessons")
    points = [
        {"kind": "train", "step": step, "values": {"loss": loss}} for step, loss in ((0, 77.0), (29, 77.0), (30, 0.125))
    ]
    told = json.dumps({"run": name, "place": run.metrics.stat().st_size + 1, "points": points})
    page.route(
        "**/api/train/events*",
        lambda route: route.fulfill(body=f"data: {told}\n\n", headers={"Content-Type": "text/event-stream"}),
    )
    page.evaluate("(name) => { location.hash = `#/train?runs=${name}`; }", name)
    holds(page, "document.querySelector('.plot-key')?.textContent.includes('0.125')")
    page.locator(".plot-frame").first.focus()
    page.keyboard.press("Home")
    holds(page, "document.querySelector('.plot-key').textContent.includes('9')")
    assert "77" not in page.locator(".plot-key").first.text_content()


# ---------------------------------------------------------------- numbers by keyboard


def test_vectors_are_read_by_keyboard(studio: Studio, open_page: Open, tmp_path: Path, axe: Any) -> None:
    studio.shelf.add("keyed", translator_run(tmp_path / "small").path)
    page = open_page("#/attention?run=keyed&kind=self&text=The+cat+drinks+milk.")
    page.wait_for_selector(".attention-strip")
    with page.expect_response("**/api/attention/steps") as found:
        page.locator(".attention-query select").select_option(index=1)
    steps = found.value.json()
    said = page.locator(".attention-said").first

    def number(name: str, place: int, value: float) -> None:
        expected = page.evaluate("async (x) => (await import('./static/text.js')).shown(x)", value)
        until(lambda: said.text_content() == f"{name}[{place}] = {expected}")

    page.wait_for_timeout(300)
    assert page.locator(".attention-strip[tabindex='0']").count() == 1  # one stop for all
    page.locator(".attention-strip[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    number("q", 0, steps["q"][0])
    page.keyboard.press("ArrowRight")
    number("q", 1, steps["q"][1])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    number("k", 0, steps["keys"][0]["k"][0])
    assert steps["keys"][0]["key"] in page.evaluate("document.activeElement.ariaLabel")
    assert page.locator(".attention-strip[tabindex='0']").count() == 1
    axe(page)


# ---------------------------------------------------------------- what is told


def test_names_that_every_object_has_are_no_languages(studio: Studio, open_page: Open) -> None:
    page = open_page("#/constructor?lang=constructor")
    assert page.locator("h1").text_content() == "Translate"
    assert page.evaluate("document.documentElement.lang") == "en"


def test_errors_are_korean_or_marked_as_english(studio: Studio, open_page: Open) -> None:
    page = open_page("#/lessons", language="ko")
    told = page.evaluate(
        """async () => {
            const { asker, Recorder } = await import("./static/asking.js");
            const { shellSpeaker } = await import("./static/words.js");
            const { json } = asker(new Recorder(), shellSpeaker("ko"), new AbortController().signal);
            const ask = (path, body) => json(path, body).catch((error) => [error.message, error.lang]);
            return [
                await ask("/api/attention/look", { run: "en-fr", text: " " }),
                await ask("/api/attention/look", { run: "en-f", text: "a" }),
                await ask("/api/attention/look", { run: "en-fr", text: "a".repeat(20001) }),
                await ask("/api/attention/look", { run: "en-fr", text: "a", "{0} {constructor}": 1 }),
            ];
        }"""
    )
    page.complaints.clear()  # the browser tells the console of refused requests
    assert [lang for _, lang in told] == ["ko", "ko", "ko", "en"]
    assert "글이 비어 있습니다" in told[0][0]
    assert told[1][0] == '"en-f" 모델이 없습니다. 혹시 "en-fr"인가요?'
    assert "20000자" in told[2][0]
    assert told[3][0] == "{0} {constructor}: Extra inputs are not permitted"
    page.goto(f"{studio.url}/#/attention?run=en-fr&text=a&target={'le+' * 9000}")
    shown(page)
    assert page.locator(".complaint p").first.get_attribute("lang") == "en"
    page.complaints.clear()


@pytest.mark.parametrize("broken", ["import words from './a.json' wiht {};", None])
def test_a_browser_that_cannot_load_it_is_told_which_can(
    studio: Studio, open_page: Open, browser: Any, broken: str | None
) -> None:
    context = browser.new_context()
    try:
        page = context.new_page()
        page.route(
            "**/static/words.js",
            lambda route: route.fulfill(body=broken, content_type="text/javascript") if broken else route.abort(),
        )
        page.goto(studio.url)
        page.wait_for_selector("text=Firefox 138")
        assert page.locator("text=One moment").is_hidden()
    finally:
        context.close()
    assert open_page().locator("#old").count() == 0
