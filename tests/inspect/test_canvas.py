from __future__ import annotations

import base64
import json
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jumok.inspect.all_heads import AllHeads, Kind, Place
from jumok.inspect.canvas import LARGEST, NO_NUMBER, Kept, packed, page, write_heads
from jumok.inspect.forced import Side

Visit = Callable[..., Any]


def side(tokens: list[str], words: list[int | None] | None = None, texts: list[str] | None = None) -> Side:
    return Side(tokens, words or list(range(len(tokens))), texts or tokens)


def made(
    keys: Side, queries: Side, layers: int = 2, heads: int = 3, seed: int = 0, kind: str = "cross", sharp: float = 1.0
) -> Kind:
    """Each layer's mean and its heads, random."""
    random = np.random.default_rng(seed)
    places, maps = [], []
    for layer in range(layers):
        shape = (heads, len(queries.tokens))
        own = random.dirichlet(np.full(len(keys.tokens), sharp), shape).astype(np.float32)
        places += [Place(layer), *(Place(layer, head) for head in range(heads))]
        maps += [own.mean(axis=0), *own]
    return Kind(kind, keys, queries, tuple(places), np.stack(maps))


SOURCE = side(["▁The", "▁stu", "dent", "▁reads", "<eos>"], [0, 1, 1, 2, None], ["The", "student", "reads"])
TARGET = side(["▁학생", "은", "▁읽는다", "<eos>"], [0, 0, 1, None], ["학생은", "읽는다"])


@given(arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=st.floats(0, 1, width=32)))
def test_a_byte_is_half_a_step_off_at_most(weights: Any) -> None:
    step, steps = packed(weights)
    assert steps.max() < NO_NUMBER
    back = step[:, None].astype(np.float64) * steps
    assert (np.abs(back - weights) <= step[:, None] * 0.5 + 1e-7).all()
    assert (np.abs(back - weights) <= 0.5 / 254 + 1e-6).all()  # so never more than this


def test_what_is_no_number_stays_none() -> None:
    step, steps = packed(np.array([[0.5, np.nan], [np.nan, np.inf], [0.0, 0.0]], dtype=np.float32))
    assert steps.tolist() == [[254, NO_NUMBER], [NO_NUMBER, NO_NUMBER], [0, 0]]
    assert np.isfinite(step).all()


def test_the_bytes_on_the_page_are_the_weights() -> None:
    kind = made(SOURCE, TARGET)
    text, kept = page(AllHeads((kind,)))
    block = re.search(r'id="maps-0">([^<]*)</script>', text)
    assert block
    maps = [zlib.decompress(base64.b64decode(line)) for line in block[1].split("\n")]
    assert len(maps) == kept.maps == kept.all_maps == 8
    for bytes_, weights in zip(maps, kind.weights, strict=True):
        step = np.frombuffer(bytes_[: 4 * 4], "<f4")
        steps = np.frombuffer(bytes_[4 * 4 :], np.uint8).reshape(4, 5)
        np.testing.assert_allclose(step[:, None] * steps, weights, atol=0.5 / 254 + 1e-6)
    assert "default-src 'none'" in text
    assert "unsafe" not in text
    assert kept.size == len(text.encode())


def test_a_page_that_would_be_too_large_keeps_the_means_and_the_sharpest_heads() -> None:
    many = side([f"w{i}" for i in range(60)])
    kind = made(many, many, layers=3, heads=4, seed=3)
    kind.weights[2] = np.eye(60)  # layer 0, head 1: as sharp as can be
    shown = AllHeads((kind,))
    whole, all_kept = page(shown)
    assert str(all_kept) == ""
    text, kept = page(shown, largest=all_kept.size - 22_000)
    assert kept.size <= all_kept.size - 22_000
    assert 3 < kept.maps < kept.all_maps == 15
    assert f"{kept.maps} of 15 maps are kept" in text
    assert "of 15 maps are kept" not in whole
    listed = re.search(r'"maps":(\[\[.*?\]\])', text)
    assert listed
    places = {tuple(place) for place in json.loads(listed[1])}
    assert {(0, -1), (1, -1), (2, -1), (0, 1)} <= places


def test_at_least_one_map_is_kept() -> None:
    text, kept = page(AllHeads((made(SOURCE, TARGET),)), largest=1)
    assert kept.maps == 1
    assert "1 of 8 maps" in text
    assert str(Kept(1, 8, 0)).count(f"{LARGEST / 1e6:g} MB") == 1


