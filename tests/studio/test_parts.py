"""The parts that all pages share: maps with their numbers, tokens and numbers as people read them, the address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from studio_server import NUMBERS, Studio, click_cell

pytestmark = pytest.mark.browser
Open = Callable[..., Any]


def said(value: float) -> str:
    return "0" if value == 0 else f"{value:.3f}".replace("-", "−")


def test_matrix_tells_the_numbers_of_python(scratch: Studio, open_page: Open, seed: int) -> None:
    page = open_page("#/lessons")
    for row, column in np.random.default_rng(seed).integers(6, size=(4, 2)).tolist():
        page.keyboard.press("Escape")
        click_cell(page, row, column)
        assert page.locator(".readout .at .number").text_content() == said(NUMBERS[row, column])
        page.mouse.move(0, 0)


@pytest.mark.full
def test_matrix_pins_by_mouse_and_keyboard(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons")
    click_cell(page, 1, 2)
    click_cell(page, 4, 0, "Shift")
    page.mouse.move(0, 0)
    pins = page.locator(".readout .pin .number")
    assert pins.all_text_contents() == [said(NUMBERS[1, 2]), said(NUMBERS[4, 0])]
    page.focus(".matrix .frame")
    page.keyboard.press("Escape")
    assert pins.count() == 0
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert pins.all_text_contents() == [said(NUMBERS[1, 1])]
    for key in ("ArrowRight", "Shift+Enter"):
        page.keyboard.press(key)
    assert pins.all_text_contents() == [said(NUMBERS[1, 1]), said(NUMBERS[1, 2])]
    page.keyboard.press("Enter")
    assert pins.count() == 1


def test_hostile_tokens_are_text(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons?text=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    shown_as = page.locator("#tokens bdi").all_text_contents()
    assert shown_as[0] == "<b>the</b>"
    assert shown_as[2] == "⟨202E⟩evil⟨0007⟩"
    assert shown_as[3] == "주목␣"
    assert shown_as[4] == "∅"
    assert shown_as[5] == "<img src=x onerror=alert(1)>"
    assert page.locator("#tokens b, #tokens img").count() == 0


@pytest.mark.full
def test_numbers_as_people_read_them(studio: Studio, open_page: Open) -> None:
    page = open_page("#/train")
    expected = {
        0: "0", 0.123456: "0.123", -0.5: "−0.500", 1.234: "1.23", 12.34: "12.3", 123.4: "123.4", 3: "3",
        1234567: "1.23e6", 0.00012: "1.20e−4", -1e-9: "−1.00e−9",
    }  # fmt: skip
    told = page.evaluate("async (all) => all.map((await import('./static/text.js')).shown)", list(expected))
    assert told == list(expected.values())


@pytest.mark.full
def test_state_goes_through_the_address_unchanged(studio: Studio, open_page: Open, seed: int) -> None:
    page = open_page("#/train")
    texts = ["", "1", "true", "'", "-0.5e3", "a&b=c#d?e", "한국어 %20", "\u202e\n", "1e999", " 7"]
    values = [
        *texts,
        int(np.random.default_rng(seed).integers(-(10**9), 10**9)),
        float(np.random.default_rng(seed).normal()),
        True,
        False,
    ]
    state = {f"k{index}": value for index, value in enumerate(values)}
    page.evaluate(
        """async (state) => { const { read, write } = await import('./static/state.js');
        globalThis.back = read(write("train", {...state, token: "secret"})); }""",
        state,
    )
    assert page.evaluate("globalThis.back") == {"page": "train", "state": state}
