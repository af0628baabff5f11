"""An evaluation as one HTML file that works offline: the scores with their intervals, and the examples behind them.

Four kinds share it: labels (with confusions and calibration), numbers (with a scatter plot), tags, and answers to
questions. A score says how good a model is; what to do about it is seen in the examples, so those that went wrong come
first, and what is pressed in a table above is listed below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumok.data.examples import Answer
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.example_browser import SCRIPT, STYLE, Browser, browser_block, left_out, shown, units, worst_first
from jumok.inspect.html import document, escape
from jumok.inspect.score_plots import reliability, scatter
from jumok.inspect.score_tables import confusion_block, headline_table, label_table, tag_table
from jumok.tasks.answer_scores import AnswerScores, answer_score
from jumok.tasks.label_scores import LabelScores, losses
from jumok.tasks.number_scores import NumberScores
from jumok.tasks.tag_scores import TagScores

FILE_ORDER = ("file", "as in the file")


@dataclass(frozen=True, slots=True)
class LabelRow:
    text: str
    gold: str
    predicted: str
    probability: float  # of the predicted label
    loss: float  # −log p(gold)
    second: str | None = None  # the second text, where two belong together


@dataclass(frozen=True, slots=True)
class NumberRow:
    text: str
    gold: float
    predicted: float
    second: str | None = None


@dataclass(frozen=True, slots=True)
class TagRow:
    words: Sequence[str]
    gold: Sequence[str]
    predicted: Sequence[str]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    question: str
    context: str
    gold: Sequence[Answer]  # none: the context has no answer
    predicted: Answer | None  # None: the model says that there is none
    best: Sequence[tuple[str, float]] = ()  # n best: text ("" for no answer) and probability, the best first


def label_rows(
    texts: Sequence[tuple[str, str | None]],
    gold: Sequence[str],
    probabilities_NC: NDArray[np.floating[Any]],
    labels: Sequence[str],
) -> list[LabelRow]:
    """Rows from what `label_scores` is given, and each example's text and second text."""
    probabilities = np.asarray(probabilities_NC, dtype=np.float64)
    place = {label: number for number, label in enumerate(labels)}
    best, loss = probabilities.argmax(axis=1), losses(np.array([place[label] for label in gold]), probabilities)
    rows = zip(texts, gold, best, probabilities.max(axis=1), loss, strict=True)
    return [LabelRow(text, one, labels[top], float(p), float(cost), other) for (text, other), one, top, p, cost in rows]


# ---------------------------------------------------------------- labels


def write_label_page(
    path: str | Path, title: str, scores: LabelScores, rows: Sequence[LabelRow], language: str = ""
) -> None:
    """`language`: of the texts, as in lang="ko"; "" when not known."""
    place = {label: number for number, label in enumerate(scores.labels)}
    kept = worst_first(
        rows,
        lambda row: (row.gold != row.predicted, row.loss),
        lambda row: len(row.text) + len(row.second or ""),
    )
    data = [
        [number, *_texts(row), place[row.gold], place[row.predicted], round(row.probability, 5), round(row.loss, 4)]
        for number, row in kept
    ]
    wrong = sum(row.gold != row.predicted for row in rows)
    note = left_out(len(kept), sum(row.gold != row.predicted for _, row in kept), wrong, len(rows))
    browser = Browser(
        "labels",
        [("", "all"), ("wrong", "wrong"), ("right", "right")],
        [
            ("", "wrong first, by loss"),
            ("loss", "loss, highest first"),
            ("sure", "most sure first"),
            ("unsure", "least sure first"),
            FILE_ORDER,
        ],
        scores.labels,
    )
    sections = [
        ("scores", "Scores", headline_table(scores.headline(), scores.notes())),
        ("labels", "Labels", label_table(scores)),
        ("confusions", "Confusions", confusion_block(scores)),
        ("calibration", "Calibration", calibration_block(scores)),
        ("examples", "Examples", browser_block(browser, data, note, {"language": language})),
    ]
    write_sections(path, title, f"{scores.count:,} examples, {len(scores.labels)} labels", sections)


def calibration_block(scores: LabelScores) -> str:
    told = (
        "<p>Of the examples that the model is 80 % sure of, 80 % should be right. A bar is the share that was right, "
        "its thin line the 95 % interval, the mark across how sure the model was on average: a bar below its mark "
        "means too sure, one above it too modest. The small bars are the numbers of examples.</p>"
    )
    return f'{told}\n<figure class="plot">{reliability(scores.bins)}</figure>'


# ---------------------------------------------------------------- numbers


def write_number_page(
    path: str | Path, title: str, scores: NumberScores, rows: Sequence[NumberRow], language: str = ""
) -> None:
    kept = worst_first(
        rows, lambda row: abs(row.gold - row.predicted), lambda row: len(row.text) + len(row.second or "")
    )
    data = [[number, *_texts(row), float(f"{row.gold:.6g}"), float(f"{row.predicted:.6g}")] for number, row in kept]
    note = "" if len(kept) == len(rows) else _left_out_numbers(len(kept), len(rows))
    browser = Browser(
        "numbers",
        [("", "all"), ("high", "predicted too high"), ("low", "predicted too low")],
        [
            ("", "largest error first"),
            ("best", "smallest error first"),
            ("true", "highest true value first"),
            FILE_ORDER,
        ],
    )
    plot = scatter([row.gold for row in rows], [row.predicted for row in rows]) if rows else ""
    sections = [
        ("scores", "Scores", headline_table(scores.headline(), scores.notes())),
        (
            "plot",
            "Predicted and true",
            "<p>Each example is a point; on the dotted line the prediction is right.</p>\n"
            f'<figure class="plot">{plot}</figure>',
        ),
        ("examples", "Examples", browser_block(browser, data, note, {"language": language})),
    ]
    write_sections(path, title, f"{scores.count:,} examples", sections)


