from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumok.errors import Failure
from jumok.inspect.attention import Attention
from jumok.inspect.report import differences, report, write_report
from jumok.tasks.metrics import Score

Make = Callable[..., Attention]
Visit = Callable[..., Any]

EVENTS: list[dict[str, Any]] = [
    *({"event": "train", "step": step, "loss": 600 / step, "learning_rate": 1e-3} for step in range(100, 1100, 100)),
    {"event": "valid", "step": 500, "loss": 1.75, "bleu": 55.5, "chrf": 60.25},
    {"event": "valid", "step": 1000, "loss": 1.25, "bleu": 91.5, "chrf": 95.25},
]
TRANSLATIONS = [
    ("I am a student", "je suis étudiant", "je suis étudiant"),
    ("he was hungry", "il a faim", "il avait très faim"),
    ("no reference", "sans référence", None),
]
SCORES = [Score("BLEU", 91.234, "nrefs:1|tok:13a|version:2", ""), Score("chrF", 95.5, "nrefs:1|nc:6|version:2", "")]


def write_all(path: Path, attention: Attention) -> None:
    write_report(path, "en → fr", "seed: 1\n", EVENTS, TRANSLATIONS, [attention], SCORES, ("en", "fr"))


def test_the_words_that_differ_are_marked() -> None:
    ours, theirs = differences("il a faim .", "il avait très faim .")
    assert ours == 'il <mark class="extra">a</mark> faim .'
    assert theirs == 'il <mark class="missing">avait très</mark> faim .'
    assert differences("a <b>", "a <i>")[0] == 'a <mark class="extra">&lt;b&gt;</mark>'
    assert differences("", "x") == ("", '<mark class="missing">x</mark>')


def test_parts_that_are_absent_leave_no_trace(make_attention: Make) -> None:
    assert "nothing to report" in report("empty")
    only = report("t", scores=SCORES)
    assert "91.23" in only
    assert not any(word in only for word in ("<script", 'id="training"', 'id="attention"', 'id="recipe"'))
    assert "No training steps" in report("t", curve=[{"event": "train", "step": 1, "loss": math.nan}])
    assert 'id="attention"' in report("t", attentions=[make_attention()])


def test_text_is_escaped_everywhere(make_attention: Make, evil: tuple[str, ...]) -> None:
    text = report(
        evil[0],
        "\n".join(evil),
        EVENTS,
        [(evil[0], evil[1], evil[2]), (evil[1], evil[1], None)],
        [make_attention(evil, evil)],
        [Score(evil[0], 1.0, evil[1], "")],
        (evil[2], evil[2]),
    )
    assert "window.hacked=" not in text.replace("window.hacked=&quot;", "").replace('window.hacked=\\"', "")
    assert "<img" not in text


def test_the_same_run_gives_the_same_report(make_attention: Make, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_all(tmp_path / name, make_attention())
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    with pytest.raises(Failure, match="nowhere"):
        write_all(tmp_path / "nowhere" / "x.html", make_attention())


@pytest.mark.browser
def test_a_reader_finds_everything(make_attention: Make, tmp_path: Path, visit: Visit) -> None:
    attention = make_attention(5, 4, seed=5)
    write_all(tmp_path / "report.html", attention)
    view = visit(tmp_path / "report.html")
    headings = [heading.inner_text() for heading in view.locator("h2").all()]
    assert headings == ["Scores", "Training", "Translations", "Attention", "Recipe"]
    assert view.locator("table.scores tbody tr").first.inner_text().split() == ["BLEU", "91.23", SCORES[0].signature]
    rows = view.locator("section[aria-labelledby=translations] tbody tr")
    assert rows.count() == 3
    assert [mark.inner_text() for mark in rows.nth(1).locator("mark").all()] == ["a", "avait très"]
    assert rows.nth(0).locator("mark").count() == 0
    assert rows.nth(1).locator("td").nth(2).get_attribute("lang") == "fr"
    assert "1 of 2 are word for word" in view.locator("section[aria-labelledby=translations]").inner_text()
    view.locator('td[data-t="1"][data-s="2"]').hover()
    assert view.locator(".readout").inner_text() == f"query1 looks at key2 {attention.weights[1, 2]:.3f}"
    assert not view.locator("pre").is_visible()
    view.locator("summary").click()
    assert view.locator("pre").inner_text().strip() == "seed: 1"


@pytest.mark.browser
def test_the_curve_tells_its_values(make_attention: Make, tmp_path: Path, visit: Visit) -> None:
    write_all(tmp_path / "report.html", make_attention())
    view = visit(tmp_path / "report.html")
    loss = view.locator("figure.curve").first
    caption = loss.locator("figcaption")
    assert caption.inner_text().split() == ["step", "1,000", "training", "0.6", "held-out", "1.25"]
    svg = loss.locator("svg")
    box = svg.bounding_box()
    svg.hover(position={"x": box["width"] * (50 + 416 * 0.51) / 480, "y": box["height"] / 2})
    assert caption.inner_text().split() == ["step", "500", "training", "1.2", "held-out", "1.75"]
    assert loss.locator(".cross").evaluate("line => getComputedStyle(line).visibility") == "visible"
    view.locator("h1").hover()
    assert caption.inner_text().split()[1] == "1,000"
    svg.focus()
    view.keyboard.press("ArrowLeft")
    view.keyboard.press("ArrowLeft")
    assert caption.inner_text().split()[:2] == ["step", "400"]  # from where the pointer had been


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(make_attention: Make, tmp_path: Path, visit: Visit, scheme: str) -> None:
    write_all(tmp_path / "report.html", make_attention(40, 10))
    view = visit(tmp_path / "report.html", viewport={"width": 360, "height": 700}, color_scheme=scheme)
    assert view.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.browser
def test_nothing_from_data_runs(make_attention: Make, evil: tuple[str, ...], tmp_path: Path, visit: Visit) -> None:
    write_report(
        tmp_path / "x.html",
        evil[1],
        "\n".join(evil),
        EVENTS,
        [(evil[0], evil[1], evil[2]), (evil[3], evil[0], None)],
        [make_attention(evil, evil)],
        [Score(evil[0], 1.0, evil[1], "")],
        (evil[2], evil[1]),
    )
    view = visit(tmp_path / "x.html")
    assert view.evaluate("window.hacked") is None
    assert view.locator("img").count() == 0
    assert view.locator("h1").inner_text() == evil[1]
