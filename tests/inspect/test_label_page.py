"""Pages of evaluations, in a real browser: what is pressed, typed and chosen decides what is listed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.data.examples import Answer
from jumok.errors import Failure
from jumok.inspect import example_browser
from jumok.inspect.label_page import (
    AnswerRow,
    LabelRow,
    NumberRow,
    TagRow,
    label_rows,
    write_answer_page,
    write_label_page,
    write_number_page,
    write_tag_page,
)
from jumok.tasks.answer_scores import answer_scores
from jumok.tasks.label_scores import LabelScores, label_scores
from jumok.tasks.number_scores import number_scores
from jumok.tasks.tag_scores import tag_scores

Visit = Callable[..., Any]
LABELS = ["부정", "중립", "긍정"]


def made(count: int, labels: list[str] = LABELS, seed: int = 0) -> tuple[LabelScores, list[LabelRow]]:
    chance = np.random.default_rng(seed)
    gold = chance.integers(len(labels), size=count)
    probabilities = chance.dirichlet(np.ones(len(labels)), count)
    probabilities[np.arange(count), gold] += 1.5 / len(labels)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    names = [labels[place] for place in gold]
    texts = [(f"문장 number {place}", f"second {place}" if place % 2 else None) for place in range(count)]
    return label_scores(names, probabilities, labels), label_rows(texts, names, probabilities, labels)


def listed(view: Any) -> int:
    """How many the page says there are."""
    said = view.locator(".found").inner_text()
    return int(re.match(r"[\d,]+", said)[0].replace(",", ""))


def numbers(view: Any) -> list[int]:
    return [int(text.replace(",", "")) for text in view.locator(".example .number").all_inner_texts()]


# ---------------------------------------------------------------- labels


@pytest.mark.browser
def test_a_cell_of_the_matrix_chooses_its_examples(tmp_path: Path, visit: Visit) -> None:
    scores, rows = made(400)
    write_label_page(tmp_path / "x.html", "three labels", scores, rows, "ko")
    view = visit(tmp_path / "x.html")
    assert listed(view) == 400
    for gold in range(3):
        for predicted in range(3):
            cell = view.locator(f'td [data-gold="{gold}"][data-predicted="{predicted}"]')
            cell.click()
            assert listed(view) == scores.confusion[gold, predicted]
            assert cell.get_attribute("aria-pressed") == "true"
            assert view.locator('[aria-pressed="true"]').count() == 1
            said = view.locator(".example").first.inner_text()
            assert LABELS[gold] in said
            assert LABELS[predicted] in said
    cell.click()
    assert listed(view) == 400, "a second press lets go"
    view.locator('th [data-gold="1"]').click()
    assert listed(view) == scores.confusion[1].sum()
    view.locator('th [data-predicted="2"]').click()
    assert listed(view) == scores.confusion[:, 2].sum()


@pytest.mark.browser
def test_search_filters_order_and_pages(tmp_path: Path, visit: Visit) -> None:
    scores, rows = made(400)
    wrong = [row for row in rows if row.gold != row.predicted]
    write_label_page(tmp_path / "x.html", "t", scores, rows)
    view = visit(tmp_path / "x.html")
    view.locator('[name="search"]').fill("NUMBER 37")
    assert listed(view) == 11  # 37 and 370 to 379
    assert view.locator("mark.hit").first.inner_text() == "number 37"
    view.locator('[name="search"]').fill("second 39")
    assert sorted(numbers(view)) == [40, 392, 394, 396, 398, 400]
    view.locator('[name="search"]').fill("no such text")
    assert listed(view) == 0
    assert "nothing fits" in view.locator(".found").inner_text()
    view.locator('button[type="reset"]').click()
    view.locator(".found", has_text="400 of 400").wait_for()
    view.locator('[name="shown"]').select_option("wrong")
    assert listed(view) == len(wrong)
    assert view.locator(".example .bad").count() == min(50, len(wrong))
    view.locator('[name="shown"]').select_option("right")
    assert listed(view) == 400 - len(wrong)
    view.locator('[name="shown"]').select_option("")
    view.locator('[name="order"]').select_option("file")
    assert numbers(view) == list(range(1, 51))
    view.get_by_label("next page").click()
    assert numbers(view) == list(range(51, 101))
    view.get_by_label("last page").click()
    assert numbers(view) == list(range(351, 401))
    assert view.get_by_label("next page").is_disabled()
    orders = {
        "loss": lambda row: -row.loss,
        "sure": lambda row: -row.probability,
        "unsure": lambda row: row.probability,
    }
    for order, key in orders.items():
        view.locator('[name="order"]').select_option(order)
        expected = sorted(range(400), key=lambda place: round(key(rows[place]), 4))[:5]
        shown = [round(key(rows[number - 1]), 3) for number in numbers(view)[:5]]
        assert shown == [round(key(rows[place]), 3) for place in expected], order


@pytest.mark.browser
def test_the_worst_come_first(tmp_path: Path, visit: Visit) -> None:
    scores, rows = made(300)
    write_label_page(tmp_path / "x.html", "t", scores, rows)
    expected = sorted((row for row in rows if row.gold != row.predicted), key=lambda row: -row.loss)[:20]
    assert [rows[number - 1] for number in numbers(visit(tmp_path / "x.html"))[:20]] == expected


@pytest.mark.browser
def test_many_labels_are_a_list_of_confusions(tmp_path: Path, visit: Visit) -> None:
    scores, rows = made(300, [f"intent {place}" for place in range(40)])
    write_label_page(tmp_path / "x.html", "t", scores, rows)
    view = visit(tmp_path / "x.html")
    worst = scores.confusions()
    buttons = view.locator("table.confusion button")
    assert buttons.count() == min(60, len(worst))
    buttons.first.click()
    assert listed(view) == worst[0].count


@pytest.mark.browser
def test_the_scores_and_the_bars(tmp_path: Path, visit: Visit) -> None:
    scores, rows = made(400)
    write_label_page(tmp_path / "x.html", "t", scores, rows)
    view = visit(tmp_path / "x.html")
    table = view.locator("table.headline").inner_text()
    for name, score, interval in scores.headline():
        assert re.search(rf"{re.escape(name)}\s+{re.escape(score)}\s*{re.escape(interval)}", table)
    filled = [each for each in scores.bins if each.count]
    assert view.locator(".plot .bar").count() == len(filled)
    heights = [float(bar.get_attribute("height")) for bar in view.locator(".plot .bar").all()]
    full = max(float(line.get_attribute("y1")) for line in view.locator(".plot .grid").all()) - 12
    assert heights == pytest.approx([max(full * each.accuracy, 0.5) for each in filled], abs=0.11)
    assert view.locator(".plot .small").all_text_contents() == [f"{each.count:,}" for each in filled]


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(tmp_path: Path, visit: Visit, width: int, scheme: str) -> None:
    scores, rows = made(
        200, ["a very long label that will not fit " * 3, *(f"긴 이름표 {place}" for place in range(19))]
    )
    write_label_page(tmp_path / "x.html", "제목" * 60, scores, rows, "ko")
    view = visit(tmp_path / "x.html", color_scheme=scheme, viewport={"width": width, "height": 800})
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    assert view.locator(".example .text").first.get_attribute("lang") == "ko"
    # what is written in the matrix can be read: the contrast that WCAG asks for
    for colours in view.locator(".confusion td button").evaluate_all(
        "all => all.filter(one => one.textContent !== '·').map(one => { const s = getComputedStyle(one);"
        " return [s.color, s.backgroundColor]; })"
    ):
        assert contrast(*colours) >= 4.5, colours


def contrast(one: str, other: str) -> float:
    def brightness(colour: str) -> float:
        parts = [float(part) for part in re.findall(r"[\d.]+", colour)[:3]]
        shares = parts if colour.startswith("color(") else [part / 255 for part in parts]
        linear = [share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, bright = sorted((brightness(one), brightness(other)))
    return (bright + 0.05) / (dark + 0.05)


# ---------------------------------------------------------------- what comes from data


@pytest.mark.browser
def test_no_text_from_data_is_run(evil: tuple[str, ...], tmp_path: Path, visit: Visit) -> None:
    evil = (*evil, '"><img src=x onerror="window.hacked=1">')
    labels = list(evil)
    scores, rows = made(60, labels)
    rows = [
        LabelRow(evil[place % 5], row.gold, row.predicted, row.probability, row.loss, evil[(place + 1) % 5])
        for place, row in enumerate(rows)
    ]
    write_label_page(tmp_path / "labels.html", evil[0], scores, rows, evil[4])
    write_number_page(
        tmp_path / "numbers.html", evil[1], number_scores([1, 2, 3, 4, 5], [2, 2, 4, 4, 5]),
        [NumberRow(text, 1.0, 2.0, text) for text in evil],
    )  # fmt: skip
    tags = [list(evil)], [[evil[1], *evil[1:]]]
    write_tag_page(tmp_path / "tags.html", evil[2], tag_scores(*tags), [TagRow(evil, tags[0][0], tags[1][0])])
    questions = [
        AnswerRow(text, f"before {text} after", [Answer(text, 7)], Answer(text[:3], 7), [(text, 0.5), (text, 0.1)])
        for text in evil
    ]
    write_answer_page(
        tmp_path / "answers.html", evil[3], answer_scores([[text] for text in evil], [text[:3] for text in evil]),
        questions,
    )  # fmt: skip
    for name in ("labels", "numbers", "tags", "answers"):
        view = visit(tmp_path / f"{name}.html")
        for text in evil:
            view.locator('[name="search"]').fill(text)
            assert listed(view) >= 1, f"{name}: {text}"
            assert text in view.locator(".examples").inner_text(), f"{name}: {text}"
        assert view.evaluate("window.hacked") is None
        assert view.locator("img").count() == 0
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert "default-src 'none'" in page
        assert page.count("<script") == 2, "the data and ours"


def test_rows_are_left_out_from_the_right_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, rows = made(300)
    wrong = sum(row.gold != row.predicted for row in rows)
    for most, said in (
        (wrong + 10, f"{wrong + 10} of the 300 examples: all {wrong} wrong ones and 10 of the right ones"),
        (20, f"20 of the 300 examples: the worst 20 of {wrong} wrong ones and 0 of the right ones"),
    ):
        monkeypatch.setattr(example_browser, "MOST_ROWS", most)
        write_label_page(tmp_path / "x.html", "t", scores, rows)
        text = (tmp_path / "x.html").read_text(encoding="utf-8")
        assert said in text
        data = json.loads(re.search(r'id="evaluation-data">(.*?)</script>', text)[1])
        assert len(data["rows"]) == most
        assert sum(row[3] != row[4] for row in data["rows"]) == min(most, wrong)
    monkeypatch.setattr(example_browser, "MOST_ROWS", 300)
    write_label_page(tmp_path / "x.html", "t", scores, rows)
    assert 'class="left-out"' not in (tmp_path / "x.html").read_text(encoding="utf-8")
    monkeypatch.setattr(example_browser, "MOST_CHARACTERS", 500)
    write_label_page(tmp_path / "x.html", "t", scores, rows)
    assert 'class="left-out"' in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_writing_to_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="nowhere"):
        write_label_page(tmp_path / "nowhere" / "x.html", "t", *made(20))


# ---------------------------------------------------------------- numbers, tags, answers


@pytest.mark.browser
def test_numbers_are_sorted_by_error(tmp_path: Path, visit: Visit) -> None:
    true, given = [1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 0.0, 5.0]
    rows = [NumberRow(f"text {place}", *pair) for place, pair in enumerate(zip(true, given, strict=True))]
    write_number_page(tmp_path / "x.html", "t", number_scores(true, given), rows)
    view = visit(tmp_path / "x.html")
    assert numbers(view) == [3, 4, 1, 2]
    assert "−3" in view.locator(".example").first.inner_text()
    view.locator('[name="shown"]').select_option("high")
    assert numbers(view) == [4, 1]
    view.locator('[name="shown"]').select_option("")
    view.locator('[name="order"]').select_option("best")
    assert numbers(view) == [2, 1, 4, 3]
    paths = [path.get_attribute("d") for path in view.locator(".plot .points").all()]
    assert sum(path.count("M") for path in paths) == 4


@pytest.mark.browser
def test_wrong_words_are_marked_with_both_tags(tmp_path: Path, visit: Visit) -> None:
    gold = [["B-PER", "O", "B-LOC"], ["O", "O"]]
    predicted = [["B-PER", "O", "B-ORG"], ["O", "O"]]
    words = [["이순신", "visited", "서울"], ["all", "fine"]]
    rows = [TagRow(*row) for row in zip(words, gold, predicted, strict=True)]
    write_tag_page(tmp_path / "x.html", "t", tag_scores(gold, predicted), rows, "ko")
    view = visit(tmp_path / "x.html")
    assert view.locator(".word").count() == 5
    assert [word.inner_text().split() for word in view.locator(".word.off").all()] == [["B-LOC", "서울", "B-ORG"]]
    assert view.locator(".word").first.inner_text().split() == ["B-PER", "이순신"]
    view.locator('[name="shown"]').select_option("right")
    assert numbers(view) == [2]
    view.locator('[name="shown"]').select_option("")
    for gold_tag, predicted_tag, count in (
        ("B-LOC", "any", 1),
        ("B-LOC", "B-ORG", 1),
        ("B-LOC", "B-PER", 0),
        ("O", "O", 2),
    ):
        view.locator('[name="gold"]').select_option(label=gold_tag)
        view.locator('[name="predicted"]').select_option(label=predicted_tag)
        assert listed(view) == count, (gold_tag, predicted_tag)


@pytest.mark.browser
def test_answers_are_marked_where_they_are(tmp_path: Path, visit: Visit) -> None:
    context = "😀 zero\x00 width; " + "filler " * 200 + "the Denver Broncos won.\nA new line"
    start = context.index("Denver")
    gold, said = Answer("Denver Broncos", start), Answer("Broncos won", start + len("Denver "))
    rows = [
        AnswerRow("Who won?", context, [gold], said, [("Broncos won", 0.7), ("", 0.2)]),
        AnswerRow("Who lost?", context, [], None, [("", 0.9)]),
    ]
    scores = answer_scores([["Denver Broncos"], []], ["Broncos won", ""])
    write_answer_page(tmp_path / "x.html", "t", scores, rows)
    assert (tmp_path / "x.html").read_text(encoding="utf-8").count("filler filler") == 200 - 1 - 99, "held once"
    view = visit(tmp_path / "x.html")
    first = view.locator(".example").first
    marks = {name: first.locator(f"mark.{name}").all_inner_texts() for name in ("gold", "both", "said")}
    assert marks == {"gold": ["Denver "], "both": ["Broncos"], "said": [" won"]}
    assert "width" not in first.locator(".text").inner_text(), "a long text opens where the answer is"
    first.locator(".more").click()
    assert "zero\\x00 width" in first.locator(".text").inner_text()
    assert first.locator("mark.both").inner_text() == "Broncos"
    first.locator("summary").click()
    assert first.locator("li").all_inner_texts() == ["Broncos won (70.0 %)", "no answer (20.0 %)"]
    view.locator('[name="shown"]').select_option("none")
    assert numbers(view) == [2]
    assert "✓ no answer" in view.locator(".example").inner_text()
