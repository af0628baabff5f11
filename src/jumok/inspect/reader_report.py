"""The report that the training of a model that reads texts ends with: curves, and what it says about a few texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jumok import recipe as recipes
from jumok.inspect.html import escape
from jumok.inspect.report import ExtraSection, write_report
from jumok.recipe import Recipe
from jumok.tasks.answer_scores import answer_score
from jumok.tasks.answering import language_of
from jumok.training.run import RunFolder

SHOWN = 12
LOOKED_AT = 200  # validation examples, among which those that went wrong are shown first
QUESTIONS = 60  # of these fewer: their texts are long


def write_reader_report(model: Any, recipe: Recipe, run: RunFolder, task: Any) -> Path:
    makers = {"pretraining": guesses, "tagging": tags, "answering": answers}
    section = makers.get(recipe.task, labels)(model, task)
    title, counted = f"jumok: {run.path.name}", task.objective.counted
    write_report(run.report, title, recipes.dump(recipe), run.events(), extra=[section], counted=counted)
    return run.report


def _table(heads: list[str], rows: list[list[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = []
    for row in rows:
        cells = (f'<td data-label="{escape(name)}">{cell}</td>' for name, cell in zip(heads, row, strict=True))
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table class="list said"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'


def _section(
    title: str, unit: str, heads: list[str], rows: list[tuple[float, list[str]]], note: str = ""
) -> ExtraSection:
    """The worst rows first; a row's number is how wrong it is, 0: right."""
    wrong = sum(badness > 0 for badness, _ in rows)
    ordered = sorted(rows, key=lambda row: -row[0])[:SHOWN]
    told = f"<p>{wrong} of {len(rows)} {unit} went wrong{'; these come first' if wrong else ''}. {note}</p>"
    return ExtraSection("examples", title, told + _table(heads, [row for _, row in ordered]))


def _looked_at(task: Any) -> list[Any]:
    return [item for part in task.kept for item in part][:LOOKED_AT]


def labels(model: Any, task: Any) -> ExtraSection:
    items = _looked_at(task)
    said = model.predict([(item.text, item.second) for item in items])
    measures = all(not one.probabilities for one in said)
    rows: list[tuple[float, list[str]]] = []
    for item, one in zip(items, said, strict=True):
        text = escape(item.text) + (f"<br>{escape(item.second)}" if item.second is not None else "")
        if measures:
            rows.append((abs(float(one.label) - float(item.label)), [text, escape(str(item.label)), escape(one.label)]))
            continue
        right = one.label == str(item.label)
        given = escape(one.label) if right else f'<mark class="extra">{escape(one.label)}</mark>'
        cells = [text, escape(str(item.label)), f"{given} ({one.probability:.1%})"]
        rows.append((0.0 if right else 1.0 + one.probability, cells))
    heads = ["text", "label", "said"]
    if not measures:
        return _section("Validation examples", "validation examples", heads, rows)
    rows = sorted(rows, key=lambda row: -row[0])[:SHOWN]
    told = f"<p>Of {len(items)} validation examples those with the largest errors.</p>"
    return ExtraSection("examples", "Validation examples", told + _table(heads, [row for _, row in rows]))


def tags(model: Any, task: Any) -> ExtraSection:
    items = _looked_at(task)
    rows: list[tuple[float, list[str]]] = []
    for item, found in zip(items, model.predict([item.words for item in items]), strict=True):
        words = [_word(*each) for each in zip(item.words, item.tags, found, strict=True)]
        wrong = sum(given != true for given, true in zip(found, item.tags, strict=True))
        rows.append((float(wrong), [" ".join(words)]))
    marked = '<mark class="extra">Words with another tag than theirs</mark> have it behind them.'
    return _section("Validation sentences", "validation sentences", ["words and their tags"], rows, marked)


def _word(word: str, true: str, given: str) -> str:
    shown = escape(word) if true == "O" else f"<ruby>{escape(word)}<rt>{escape(true)}</rt></ruby>"
    return shown if given == true else f'<mark class="extra">{shown} <small>{escape(given)}</small></mark>'


def answers(model: Any, task: Any) -> ExtraSection:
    items = _looked_at(task)[:QUESTIONS]
    rows: list[tuple[float, list[str]]] = []
    language = language_of(items)
    for item, found in zip(items, model.answers(items), strict=True):
        true = list(dict.fromkeys(answer.text for answer in item.answers))
        exact, f1 = answer_score(found.text, true, language)
        said = f"{escape(found.text or '(none)')} ({found.best.probability:.1%})"
        given = said if exact else f'<mark class="extra">{said}</mark>'
        about = f"<p><b>{escape(item.question)}</b></p>{escape(item.context)}"
        rows.append((0.0 if exact else 2.0 - f1, [about, escape(", ".join(true) or "(none)"), given]))
    return _section("Validation questions", "validation questions", ["question and text", "answer", "said"], rows)


def guesses(model: Any, task: Any) -> ExtraSection:
    """Words of validation texts, hidden one at a time."""
    text, rows = task.valid[0], []
    for number in range(min(SHOWN, len(text.found))):
        span = text.store.ids[int(text.found.begin[number]) : int(text.found.end[number])]
        words = model.tokenizer.decode([span.tolist()])[0].split()
        place = (7 * number) % len(words) if words else 0
        if not words or len(words) > 60:
            continue
        hidden = " ".join([*words[:place], "[MASK]", *words[place + 1 :]])
        found = ", ".join(
            f"{'<b>' if guess.token == words[place] else ''}{escape(guess.token)}"
            f"{'</b>' if guess.token == words[place] else ''} ({guess.probability:.0%})"
            for guess in model.fill(hidden, 3)[0]
        )
        shown = escape(hidden).replace("[MASK]", '<mark class="missing">[MASK]</mark>')
        rows.append([shown, escape(words[place]), found])
    return ExtraSection("examples", "Hidden words", _table(["text", "what stood there", "guessed"], rows))
