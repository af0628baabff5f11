"""The page of a ladder: the table, the curves, BLEU by length, the same sentences in every rung, what they looked at.

One file that works offline; everything that comes from data is escaped.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

from jumok.inspect.attention import Attention
from jumok.inspect.html import ATTENTION_SCRIPTS, Languages, attention_block, document, escape
from jumok.inspect.report import differences
from jumok.ladder.pictures import draw_curves, draw_lengths
from jumok.ladder.plan import Plan
from jumok.ladder.results import Results
from jumok.ladder.rungs import Rung
from jumok.ladder.table import INTERVAL, caption, cells, columns

CLASSES = {"BLEU": ' class="main"'}  # what the eye should find first


def page(plan: Plan, results: Results, tutorial: bool) -> str:
    languages = _languages(plan)
    pictures = results.pictures()
    parts = [
        ("table", "Table", _table(plan, results, tutorial)),
        ("curves", "How they learned", _picture(results, draw_curves, "BLEU and loss on held-out data, by update")),
        ("lengths", "By the length of sentences", _lengths(results)),
        ("translations", "The same sentences", _translations(results, languages)),
        ("attention", "What they looked at", _attention(pictures, languages)),
        ("differences", "In what they differ", _differences(results)),
    ]
    links = " ".join(f'<a href="#{name}">{heading}</a>' for name, heading, _ in parts)
    body = "\n".join(
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{heading}</h2>\n{content}\n</section>'
        for name, heading, content in parts
    )
    main = (
        f"<main>\n<header><h1>The ladder: {len(results.rows)} models under one budget</h1>\n"
        f'<nav aria-label="Sections">{links}</nav></header>\n{body}\n</main>'
    )
    scripts = ATTENTION_SCRIPTS if pictures else []
    return document("jumok: the ladder", main, ["page.css", "attention.css", "report.css", "ladder.css"], scripts)


def _languages(plan: Plan) -> Languages:
    grammar = plan.files.grammar
    source, _, target = grammar.partition("-") if grammar else ("", "", "")
    return source, target


def _table(plan: Plan, results: Results, tutorial: bool) -> str:
    names = columns(results, tutorial)
    rows = [_with_intervals(names, cells(row, names)) for row in results.rows]
    notes = "\n".join(f'<p class="note">{escape(line)}</p>' for line in caption(plan, results))
    return f"{_rows([name for name in names if name != INTERVAL], rows)}\n{notes}"


def _with_intervals(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """As HTML, an interval below its score: a page is narrower than a table has room for."""
    found: list[str] = []
    for name, text in zip(names, texts, strict=True):
        if name == INTERVAL:
            found[-1] += f"<small>{escape(text)}</small>"
        else:
            found.append(escape(text))
    return found


def _lengths(results: Results) -> str:
    names = ["words", "sentences", *(row.rung.title for row in results.rows)]
    rows = [
        [group.label, f"{group.sentences:,}", *(f"{group.bleu[row.rung.name]:.1f}" for row in results.rows)]
        for group in results.groups
    ]
    drawn = _picture(results, draw_lengths, "BLEU on the test set by the length of the source sentence")
    numbers = f"<details><summary>The numbers</summary>\n{_rows(names, rows)}\n</details>"
    return f"{drawn}\n{numbers}"


def _translations(results: Results, languages: Languages) -> str:
    """Words that are not in the reference in this place are marked."""
    spoken = [f' lang="{escape(language)}"' if language else "" for language in languages]
    tables = []
    for source, reference, outputs in results.examples():
        rows = [f'<tr><th scope="row">source</th><td{spoken[0]}>{escape(source)}</td></tr>']
        rows.append(f'<tr><th scope="row">reference</th><td{spoken[1]}>{escape(reference)}</td></tr>')
        for title, output in outputs.items():
            marked = differences(output, reference)[0]
            rows.append(f'<tr><th scope="row">{escape(title)}</th><td{spoken[1]}>{marked}</td></tr>')
        tables.append(f'<table class="list examples"><tbody>\n{chr(10).join(rows)}\n</tbody></table>')
    note = (
        '<p>The first seed of each rung. Words that the reference does not have in this place are <mark class="extra">'
        "marked</mark>.</p>"
    )
    return "\n".join([note, *tables])


def _attention(pictures: Sequence[tuple[Rung, Attention]], languages: Languages) -> str:
    if not pictures:
        return '<p class="quiet">None of these rungs attends: RNN, LSTM and GRU have only their final state.</p>'
    block = attention_block([picture for _, picture in pictures], languages, [rung.title for rung, _ in pictures])
    return (
        "<p>The same sentence in each rung that attends, while it wrote its own translation; one that wrote nothing is "
        "left out. RNN, LSTM and GRU are not here: the decoder gets their final state and can look at nothing.</p>\n"
        f"{block}"
    )


def _differences(results: Results) -> str:
    names = ["key", *(row.rung.title for row in results.rows)]
    rows = [[escape(key), *(escape(_value(value)) for value in values)] for key, values in results.differing.items()]
    return f"<p>Every key in which their recipes differ; all others are the same.</p>\n{_rows(names, rows)}"


def _value(value: Any) -> str:
    return "–" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _rows(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already; where it is too wide, it scrolls by itself."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = []
    for title, *others in rows:
        ends = "".join(
            f'<td data-label="{escape(name)}"{CLASSES.get(name, "")}>{cell}</td>'
            for name, cell in zip(names[1:], others, strict=True)
        )
        body.append(f'<tr><th scope="row">{title}</th>{ends}</tr>')
    table = "\n".join(body)
    return (
        f'<div class="wide" tabindex="0"><table class="list"><thead><tr>{head}</tr></thead>\n<tbody>\n{table}\n'
        "</tbody></table></div>"
    )


def _picture(results: Results, draw: Callable[..., bytes], told: str) -> str:
    """An image for light pages and one for dark ones."""
    one, other = (
        f"data:image/svg+xml;base64,{base64.b64encode(draw(results, dark=dark)).decode()}" for dark in (False, True)
    )
    return (
        f'<figure class="picture"><picture><source media="(prefers-color-scheme: dark)" srcset="{other}">'
        f'<img src="{one}" alt="{escape(told)}"></picture></figure>'
    )
