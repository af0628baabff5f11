"""The page of a ladder: in a real browser, offline."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumok.ladder import scoring
from jumok.ladder.folder import LadderFolder
from jumok.ladder.pictures import draw_curves, draw_lengths
from jumok.ladder.plan import Budget, Plan
from jumok.ladder.report import page
from jumok.ladder.results import Results, results
from jumok.ladder.statistics import Estimate
from jumok.ladder.table import caption

Visit = Callable[..., Any]
EVIL = "<script>window.hacked=1</script> <img src=x onerror='window.hacked=2'>"


@pytest.fixture(scope="module")
def found(climbed: Path, asked: list[str]) -> tuple[Plan, Results]:
    """The ladder that was climbed, from its files alone."""
    from jumok.ladder.plan import Files, plan

    options = dict(zip(asked[1::2], asked[2::2], strict=False))
    files = Files(
        None, *((options[f"--{name}"],) for name in ("source", "target", "valid-source", "valid-target")),
        (options["--test-source"],), (options["--test-target"],),
    )  # fmt: skip
    keys = [word for word in asked if re.match(r"^[a-z_:]+\.[a-z_]+=|^threads=", word)]
    made = plan(files, ["gru", "luong", "transformer"], 2, Budget(updates=6), None, keys, 2)
    return made, results(made, LadderFolder(climbed), made.test_pairs())


def test_the_page_needs_nothing_from_elsewhere(climbed: Path) -> None:
    text = (climbed / "report.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.findall(r"""(?:src|href)=["']?(?!data:|#)[^"'\s>]""", text)


def test_pictures_are_the_same_for_the_same_numbers(found: tuple[Plan, Results]) -> None:
    for draw in (draw_curves, draw_lengths):
        drawn = draw(found[1])
        assert draw(found[1]) == drawn
        assert draw(found[1], dark=True) != drawn
        assert draw(found[1], "png").startswith(b"\x89PNG")


@pytest.mark.browser
def test_the_table_and_the_same_sentence_in_each_model_that_attends(climbed: Path, visit: Visit) -> None:
    numbers = json.loads((climbed / "results.json").read_text(encoding="utf-8"))
    view = visit(climbed / "report.html")
    table = view.locator("section[aria-labelledby=table] tbody tr")
    assert table.count() == 3
    for place, row in enumerate(numbers["rungs"]):
        said = table.nth(place).inner_text()
        assert f"{row['bleu']['score']:.2f}" in said
        assert f"{row['parameters']:,}" in said
    assert "6 updates for every rung" in view.locator("section[aria-labelledby=table]").inner_text()
    drawn = view.locator("section.attention")
    titles = drawn.locator("h3").all_inner_texts()
    assert titles in (["Luong", "Transformer"] * scoring.DRAWN, ["Luong", "Transformer"])
    first, second = (drawn.nth(place).locator(".line.source .chip").all_inner_texts() for place in (0, 1))
    assert first == second  # the same sentence
    drawn.nth(0).locator("td").first.hover()
    assert "looks at" in drawn.nth(0).locator(".readout").inner_text()
    for picture in view.locator("figure.picture img").all():
        assert picture.evaluate("image => image.complete && image.naturalWidth > 100")
    view.locator("summary").click()
    lengths = view.locator("section[aria-labelledby=lengths] tbody tr")
    assert lengths.count() == len(numbers["by_length"])


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1280])
def test_light_dark_and_narrow(climbed: Path, visit: Visit, width: int) -> None:
    papers = []
    for scheme in ("light", "dark"):
        view = visit(climbed / "report.html", color_scheme=scheme, viewport={"width": width, "height": 800})
        papers.append(view.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert view.evaluate("document.documentElement.scrollWidth") <= width
    assert papers[0] != papers[1]


@pytest.mark.browser
@pytest.mark.parametrize("tutorial", [True, False])
def test_the_table_fits_a_window_of_1100_dots(
    found: tuple[Plan, Results], tmp_path: Path, visit: Visit, tutorial: bool
) -> None:
    """With numbers as long as a large ladder has them: what must be scrolled to is not seen."""
    plan, real = found
    wide: dict[str, Any] = {
        "model": "lstm bahdanau 1024×2", "parameters": 123_456_789, "updates": 123_456.0, "minutes": 1234.5,
        "tokens_per_second": 1_234_567.0, "sentences_per_second": 12_345.6, "each": {1: 20.0, 2: 40.0},
        "bleu": Estimate(44.44, 43.3, 45.5), "chrf": Estimate(66.66, 65.5, 67.7), "tutorial": 44.44, "gain": -12.34,
        "p": 0.0001,
    }  # fmt: skip
    file = tmp_path / "x.html"
    shown = replace(real, rows=[replace(row, **wide) for row in real.rows])
    file.write_text(page(plan, shown, tutorial), encoding="utf-8")
    view = visit(file, viewport={"width": 1100, "height": 800})
    assert "−12.34, p < 0.001" in view.locator("section[aria-labelledby=table]").inner_text()
    table = view.locator("section[aria-labelledby=table] .wide")
    assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 0


def test_what_differs_names_layers_and_the_positions_of_a_transformer(found: tuple[Plan, Results]) -> None:
    plan, real = found
    asked = plan.recipes["transformer"]
    for position in ("rotary", "relative"):
        changed = asked.model_copy(update={"model": asked.model.model_copy(update={"position": position})})
        lines = caption(replace(plan, recipes={**plan.recipes, "transformer": changed}), real)
        told = next(line for line in lines if line.startswith("What differs: "))
        each = dict(part.split(": ", 1) for part in told.removeprefix("What differs: ").split("; "))
        assert f"width 16, 1 + 1 layers, positions {position}, " in each["Transformer"]
        assert "width 16, 1 layer, dropout" in each["GRU"]
        assert told.count("positions") == 1


@pytest.mark.browser
def test_no_text_from_data_is_run(found: tuple[Plan, Results], tmp_path: Path, visit: Visit) -> None:
    plan, real = found
    hostile = [replace(one, outputs=[EVIL] * len(one.outputs)) for one in real.scored]
    shown = replace(real, scored=hostile, pairs=[(EVIL, EVIL)] * len(real.pairs))
    file = tmp_path / "x.html"
    file.write_text(page(plan, shown, True), encoding="utf-8")
    view = visit(file)
    assert view.evaluate("window.hacked") is None
    assert view.locator("section[aria-labelledby=translations] img").count() == 0
    assert EVIL.split()[0] in view.locator("section[aria-labelledby=translations]").inner_text()


def test_no_rung_that_attends_and_none_that_does_not(found: tuple[Plan, Results]) -> None:
    plan, real = found
    without = [replace(one, found={**one.found, "attention": []}) for one in real.scored]
    text = page(plan, replace(real, scored=without), False)
    assert "None of these rungs attends" in text
    assert "attention-data" not in text


def test_the_same_sentence_is_the_same_place_in_the_test_set(found: tuple[Plan, Results]) -> None:
    """Luong wrote nothing for the fourth sentence: its picture of the eighth is not shown beside another's fourth."""

    def picture(place: int) -> dict[str, Any]:
        return {"sentence": place, "source": [f"word {place}"], "target": ["x"], "weights": [[1.0]]}

    drawn = {"gru": [], "luong": [picture(7)], "transformer": [picture(3), picture(7)]}
    scored = [replace(one, found={**one.found, "attention": drawn[one.attempt.rung.name]}) for one in found[1].scored]
    shown = [(rung.name, one.source) for rung, one in replace(found[1], scored=scored).pictures()]
    assert shown == [("transformer", ("word 3",)), ("luong", ("word 7",)), ("transformer", ("word 7",))]


def test_a_seed_that_failed_is_named_and_compared_with_nothing(
    found: tuple[Plan, Results], climbed: Path, tmp_path: Path
) -> None:
    plan, whole = found
    shutil.copytree(climbed, tmp_path / "ladder")
    (tmp_path / "ladder" / "luong-1" / "test.json").unlink()
    left = results(plan, LadderFolder(tmp_path / "ladder"), plan.test_pairs())
    gru, luong, transformer = (row.each for row in whole.rows)
    assert [list(row.each) for row in left.rows] == [[1, 2], [2], [1, 2]]
    assert left.rows[1].gain == pytest.approx(luong[2] - gru[2])
    assert left.rows[2].gain == pytest.approx(transformer[2] - luong[2])
    assert any("Luong 1 of 2" in line for line in caption(plan, left))
    assert not any("missing" in line for line in caption(plan, whole))


def test_who_had_fewer_beside_it_is_named_where_the_budget_is_time(found: tuple[Plan, Results]) -> None:
    plan, real = found
    assert "side by side" not in caption(plan, real)[0]
    beside = dict.fromkeys(real.side_by_side, 4) | {"transformer-2": 2}
    for budget, said in ((Budget(minutes=1), True), (Budget(updates=6), False)):
        told = caption(replace(plan, budget=budget), replace(real, side_by_side=beside))[0]
        assert "up to 4 runs side by side" in told
        assert ("2 for Transformer, seed 2: a minute was worth more" in told) == said
