from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jumok.inspect.curve import HEIGHT, MOST_POINTS, WIDTH, curve_block, panels, short, ticks


def train(step: Any, **values: Any) -> dict[str, Any]:
    return {"event": "train", "step": step, **values}


def valid(step: Any, **values: Any) -> dict[str, Any]:
    return {"event": "valid", "step": step, **values}


def test_each_quantity_has_its_panel() -> None:
    events = [
        train(10, loss=5.0, learning_rate=0.001, tokens_per_second=900.0),
        train(20, loss=4.0, learning_rate=0.002, tokens_per_second=950.0),
        valid(20, loss=4.5, bleu=12.5, chrf=30.0, best=True),
        {"event": "plan", "step": 20, "updates": 100},
    ]
    found = {panel.title: {series.name: series.finite for series in panel.series} for panel in panels(events)}
    assert found == {
        "Loss": {"training": [(10, 5.0), (20, 4.0)], "held-out": [(20, 4.5)]},
        "Scores on held-out data": {"BLEU": [(20, 12.5)], "chrF": [(20, 30.0)]},
        "Learning rate": {"learning rate": [(10, 0.001), (20, 0.002)]},
        "Speed": {"tokens per second": [(10, 900.0), (20, 950.0)]},
    }


def test_speed_is_told_in_what_is_counted() -> None:
    block = curve_block([train(10, tokens_per_second=900.0), train(20, tokens_per_second=950.0)], "values")
    assert "values per second" in block
    assert "tokens per second" not in block


def test_what_is_missing_or_no_number_is_left_out() -> None:
    events: list[Any] = [
        train(1, loss=math.nan),
        train(2, loss=None),
        train(3, loss="high"),
        train(None, loss=1.0),
        train("4", loss=1.0),
        train(5, loss=2.0),
        {"event": "train"},
        "not an event",
        valid(6, loss=math.inf),
    ]
    (loss,) = panels(events)
    assert [(series.name, series.finite) for series in loss.series] == [("training", [(5, 2.0)])]
    assert "No training steps" in curve_block([])
    assert "No training steps" in curve_block([valid(1, loss=math.nan)])


def test_a_gap_stays_a_gap() -> None:
    events = [train(step, loss=None if step == 3 else 1.0) for step in range(1, 7)]
    svg = curve_block(events)
    lines = re.findall(r'<polyline class="first" points="([^"]*)"', svg)
    assert [len(line.split()) for line in lines] == [2, 3]


def test_long_runs_are_thinned_to_their_means() -> None:
    events = [train(step, loss=float(step % 2)) for step in range(1, 10_001)]
    (loss,) = panels(events)
    points = loss.series[0].finite
    assert len(points) <= MOST_POINTS
    assert points[-1][0] == 10_000
    assert all(0.4 < value < 0.6 for _, value in points)


NUMBERS = st.one_of(st.none(), st.floats(), st.integers(-10, 10**9))


@given(st.lists(st.builds(train, NUMBERS, loss=NUMBERS, learning_rate=NUMBERS), max_size=6))
def test_any_numbers_give_well_formed_pictures_inside_their_frame(events: list[dict[str, Any]]) -> None:
    block = curve_block(events)
    for svg in re.findall(r"<svg.*?</svg>", block, re.DOTALL):
        root = ElementTree.fromstring(svg)
        assert not re.search(r"nan|inf", svg)
        for dot in root.iter("circle"):
            assert 0 <= float(dot.attrib["cx"]) <= WIDTH
            assert 0 <= float(dot.attrib["cy"]) <= HEIGHT


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_ticks_are_few_and_reach_the_highest(highest: float) -> None:
    found = ticks(highest)
    assert found[0] == 0
    assert found[-1] >= highest * 0.999999
    assert 2 <= len(found) <= 8


def test_short_numbers() -> None:
    assert [short(value) for value in (0, 0.0005, 2.5, 999, 1500, 2e6)] == ["0", "0.0005", "2.5", "999", "1.5k", "2M"]


def test_the_smallest_number_there_is_has_ticks() -> None:
    assert ticks(5e-324) == [0.0, 1.0]