def _left_out_numbers(kept: int, count: int) -> str:
    return (
        f'<p class="left-out">To stay quick, this page lists {kept:,} of the {count:,} examples: those with the '
        "largest errors. The scores above are of all.</p>"
    )


# ---------------------------------------------------------------- tags


def write_tag_page(path: str | Path, title: str, scores: TagScores, rows: Sequence[TagRow], language: str = "") -> None:
    kept = worst_first(rows, _wrong_words, lambda row: sum(map(len, row.words)) + 4 * len(row.words))
    tags = sorted({tag for row in rows for tag in (*row.gold, *row.predicted)})
    place = {tag: number for number, tag in enumerate(tags)}
    data = [
        [
            number,
            [shown(word) for word in row.words],
            [place[tag] for tag in row.gold],
            [place[tag] for tag in row.predicted],
        ]
        for number, row in kept
    ]
    wrong = sum(_wrong_words(row) > 0 for row in rows)
    note = left_out(len(kept), sum(_wrong_words(row) > 0 for _, row in kept), wrong, len(rows), "sentences")
    browser = Browser(
        "tags",
        [("", "all"), ("wrong", "with a wrong tag"), ("right", "all right")],
        [("", "most wrong words first"), ("share", "largest share wrong first"), ("long", "longest first"), FILE_ORDER],
        tags,
        "tag",
    )
    legend = (
        '<p class="legend">Over each word its gold tag; under it, where that is another, <b class="bad">what the model '
        "said</b>.</p>"
    )
    about = f"{scores.sentences:,} sentences, {scores.words:,} words"
    sections = [
        ("scores", "Scores", headline_table(scores.headline(), scores.notes())),
        ("types", "Types" if scores.spans else "Tags", tag_table(scores)),
        ("examples", "Sentences", legend + browser_block(browser, data, note, {"language": language})),
    ]
    write_sections(path, title, about, sections)


def _wrong_words(row: TagRow) -> int:
    return sum(one != other for one, other in zip(row.gold, row.predicted, strict=True))


# ---------------------------------------------------------------- answers


def write_answer_page(
    path: str | Path, title: str, scores: AnswerScores, rows: Sequence[AnswerRow], language: str = ""
) -> None:
    judged = [
        (
            row,
            *answer_score(
                row.predicted.text if row.predicted else "", [each.text for each in row.gold], scores.language
            ),
        )
        for row in rows
    ]
    kept = worst_first(
        judged,
        lambda each: (not each[1], -each[2]),
        lambda each: len(each[0].question) + len(each[0].context) + sum(len(text) for text, _ in each[0].best),
    )
    contexts: dict[str, int] = {}  # several questions ask about one text: it is held once
    data = []
    for number, (row, exact, f1) in kept:
        context = contexts.setdefault(row.context, len(contexts))
        answers = list(dict.fromkeys(shown(each.text) for each in row.gold))
        marks = sorted({tuple(_stretch(row.context, each)) for each in row.gold})
        said = [shown(row.predicted.text), _stretch(row.context, row.predicted)] if row.predicted else None
        best = [[shown(text), round(float(probability), 4)] for text, probability in row.best]
        data.append([number, shown(row.question), context, answers, marks, said, best, int(exact), round(f1, 4)])
    wrong = sum(not exact for _, exact, _ in judged)
    note = left_out(len(kept), sum(not exact for _, (_, exact, _) in kept), wrong, len(rows), "questions")
    browser = Browser(
        "answers",
        [
            ("", "all"),
            ("wrong", "not exact"),
            ("apart", "nothing shared with the gold"),
            ("right", "exact"),
            ("none", "without an answer"),
        ],
        [("", "wrong first, by F1"), ("sure", "most sure first"), ("unsure", "least sure first"), FILE_ORDER],
    )
    legend = (
        '<p class="legend">In the text: <mark class="gold">gold answer</mark>, <mark class="said">predicted</mark>, '
        '<mark class="both">both</mark>.</p>'
    )
    extra = {"language": language, "contexts": [shown(context) for context in contexts]}
    sections = [
        ("scores", "Scores", headline_table(scores.headline(), scores.notes())),
        ("examples", "Questions", legend + browser_block(browser, data, note, extra)),
    ]
    write_sections(path, title, f"{scores.count:,} questions", sections)


def _stretch(context: str, answer: Answer) -> list[int]:
    return [units(context, answer.start), units(context, answer.start + len(answer.text))]


# ---------------------------------------------------------------- what all need


def _texts(row: LabelRow | NumberRow) -> tuple[str, str | None]:
    return shown(row.text), None if row.second is None else shown(row.second)


def write_sections(path: str | Path, title: str, about: str, sections: Sequence[tuple[str, str, str]]) -> None:
    """A whole page: each section has a name, a heading and its content as HTML."""
    path = Path(path)
    links = " ".join(f'<a href="#{name}">{heading}</a>' for name, heading, _ in sections)
    body = "\n".join(
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{heading}</h2>\n{content}\n</section>'
        for name, heading, content in sections
    )
    main = (
        f'<main>\n<header><h1>{escape(title)}</h1>\n<p class="quiet">{escape(about)}</p>\n'
        f'<nav aria-label="Sections">{links}</nav></header>\n{body}\n</main>'
    )
    with disk_errors_named("writing the page", path, "Choose another place."):
        replace_file(path, document(title, main, ["page.css", STYLE], [SCRIPT]))