def test_nothing_of_the_data_is_markup(evil: tuple[str, ...]) -> None:
    text, _ = page(AllHeads((made(side(list(evil)), side(list(evil))),)), title=evil[0])
    assert "<img" not in text
    assert "<script>window" not in text


# ---------------------------------------------------------------- in a browser


def drawn(view: Any) -> Any:
    view.wait_for_selector("#heads[data-drawn]", timeout=30_000)
    return view


def cell(view: Any, rows: int, columns: int, t: int, s: int) -> dict[str, float]:
    """Where a cell is in a small map, whose cells are 38 dots wide and end 4 dots before the frame does."""
    sizes = "(frame => [frame.clientWidth, frame.clientHeight])(document.querySelector('.frame'))"
    width, height = view.evaluate(sizes)
    return {"x": width - 4 - (columns - s - 0.5) * 38, "y": height - 4 - (rows - t - 0.5) * 38}


def dot(view: Any, x: float, y: float) -> list[int]:
    """The colour of a dot of the map; read from a copy, since Chromium complains of a canvas that is read often."""
    script = """([x, y]) => {
      const copy = new OffscreenCanvas(1, 1).getContext("2d");
      copy.drawImage(document.querySelector(".frame canvas"), -Math.floor(x), -Math.floor(y));
      return [...copy.getImageData(0, 0, 1, 1).data];
    }"""
    return list(view.evaluate(script, [x, y])[:3])


def said(view: Any) -> str:
    return view.locator("#heads .readout").inner_text()


def check_number(text: str, query: str, key: str, weight: float) -> None:
    """The readout names both words, and its number is within what it says it may be off."""
    match = re.fullmatch(rf"{re.escape(query)} looks at {re.escape(key)} ([\d.]+) ± ([\d.]+)", text)
    assert match, text
    assert abs(float(match[1]) - weight) <= float(match[2]) + 1e-9
    assert float(match[2]) <= 0.01


@pytest.mark.browser
def test_hover_states_the_number_and_its_rounding(tmp_path: Path, visit: Visit) -> None:
    kinds = (made(SOURCE, TARGET, seed=5), made(SOURCE, SOURCE, seed=6, kind="self"))
    write_heads(tmp_path / "x.html", AllHeads(kinds), languages=("en", "ko"), first=("cross", 1, 2))
    view = drawn(visit(tmp_path / "x.html"))
    assert view.locator("#heads h2").inner_text().startswith("cross attention, layer 1, head 2")
    assert view.locator("#heads .grid canvas").count() == 8
    view.get_by_role("button", name="tokens").click()
    weights = kinds[0].weights[kinds[0].places.index(Place(1, 2))]
    for t, s in ((0, 1), (3, 4), (2, 0)):
        view.locator(".frame").hover(position=cell(view, 4, 5, t, s))
        check_number(said(view), TARGET.tokens[t], SOURCE.tokens[s], weights[t, s])
    view.get_by_role("button", name="words").click()
    view.locator(".frame").hover(position=cell(view, 3, 4, 0, 1))
    check_number(said(view), "학생은", "student", weights[:2, 1:3].sum(axis=1).mean())
    view.get_by_role("button", name="self: source at itself").click()
    view.locator("#heads h2", has_text=re.compile("^self")).wait_for()  # no waiting by script: the policy forbids it
    view.locator(".frame").hover(position=cell(view, 4, 4, 0, 0))
    check_number(said(view), "The", "The", kinds[1].weights[kinds[1].places.index(Place(1, 2))][0, 0])
    assert view.locator(".lines .keys .chip").first.get_attribute("lang") == "en"


@pytest.mark.browser
def test_the_keyboard_does_it_all_and_a_pin_stays_from_head_to_head(tmp_path: Path, visit: Visit) -> None:
    kind = made(side(list("abcde")), side(list("uvwx")), seed=7)
    write_heads(tmp_path / "x.html", AllHeads((kind,)))
    view = drawn(visit(tmp_path / "x.html"))
    view.keyboard.press("Tab")  # brighten
    view.keyboard.press("Tab")  # the maps: one stop for all of them
    view.keyboard.press("ArrowRight")
    view.keyboard.press("ArrowDown")
    assert view.evaluate("document.activeElement.ariaLabel") == "cross attention, layer 1, head 0"
    view.locator(".frame").focus()
    view.keyboard.press("ArrowDown")
    view.keyboard.press("ArrowDown")
    view.keyboard.press("ArrowRight")
    weights = kind.weights[kind.places.index(Place(1, 0))]
    check_number(said(view), "v", "a", weights[1, 0])
    view.keyboard.press("Enter")
    view.keyboard.press("ArrowDown")
    check_number(said(view), "w", "a", weights[2, 0])
    view.locator("h1").hover()
    view.locator("#heads .grid button").last.click()
    assert "layer 1, head 2" in view.locator("#heads h2").inner_text()
    view.locator("h1").hover()
    view.locator(".frame").focus()
    view.keyboard.press("Escape")
    assert said(view).startswith("Point at a cell")
    view.keyboard.press("+")
    view.keyboard.press("-")


