"""The report of a run: one HTML file with its scores, training curve, translations, attention and recipe."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Attention
from jumok.inspect.curve import curve_block
from jumok.inspect.html import ATTENTION_SCRIPTS, Languages, attention_block, document, escape
from jumok.tasks.metrics import Score


class ExtraSection(NamedTuple):
    """What a task of its own kind has to show."""

    name: str
    heading: str
    content: str  # HTML: what comes from data is escaped already


class Translated(NamedTuple):
    source: str
    translation: str
    reference: str | None = None


def write_report(
    path: str | Path,
    title: str,
    recipe_text: str = "",
    curve: Iterable[Mapping[str, Any]] = (),
    translations: Sequence[tuple[str, str, str | None]] = (),
    attentions: Sequence[Attention] = (),
    scores: Sequence[Score] = (),
    languages: Languages = ("", ""),
    extra: Sequence[ExtraSection] = (),
    counted: str = "tokens",
) -> None:
    """Write the report; parts that are empty are left out. `curve` is what metrics.jsonl holds, one event a line."""
    path = Path(path)
    content = report(title, recipe_text, curve, translations, attentions, scores, languages, extra, counted)
    with disk_errors_named("writing the report", path, "The run itself is not touched."):
        replace_file(path, content)


def report(
    title: str,
    recipe_text: str = "",
    curve: Iterable[Mapping[str, Any]] = (),
    translations: Sequence[tuple[str, str, str | None]] = (),
    attentions: Sequence[Attention] = (),
    scores: Sequence[Score] = (),
    languages: Languages = ("", ""),
    extra: Sequence[ExtraSection] = (),
    counted: str = "tokens",
) -> str:
    """The report as text."""
    events = list(curve)
    sections = [
        ("scores", "Scores", _scores(scores) if scores else ""),
        ("training", "Training", curve_block(events, counted) if events else ""),
        ("translations", "Translations", _translations(translations, languages) if translations else ""),
        *extra,
        ("attention", "Attention", attention_block(attentions, languages) if attentions else ""),
        ("recipe", "Recipe", _recipe(recipe_text) if recipe_text.strip() else ""),
    ]
    shown = [(name, heading, content) for name, heading, content in sections if content]
    links = " ".join(f'<a href="#{name}">{heading}</a>' for name, heading, _ in shown)
    body = "\n".join(
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{heading}</h2>\n{content}\n</section>'
        for name, heading, content in shown
    )
    nothing = '<p class="quiet">There is nothing to report yet.</p>' if not shown else ""
    main = (
        f"<main>\n<header><h1>{escape(title)}</h1>\n"
        f'<nav aria-label="Sections">{links}</nav></header>\n{body}{nothing}\n</main>'
    )
    scripts = (["curve.js"] if events else []) + (ATTENTION_SCRIPTS if attentions else [])
    return document(title, main, ["page.css", "attention.css", "report.css"], scripts)


def _scores(scores: Sequence[Score]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(score.name)}</th><td class="score">{score.score:.2f}</td>'
        f'<td data-label="signature"><code>{escape(score.signature)}</code></td></tr>'
        for score in scores
    )
    return (
        '<table class="list scores"><thead><tr><th scope="col">metric</th><th scope="col">score</th>'
        f'<th scope="col">signature</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>'
    )


def _recipe(text: str) -> str:
    lines = "\n".join(escape(line) for line in text.split("\n"))
    return f"<details><summary>Everything that decides the result</summary><pre><code>{lines}</code></pre></details>"


# ---------------------------------------------------------------- translations


def _translations(translations: Sequence[tuple[str, str, str | None]], languages: Languages) -> str:
    known = [Translated(*row) for row in translations]
    references = [row for row in known if row.reference is not None]
    same = sum(row.translation.split() == (row.reference or "").split() for row in references)
    note = (
        f"<p>{same} of {len(references)} are word for word the reference. Otherwise the words that differ are marked: "
        '<mark class="extra">only in the translation</mark>, <mark class="missing">only in the reference</mark>.</p>'
        if references
        else ""
    )
    rows = "\n".join(_row(number, row, languages) for number, row in enumerate(known, start=1))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("#", "source", "translation", "reference"))
    return f'{note}\n<table class="list"><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>'


def _row(number: int, row: Translated, languages: Languages) -> str:
    source_language, target_language = (f' lang="{escape(language)}"' if language else "" for language in languages)
    if row.reference is None:
        translation, reference = escape(row.translation), ""
    elif row.translation.split() == row.reference.split():
        translation = escape(row.translation)
        reference = f'<span class="same"><span lang="en" aria-label="the same">✓</span> {escape(row.reference)}</span>'
    else:
        translation, reference = differences(row.translation, row.reference)
    return (
        f'<tr><td class="number">{number}</td><td data-label="source"{source_language}>{escape(row.source)}</td>'
        f'<td data-label="translation"{target_language}>{translation}</td>'
        f'<td data-label="reference"{target_language}>{reference}</td></tr>'
    )


def differences(translation: str, reference: str) -> tuple[str, str]:
    """Both as HTML, with the words marked that the other does not have in this place."""
    ours, theirs = translation.split(), reference.split()
    left: list[str] = []
    right: list[str] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        for words, result, name in ((ours[a:b], left, "extra"), (theirs[c:d], right, "missing")):
            text = escape(" ".join(words))
            if text:
                result.append(text if kind == "equal" else f'<mark class="{name}">{text}</mark>')
    return " ".join(left), " ".join(right)
