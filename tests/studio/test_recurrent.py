"""The page "recurrent": gates and states in the page are Python's, stepped through by keyboard."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from looked_runs import translator_run
from starlette.testclient import TestClient
from studio_server import Studio

from jumok.data import grammar
from jumok.inspect.gates import gates_of

RUN = "en-fr"
SHOWN = ".recurrent-maps .stretched"
Open = Callable[..., Any]


def a_sentence(draw: random.Random) -> str:
    return draw.choice(list(grammar.pairs("en", "fr", "test", 40))).source


def values(answer: Any) -> np.ndarray[Any, Any]:
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, "<f4").reshape([int(side) for side in answer.headers["X-Shape"].split(",")])


def test_numbers_are_those_of_the_gates(client: TestClient) -> None:
    text = a_sentence(random.Random())
    expected = gates_of(client.app.state.shelf.load(RUN), text)  # type: ignore[attr-defined]
    told = client.post("/api/recurrent/look", json={"run": RUN, "text": text}).json()
    assert told["tokens"] == list(expected.tokens)
    assert told["kind"] == "lstm"
    for number, (reading, about) in enumerate(zip(expected.readings, told["readings"], strict=True)):
        found = values(client.post("/api/recurrent/states", json={"run": RUN, "text": text, "reading": number}))
        assert about["states"] == list(reading.states())
        for name, state in zip(about["states"], found, strict=True):
            assert np.array_equal(state, reading.states()[name])
        assert np.array_equal(np.float32(about["gradient"]), reading.gradient)
        assert about["distance"] == reading.distance.tolist()
        assert about["difference"] < 1e-4


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("look", {"text": "  "}, "empty"),
        ("look", {"text": "a " * 5000}, "limit"),
        ("states", {"text": "a", "reading": 9}, "counted from 0"),
        ("states", {"text": "a", "reading": -1}, "reading"),
        ("look", {"text": "a", "layer": 1}, "layer"),
        ("look", {"text": "a", "run": "../secret"}, "no run"),
    ],
)
def test_what_cannot_be_read_is_refused(client: TestClient, path: str, body: dict[str, Any], words: str) -> None:
    answer = client.post(f"/api/recurrent/{path}", json={"run": RUN, **body})
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


@pytest.mark.browser
def test_page_shows_the_numbers_and_steps_through_them(studio: Studio, open_page: Open) -> None:
    text = a_sentence(random.Random())
    reading = gates_of(studio.shelf.load(RUN), text).readings[1]
    unit, step = random.randrange(reading.hidden.shape[1]), 1
    page = open_page(f"#/recurrent?text={quote(text)}&backwards=true&unit={unit}&step={step}")
    drawn = page.eval_on_selector_all(SHOWN, "all => all.map((one) => [one.dataset.name, [...one.numbers]])")
    for name, numbers in drawn:
        assert np.array_equal(np.float32(numbers).reshape(-1, len(reading.gradient)).T, reading.states()[name])
    assert len(drawn) == 5
    page.keyboard.press("ArrowRight")
    step += 1
    assert f"step={step}" in page.evaluate("location.hash")
    assert str(unit) in page.inner_text(".recurrent-unit h3")
    # a backward reading was at the next token before
    last = step + 1 == len(reading.gradient)
    before = 0.0 if last or reading.cell is None else float(reading.cell[step + 1, unit])
    kept = float(reading.gates["forget"][step, unit]) * before
    sums = [float(one.replace("−", "-")) for one in page.locator(".recurrent-unit td:last-child").all_inner_texts()]
    assert reading.cell is not None
    expected = [kept, reading.cell[step, unit] - kept, reading.cell[step, unit], reading.hidden[step, unit]]
    assert np.allclose(sums, expected, rtol=6e-3, atol=6e-4)
    told = page.locator(".plot .readout b").inner_text()
    assert np.isclose(float(told.replace("−", "-")), reading.gradient[step], rtol=6e-3, atol=6e-4)
    assert f"{reading.difference:.2e}".split("e")[0] in page.inner_text(".recurrent-badge")


# ---------------------------------------------------------------- everything else


@pytest.mark.full
@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(open_page: Open, axe: Callable[[Any], None], language: str, theme: str) -> None:
    page = open_page("#/recurrent", language=language, theme=theme)
    axe(page)
    assert ("게이트" in page.inner_text("#view")) == (language == "ko")


@pytest.mark.full
@pytest.mark.browser
def test_it_fits_a_phone(open_page: Open) -> None:
    page = open_page("#/recurrent", viewport={"width": 390, "height": 844})
    assert page.eval_on_selector("#view", "one => one.scrollWidth <= one.clientWidth")


@pytest.mark.full
@pytest.mark.browser
@pytest.mark.parametrize("name", ["gru", "rnn"])
def test_other_cells(studio: Studio, open_page: Open, tmp_path: Path, name: str) -> None:
    run = studio.shelf.add(f"my-{name}", translator_run(tmp_path / name, name=name).path)
    text = "the old cat sleeps"
    gates = gates_of(studio.shelf.load(run), text)
    page = open_page(f"#/recurrent?run={run}&text={quote(text)}")
    drawn = page.eval_on_selector_all(SHOWN, "all => all.map((one) => [one.dataset.name, [...one.numbers]])")
    assert [state for state, _ in drawn] == list(gates.readings[0].states())
    for state, numbers in drawn:
        shape = -1, len(gates.tokens)
        assert np.array_equal(np.float32(numbers).reshape(shape).T, gates.readings[0].states()[state])
    page.focus(SHOWN + " [tabindex]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert "unit=" in page.evaluate("location.hash")


@pytest.mark.full
@pytest.mark.browser
def test_tokens_are_text_and_wrong_questions_are_told(open_page: Open) -> None:
    page = open_page(f"#/recurrent?text={quote('<img src=x onerror=alert(1)> ‮cat')}&layer=99&unit=-5&step=1e9")
    assert page.locator(".recurrent-tokens img").count() == 0
    page.fill(".recurrent-ask input", "cat " * 3000)
    page.click(".recurrent-ask button")
    page.wait_for_selector(".notice")
    assert "limit" in page.inner_text(".notice")
    assert len(page.complaints) == 1
    page.complaints.clear()  # the browser tells of the refusal, too
