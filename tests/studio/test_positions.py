"""The page "positions": formulas and what runs have learned, with the numbers that Python has."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ct2_runs import small_run
from image_runs import image_run
from starlette.testclient import TestClient
from studio_server import Studio, until

from jumok.inspect.positions import KINDS, Positions, formula, positions_of
from jumok.inspect.vision_weights import position_similarity

Open = Callable[..., Any]


def values(answer: Any) -> np.ndarray[Any, Any]:
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, "<f4").reshape([int(side) for side in answer.headers["X-Shape"].split(",")])


def check(client: TestClient, expected: Positions, **body: Any) -> None:
    for name, array in (("table", expected.table), ("pairs", expected.similarity)):
        assert np.array_equal(values(client.post(f"/api/positions/{name}", json=body)), array, equal_nan=True)
    answer = client.post("/api/positions/curve", json=body)
    within, beyond = expected.by_offset(), expected.by_offset(beyond=True)
    assert np.array_equal(values(answer), np.float32([*within, *beyond]).reshape(-1, 4))
    assert f'"within":{len(within)}' in answer.headers["X-About"]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_formulas(client: TestClient, kind: str) -> None:
    width, length = 2 * random.randint(1, 40), random.randint(2, 60)
    trained = random.randint(1, length + 5)
    body = {"kind": kind, "width": width, "length": length, "trained": trained}
    check(client, formula(kind, width, length, trained), **body)
    told = client.post("/api/positions/list", json=body).json()["positions"]
    assert [(one["kind"], one["length"], one["width"], one["trained"]) for one in told] == [
        (kind, length, width, trained)
    ]


@pytest.mark.parametrize("position", ["learned", "relative"])
def test_numbers_of_a_run(client: TestClient, tmp_path: Path, position: str) -> None:
    shelf = client.app.state.shelf  # type: ignore[attr-defined]
    run = shelf.add(position, small_run(tmp_path / "run", 1, ends=False, position=position).path)
    expected = positions_of(shelf.load(run), 70)
    for number, one in enumerate(expected):
        check(client, one, run=run, length=70, number=number)
    told = client.post("/api/positions/list", json={"run": run, "length": 70}).json()["positions"]
    assert [(one["name"], one["first"], one["reach"]) for one in told] == [
        (one.name, one.first, one.reach) for one in expected
    ]


def test_patches_have_rows_and_columns(client: TestClient, tmp_path: Path) -> None:
    shelf = client.app.state.shelf  # type: ignore[attr-defined]
    run = shelf.add("vit", image_run(tmp_path / "vit", image=[8, 12]).path)
    model = shelf.load(run).model
    pairs = values(client.post("/api/positions/pairs", json={"run": run}))
    assert np.array_equal(pairs.reshape(2, 3, 2, 3), position_similarity(model))
    assert client.post("/api/positions/list", json={"run": run}).json()["positions"][0]["grid"] == [2, 3]
    table = values(client.post("/api/positions/table", json={"run": run}))
    assert np.array_equal(table.reshape(2, 3, -1), model.reader.positions((2, 3)).detach().numpy())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "name a run"),
        ({"run": "en-fr", "kind": "rotary"}, "name a run"),
        ({"run": "en-fr"}, "recurrent"),
        ({"kind": "wavy"}, "no positions"),
        ({"kind": "rotary", "width": 7}, "even"),
        ({"kind": "rotary", "length": 10**9}, "length"),
        ({"kind": "rotary", "width": 10**9}, "width"),
        ({"kind": "rotary", "number": 3}, "counted from 0"),
        ({"kind": "rotary", "trained": 0}, "above zero"),
    ],
)
def test_what_is_not_there_is_refused(client: TestClient, body: dict[str, Any], words: str) -> None:
    answer = client.post("/api/positions/table", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def numbers(page: Any, name: str) -> np.ndarray[Any, Any]:
    return np.float32(page.eval_on_selector(f'.stretched[data-name="{name}"]', "one => [...one.numbers]"))


@pytest.mark.browser
def test_page_shows_the_numbers_of_a_formula(open_page: Open) -> None:
    width, length, trained = 2 * random.randint(2, 30), 8 * random.randint(2, 12), 10
    row, column = random.randrange(length), random.randrange(width)
    state = f"kind=rotary&width={width}&length={length}&trained={trained}&table={row}.{column}."
    page = open_page(f"#/positions?{state}")
    expected = formula("rotary", width, length, trained)
    assert np.array_equal(numbers(page, "table").reshape(length, width), expected.table)
    assert np.array_equal(numbers(page, "pairs").reshape(length, length), expected.similarity)
    told = page.locator(".positions-maps section").first.locator(".readout b").inner_text()
    assert np.isclose(float(told.replace("−", "-")), expected.table[row, column], rtol=6e-3, atol=6e-4)
    page.click(".segment label:text-is('Learned')")
    until(lambda: page.inner_text(".positions-equation").startswith("p(t) = P[t]"))
    assert np.isnan(numbers(page, "table").reshape(length, width)[trained:]).all()
    assert "kind=learned" in page.evaluate("location.hash")


# ---------------------------------------------------------------- everything else


@pytest.mark.full
@pytest.mark.browser
def test_what_a_run_has_learned(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    run = studio.shelf.add("mine", small_run(tmp_path / "run", 1, ends=False, position="learned").path)
    page = open_page(f"#/positions?run={run}&source=run&part=1")
    expected = positions_of(studio.shelf.load(run))[1]
    assert np.array_equal(numbers(page, "table").reshape(expected.table.shape), expected.table, equal_nan=True)
    assert np.array_equal(
        np.float32(page.eval_on_selector(".positions-curve .plot", "one => [...one.numbers]")).reshape(-1, 4),
        np.float32([*expected.by_offset(), *expected.by_offset(beyond=True)]),
    )
    page.click(".segment label:text-is('Formula')")
    page.wait_for_selector("text=sin(t / 10000")
    page.get_by_label("Length", exact=True).press("ArrowRight")
    until(lambda: "length=136" in page.evaluate("location.hash"))


@pytest.mark.full
@pytest.mark.browser
def test_patches_are_seen_from_one(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    run = studio.shelf.add("vit", image_run(tmp_path / "vit", image=[8, 12]).path)
    page = open_page(f"#/positions?run={run}&source=run&patch=1.1.")
    alike = position_similarity(studio.shelf.load(run).model)
    assert np.array_equal(numbers(page, "patch").reshape(2, 3), alike[1, 1])
    page.focus('.stretched[data-name="patch"] [tabindex]')
    page.keyboard.press("ArrowRight")
    assert np.array_equal(numbers(page, "patch").reshape(2, 3), alike[1, 2])


@pytest.mark.full
@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(open_page: Open, axe: Callable[[Any], None], language: str, theme: str) -> None:
    page = open_page("#/positions?kind=learned&table=3.1.&width=banana&length=-4", language=language, theme=theme)
    axe(page)
    assert ("위치" in page.inner_text("#view")) == (language == "ko")


@pytest.mark.full
@pytest.mark.browser
def test_it_fits_a_phone(open_page: Open) -> None:
    page = open_page("#/positions", viewport={"width": 390, "height": 844})
    assert page.eval_on_selector("#view", "one => one.scrollWidth <= one.clientWidth")
