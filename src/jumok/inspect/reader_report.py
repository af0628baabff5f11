"""The report that the training of a model that reads texts ends with: curves, and what it says about a few texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jumok import recipe as recipes
from jumok.inspect.html import escape
from jumok.inspect.report import ExtraSection, write_report
from jumok.recipe import Recipe
from jumok.training.run import RunFolder

SHOWN = 12


def write_reader_report(model: Any, recipe: Recipe, run: RunFolder, task: Any) -> Path:
    makers = {"pretraining": guesses, "tagging": tags, "answering": answers}
    section = makers.get(recipe.task, labels)(model, task)
    title, counted = f"jumok: {run.path.name}", task.objective.counted
    write_report(run.report, title, recipes.dump(recipe), run.events(), extra=[section], counted=counted)
    return run.report


def _table(heads: list[str], rows: list[list[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="list"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def labels(model: Any, task: Any) -> ExtraSection:
    items = [item for part in task.kept for item in part][:SHOWN]
    said = model.predict([(item.text, item.second) for item in items])
    rows = []
    for item, one in zip(items, said, strict=True):
        text = escape(item.text) + (f"<br>{escape(item.second)}" if item.second is not None else "")
        sure = f" ({one.probability:.1%})" if one.probabilities else ""
        rows.append([text, escape(str(item.label)), escape(one.label) + sure])
    return ExtraSection("examples", "Validation examples", _table(["text", "label", "said"], rows))


def tags(model: Any, task: Any) -> ExtraSection:
    items = [item for part in task.kept for item in part][:SHOWN]
    rows = []
    for item, found in zip(items, model.predict([item.words for item in items]), strict=True):
        words = [
            f"{escape(word)}<sub>{escape(given)}</sub>"
            if given == true
            else f"<b>{escape(word)}</b><sub>{escape(given)}, not {escape(true)}</sub>"
            for word, given, true in zip(item.words, found, item.tags, strict=True)
        ]
        rows.append([" ".join(words)])
    return ExtraSection(
        "examples", "Validation sentences", _table(["words and their tags; what is wrong is bold"], rows)
    )


def answers(model: Any, task: Any) -> ExtraSection:
    items = [item for part in task.kept for item in part][:SHOWN]
    rows = []
    for item, found in zip(items, model.answers(items), strict=True):
        true = ", ".join(dict.fromkeys(answer.text for answer in item.answers)) or "(none)"
        said = f"{escape(found.text or '(none)')} ({found.best.probability:.1%})"
        rows.append([escape(item.question), escape(item.context), escape(true), said])
    return ExtraSection("examples", "Validation questions", _table(["question", "text", "answer", "said"], rows))


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
        found = ", ".join(f"{escape(guess.token)} ({guess.probability:.0%})" for guess in model.fill(hidden, 3)[0])
        rows.append([escape(hidden), escape(words[place]), found])
    return ExtraSection("examples", "Hidden words", _table(["text", "what stood there", "guessed"], rows))
