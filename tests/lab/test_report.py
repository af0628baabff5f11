"""The lab's page, in a real browser, offline."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from jumok.lab import catalogue
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.report import Shown, drawn, flat, lab_page, shown, write_lab_page
from jumok.lab.results import Result, Seed, code_of, write_result

Visit = Callable[..., Any]
EVIL = "<script>window.hacked=1</script><img src=x onerror='window.hacked=2'>&\""


def draw(figure: Any, numbers: Any) -> None:
    axes = figure.subplots()
    axes.plot([each["value"] for each in numbers])
    axes.set_xlabel("seed")


def made(number: int, name: str, text: str = "plain") -> Shown:
    experiment = Experiment(
        number,
        name,
        f"Title {text}",
        f"Source {text}",
        f"About {text}",
        lambda seed, effort: {},
        lambda numbers: [],
        draw,
    )
    seeds = [Seed(seed, 1.5 * seed, {"value": 0.12345 * seed, "list": [1, 2.5], text: text}) for seed in (1, 2)]
    verdicts = [
        Verdict(f"Claim one {text}", True, f"Because {text} 0.5"),
        Verdict("Claim two", False, "Because 0.7", (True, False)),
    ]
    result = Result(name, 1.0, "code", seeds, verdicts, [1, 2])
    return Shown(experiment, result, *drawn(experiment, result.numbers))


def test_a_figure_for_each_paper(tmp_path: Path) -> None:
    shown = made(1, "one")
    brightness = []
    for name, data in (("light", shown.light), ("dark", shown.dark)):
        (tmp_path / f"{name}.png").write_bytes(data)
        brightness.append(float(imread(tmp_path / f"{name}.png")[:3, :3, :3].mean()))
    assert brightness[0] > 0.9 > 0.2 > brightness[1]


def test_numbers_become_rows() -> None:
    numbers: Numbers = {"a": 1, "b": {"c": 0.123456, "d": [1, 2.0, "x"]}, "e": [[1, 2], [3, 4]], "f": None}
    assert list(flat(numbers)) == [
        ("a", "1"), ("b, c", "0.1235"), ("b, d", "1 2 x"), ("e, 0", "1 2"), ("e, 1", "3 4"), ("f", "None"),
    ]  # fmt: skip


def test_nothing_from_data_becomes_an_element() -> None:
    page = lab_page([made(1, "one", EVIL)])
    assert "<script" not in page  # the page needs none
    assert len(re.findall("<img ", page)) == 1
    assert "default-src 'none'" in page
    assert "http" not in re.sub(r"http-equiv|https?://www.w3.org", "", page)


def test_a_page_of_nothing_yet() -> None:
    assert "0 claims in 0 experiments: 0 hold, 0 do not." in lab_page([])


def test_what_lies_in_the_folder_is_shown_if_it_can_be(tmp_path: Path) -> None:
    module = catalogue.find("scaling")
    experiment = catalogue.load(module)
    numbers = json.loads(json.dumps(experiment.measure(1, 0.01)))
    done = Result("scaling", 1.0, "old", [Seed(1, 2.0, numbers)], experiment.judge([numbers]), [1])
    write_result(tmp_path, done, experiment)
    assert [each.result for each in shown(tmp_path)] == [done]
    assert [each.other_code for each in shown(tmp_path)] == [True]
    write_result(tmp_path, replace(done, code=code_of(module)), experiment)
    assert [each.other_code for each in shown(tmp_path)] == [False]
    write_result(tmp_path, replace(done, verdicts=[]), experiment)  # not all of its seeds are there
    assert shown(tmp_path) == []
    write_result(tmp_path, replace(done, seeds=[Seed(1, 2.0, {"other": 1})]), experiment)  # numbers of other code
    assert shown(tmp_path) == []


def test_a_first_look_other_code_and_how_far_seeds_agree_are_marked() -> None:
    plain = made(1, "one")
    page = lab_page([plain])
    assert "Because 0.7 (holds in 1 of 2 seeds alone)" in page
    assert "Because plain 0.5</span>" in page
    assert "first look" not in page
    assert "other code" not in page
    page = lab_page([replace(plain, result=replace(plain.result, effort=0.1), other_code=True)])
    assert "1 of 2 hold, a first look (effort 0.1), measured with other code" in page
    assert "A first look (effort 0.1); measured with other code." in page


def test_only_the_seeds_that_were_judged_are_shown() -> None:
    plain = made(1, "one")
    page = lab_page([replace(plain, result=replace(plain.result, judged=[2]))])
    assert "The numbers of 1 seed<" in page
    assert "seed 2" in page
    assert "seed 1<" not in page


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1280])
def test_in_a_browser_offline_light_dark_and_narrow(tmp_path: Path, visit: Visit, width: int) -> None:
    write_lab_page(tmp_path / "lab.html", [made(3, "three"), made(12, "twelve", EVIL)])
    papers, pictures = [], []
    for scheme in ("light", "dark"):
        view = visit(tmp_path / "lab.html", color_scheme=scheme, viewport={"width": width, "height": 800})
        papers.append(view.evaluate("getComputedStyle(document.body).backgroundColor"))
        image = view.locator("#three img")
        image.evaluate("image => image.decode()")
        assert image.evaluate("image => image.naturalWidth") > 300
        pictures.append(image.evaluate("image => image.currentSrc"))
        assert view.evaluate("document.documentElement.scrollWidth") <= width
    assert pictures[0] != pictures[1]
    brightness = [sum(map(int, re.findall(r"\d+", paper))) for paper in papers]
    assert brightness[0] > 600 > 200 > brightness[1]
    assert view.locator("h2").all_inner_texts() == ["3 · Title plain", f"12 · Title {EVIL}"]
    assert view.locator("#twelve .badge").all_inner_texts() == ["holds", "does not hold"]
    assert "4 claims in 2 experiments: 2 hold, 2 do not." in view.locator("header").inner_text()
    assert view.locator("#twelve .because").first.inner_text() == f"Because {EVIL} 0.5"
    table = view.locator("#three table.numbers")
    assert not table.is_visible()
    view.locator("#three summary").click()
    assert table.locator("tr").nth(1).inner_text().split() == ["value", "0.1235", "0.2469"]
    view.locator("nav a").nth(1).click()
    assert view.url.endswith("#twelve")
    assert view.evaluate("window.hacked") is None
