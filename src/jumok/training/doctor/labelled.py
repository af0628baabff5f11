"""Labelled examples before they are learned from: texts to look at, what contradicts itself, what is in both training
and validation, and labels that are rare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jumok.data.examples import Question, Tagged
from jumok.data.suspicion import suspicions, visible
from jumok.recipe import Corpus, Recipe
from jumok.tasks.sources import place_of, read_items, texts_of
from jumok.training.doctor.findings import Level, Report

SHOWN = 3  # examples named in a finding
RARE = 5  # examples of a label that are too few to learn it from
MOST = 0.9  # of all examples have the same label

Say = Callable[[str], None]
Todo = dict[str, tuple[Level, str]]


def check_examples(recipe: Recipe, report: Report, say: Say, todo: Todo, name: Callable[[Corpus], str]) -> None:
    """Look at every corpus once. `todo`: by kind of suspicion, how bad it is and what to do."""
    held = [_read(recipe, corpus, "valid", report, say, todo, name) for corpus in recipe.data.valid]
    known = {_texts(item) for items in held for item in items}
    labels: Counter[str] = Counter()
    for corpus in recipe.data.train:
        items = _read(recipe, corpus, "train", report, say, todo, name)
        labels.update(label for item in items for label in _labels(item))
        place = name(corpus)
        shared = [item for item in items if _texts(item) in known]
        if shared:
            bad = len(shared) > 0.01 * max(1, len(known))
            what = f"{_count(shared)} of the training data {_are(shared)} in the validation data too"
            advice = "take them out of the one or the other: what was learned by heart says nothing about new text"
            report.add("warning" if bad else "note", "data", what, _where(place, shared), advice)
        _check_copies(items, place, report)
    if recipe.task in ("classification", "tagging") and labels:
        _check_labels(labels, recipe, report)


def _read(
    recipe: Recipe, corpus: Corpus, split: str, report: Report, say: Say, todo: Todo, name: Callable[[Corpus], str]
) -> list[Any]:
    if corpus.grammar is None:
        say(f"checking {name(corpus)} …")
    items = read_items(recipe.task, corpus, split)
    if corpus.grammar is not None:  # nothing is wrong with it
        return items
    counts: Counter[str] = Counter()
    found: dict[str, tuple[str, list[Any]]] = {}
    for item in items:
        for kind, note in dict(_suspicions(item)).items():
            counts[kind] += 1
            places = found.setdefault(kind, (note, []))[1]
            if len(places) < SHOWN:
                places.append(item)
    for kind, (note, examples) in found.items():
        if kind in todo:
            level, advice = todo[kind]
            what = f"{_count(items, counts[kind])} ({counts[kind] / len(items):.2%}): {visible(note, 60)}"
            report.add(level, "data", what, _where(name(corpus), examples, counts[kind]), advice)
    return items


def _suspicions(item: Any) -> Iterator[tuple[str, str]]:
    for text in texts_of(item):
        yield from suspicions(text)


def _check_copies(items: Sequence[Any], place: str, report: Report) -> None:
    """The same again, and the same with another label: of a question its answers may differ, by who was asked."""
    first: dict[tuple[str, ...], Any] = {}
    repeated: list[Any] = []
    contrary: list[Any] = []
    for item in items:
        before = first.setdefault(_texts(item), item)
        if before is not item:
            same = isinstance(item, Question) or _labels(before) == _labels(item)
            (repeated if same else contrary).append(item)
    if contrary:
        what = f"{_count(contrary)} ({len(contrary) / len(items):.2%}) came before with another label"
        advice = "look at them: where the same text has two labels, one of them cannot be learned"
        report.add("warning", "data", what, _where(place, contrary), advice)
    if len(repeated) > 0.01 * len(items):
        what = f"{_count(repeated)} ({len(repeated) / len(items):.2%}) came before, word for word"
        report.add("note", "data", what, _where(place, repeated), "remove the copies, unless they are to count more")


def _check_labels(labels: Counter[str], recipe: Recipe, report: Report) -> None:
    total = labels.total()
    rare = sorted((label for label, count in labels.items() if count < RARE), key=lambda label: (labels[label], label))
    if rare:
        named = ", ".join(f"{visible(label, 30)} ({labels[label]})" for label in rare[:SHOWN])
        more = f" and {len(rare) - SHOWN} more" if len(rare) > SHOWN else ""
        what = f"{len(rare)} of {len(labels)} labels {_are(rare)} very rare: {named}{more}"
        report.add("note", "labels", what, "the training data", "find more examples of them, or make one label of them")
    label, count = labels.most_common(1)[0]
    if count > MOST * total and recipe.task == "classification":
        share = f"{count / total:.1%} of the examples have the label {visible(label, 30)}"
        what = f"{share}: who says it of every text is right as often"
        advice = "training.metric=f1 tells more than accuracy; training.class_weights=balanced makes rare labels count"
        report.add("note", "labels", what, "the training data", advice)


def _texts(item: Any) -> tuple[str, ...]:
    return tuple(texts_of(item))


def _labels(item: Any) -> tuple[str, ...]:
    if isinstance(item, Tagged):
        return item.tags
    return () if isinstance(item, Question) else (str(item.label),)


def _where(place: str, items: Sequence[Any], count: int | None = None) -> str:
    shown = ", ".join(place_of(item).rpartition(", ")[2] for item in items[:SHOWN])
    return f"{place}: {shown}" + (", …" if (len(items) if count is None else count) > SHOWN else "")


def _count(items: Sequence[Any], count: int | None = None) -> str:
    number = len(items) if count is None else count
    what = {Tagged: "sentence", Question: "question"}.get(type(items[0]), "example")
    return f"{number:,} {what}{'s' * (number != 1)}"


def _are(items: Sequence[Any]) -> str:
    return "is" if len(items) == 1 else "are"