@pytest.mark.browser
def test_browsers_without_the_newest_base64_and_those_that_cannot_unpack(tmp_path: Path, visit: Visit) -> None:
    kind = made(SOURCE, TARGET, seed=8)
    write_heads(tmp_path / "x.html", AllHeads((kind,)), first=("cross", 0, 1))
    view = visit(tmp_path / "x.html")
    view.add_init_script("delete Uint8Array.fromBase64")
    view.reload()
    drawn(view).locator(".lines .queries .chip").first.hover()
    assert said(view).startswith("학생은 looks at")
    view.add_init_script("delete globalThis.DecompressionStream")
    view.reload()
    assert "cannot unpack" in view.locator("#heads").inner_text()


@pytest.mark.browser
def test_colours_are_cividis_on_a_fixed_scale(tmp_path: Path, visit: Visit) -> None:
    weights = np.array([[[0.0, 1.0], [0.5, 0.5]]], dtype=np.float32)
    kind = Kind("cross", side(["a", "b"]), side(["x", "y"]), (Place(0),), weights)
    write_heads(tmp_path / "x.html", AllHeads((kind,)))
    view = drawn(visit(tmp_path / "x.html"))

    def colour(t: int, s: int) -> list[int]:
        return dot(view, **cell(view, 2, 2, t, s))

    assert colour(0, 0) == [0, 34, 78]
    assert colour(0, 1) == [254, 232, 56]
    np.testing.assert_allclose(colour(1, 0), [125, 124, 118], atol=3)
    view.locator("input[type=checkbox]").check()
    until = time.monotonic() + 30
    while colour(1, 0)[0] <= 150 and time.monotonic() < until:
        view.wait_for_timeout(20)  # it is drawn with the next frame, whenever that comes
    assert colour(0, 1) == [254, 232, 56]
    assert colour(1, 0)[0] > 150  # √0.5
    assert view.locator(".ticks span").nth(1).evaluate("tick => tick.style.left") == "50%"  # 0.25 stands at the half


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1280])
def test_light_dark_and_narrow(tmp_path: Path, visit: Visit, width: int) -> None:
    many = side([f"word{i}" for i in range(90)])
    write_heads(tmp_path / "x.html", AllHeads((made(many, many, layers=2, heads=12),)))
    papers = []
    for scheme in ("light", "dark"):
        view = drawn(visit(tmp_path / "x.html", color_scheme=scheme, viewport={"width": width, "height": 800}))
        assert view.evaluate("document.documentElement.scrollWidth") <= width
        papers.append(sum(dot(view, 2, 2)))
    assert papers[0] > 600 > 200 > papers[1]


@pytest.mark.browser
def test_no_text_from_data_is_run(evil: tuple[str, ...], tmp_path: Path, visit: Visit) -> None:
    write_heads(tmp_path / "x.html", AllHeads((made(side(list(evil)), side(list(evil))),)), title=evil[1])
    view = drawn(visit(tmp_path / "x.html"))
    view.locator(".lines .queries .chip").first.hover()
    assert view.evaluate("window.hacked") is None
    assert view.locator(".lines .queries .chip").all_inner_texts() == list(evil)


@pytest.mark.browser
@pytest.mark.full
def test_512_tokens_of_12_layers_of_12_heads_are_drawn(tmp_path: Path, visit: Visit) -> None:
    """Every kept map is there and the page says how long it took; benchmarks/attention_page.py prints how long."""
    many = side([f"word{i}" for i in range(512)])
    kept = write_heads(tmp_path / "x.html", AllHeads((made(many, many, 12, 12, sharp=0.01, kind="self"),)))
    assert kept.all_maps == 156
    assert kept.size <= LARGEST
    view = drawn(visit(tmp_path / "x.html"))
    blank = "[...document.querySelectorAll('#heads .grid canvas')].filter(c => c.width < 96).length"
    assert view.locator("#heads .grid canvas").count() == kept.maps
    assert view.evaluate(blank) == 0
    took = view.evaluate("Number(heads.dataset.drawn) - Number(heads.dataset.began)")
    assert took > 0
    print(f"{kept.maps} maps in {took:.0f} ms")
