"""Scores as tables of a page: each with its interval, labels one by one, and what was taken for what."""

from __future__ import annotations

from collections.abc import Sequence

from jumok.inspect.html import escape
from jumok.tasks.label_scores import LabelScores
from jumok.tasks.tag_scores import TagScores

MOST_IN_MATRIX = 30  # labels; more are a list of the most frequent confusions
CONFUSIONS = 60
SHADES = 10  # steps of colour from none to all of a row


def headline_table(rows: Sequence[tuple[str, str, str]], notes: Sequence[str]) -> str:
    """Name, score, interval; and below what one must know to read them."""
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="score">{escape(score)}</td>'
        f'<td class="interval">{escape(interval)}</td></tr>'
        for name, score, interval in rows
    )
    told = "\n".join(f"<li>{escape(note[:1].upper() + note[1:])}.</li>" for note in notes)
    return (
        '<table class="headline"><thead><tr><th scope="col">score</th><th scope="col"></th>'
        f'<th scope="col">95 % interval</th></tr></thead>\n<tbody>\n{body}\n</tbody></table>\n'
        f'<ul class="notes">\n{told}\n</ul>'
    )


def label_table(scores: LabelScores) -> str:
    rows = [
        (
            score.label,
            *(each.percent() for each in (score.precision, score.recall, score.f1)),
            score.f1.percent_interval(),
            f"{score.support:,}",
            f"{score.predicted:,}",
        )
        for score in scores.by_label
    ]
    return numbers_table(("label", "precision", "recall", "F1", "F1’s interval", "examples", "predicted"), rows)


def tag_table(scores: TagScores) -> str:
    rows = [
        (
            score.name or "(no type)",
            *(each.percent() for each in (score.precision, score.recall, score.f1)),
            score.f1.percent_interval(),
            *(f"{count:,}" for count in (score.gold, score.predicted, score.right)),
        )
        for score in scores.by_name
    ]
    name = "type" if scores.spans else "tag"
    return numbers_table((name, "precision", "recall", "F1", "F1’s interval", "gold", "predicted", "right"), rows)


def numbers_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A name and then numbers."""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "\n".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="wide{" tall" * (len(rows) > MOST_IN_MATRIX)}" tabindex="0" role="region" aria-label="one by one">'
        f'<table class="numbers"><thead><tr>{names}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'
    )


# ---------------------------------------------------------------- confusions


def confusion_block(scores: LabelScores) -> str:
    """A table whose cells, pressed, choose the examples below (evaluation.js)."""
    if len(scores.labels) > MOST_IN_MATRIX:
        return _confusion_list(scores)
    intro = (
        "<p>Each row is a gold label; its cells say what the model took these examples for. The colour is the share of "
        "the row. <b>Press a cell</b> to see its examples below.</p>"
    )
    vertical = " vertical" if len(scores.labels) > 6 else ""
    head = "".join(
        f'<th scope="col"><button type="button" data-predicted="{place}" aria-pressed="false" '
        f'title="all that were taken for {escape(label)}"><span>{_named(label)}</span></button></th>'
        for place, label in enumerate(scores.labels)
    )
    body = "\n".join(_confusion_row(place, scores) for place in range(len(scores.labels)))
    return (
        f'{intro}\n<div class="wide" tabindex="0" role="region" aria-label="Confusion matrix">'
        f'<table class="confusion{vertical}"><thead><tr><td class="corner">gold ↓ &nbsp; predicted →</td>{head}</tr>'
        f"</thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _confusion_row(gold: int, scores: LabelScores) -> str:
    counts = [int(count) for count in scores.confusion[gold]]
    cells = []
    for predicted, count in enumerate(counts):
        shade = -(-count * SHADES // max(1, sum(counts)))  # rounded up: what is there can be seen
        side = "right" if predicted == gold else "wrong"
        told = f"{scores.labels[gold]} taken for {scores.labels[predicted]}: {count:,}"
        cells.append(
            f'<td><button type="button" class="{side} shade-{shade}" data-gold="{gold}" data-predicted="{predicted}" '
            f'aria-pressed="false" title="{escape(told)}">{f"{count:,}" if count else "·"}</button></td>'
        )
    label = scores.labels[gold]
    name = (
        f'<th scope="row"><button type="button" data-gold="{gold}" aria-pressed="false" '
        f'title="all that are {escape(label)}"><span>{_named(label)}</span></button></th>'
    )
    return f"<tr>{name}{''.join(cells)}</tr>"


def _confusion_list(scores: LabelScores) -> str:
    worst = scores.confusions()
    if not worst:
        return "<p>No label was taken for another.</p>"
    place = {label: number for number, label in enumerate(scores.labels)}
    rows = "\n".join(
        f'<tr><th scope="row">{_named(each.gold)}</th><td>{_named(each.predicted)}</td><td class="number">'
        f'<button type="button" data-gold="{place[each.gold]}" data-predicted="{place[each.predicted]}" '
        f'aria-pressed="false" class="wrong shade-1">{each.count:,}</button></td></tr>'
        for each in worst[:CONFUSIONS]
    )
    shown = f"The {CONFUSIONS} most frequent of {len(worst):,}" if len(worst) > CONFUSIONS else f"All {len(worst):,}"
    return (
        f"<p>{shown} confusions. <b>Press a number</b> to see its examples below.</p>\n"
        '<div class="wide tall" tabindex="0" role="region" aria-label="Confusions"><table class="confusion list">'
        '<thead><tr><th scope="col">gold</th><th scope="col">taken for</th><th scope="col">examples</th></tr></thead>'
        f"\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _named(label: str) -> str:
    return escape(label) or '<i class="quiet">(empty)</i>'
