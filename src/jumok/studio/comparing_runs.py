"""Two runs, or two checkpoints of a run, on one text: what both say, and what both look at meanwhile.

Translators are compared on one translation, which both are made to write (teacher forcing): the first one's own, or one
that is given. So each weight and each probability of the one has its counterpart in the other. Readers of texts look at
the text itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from jumok.errors import BadInput
from jumok.inspect.forced import Side, forced_views
from jumok.inspect.record import record
from jumok.inspect.view import View
from jumok.layers.tap import Tap
from jumok.studio import comparing_readers
from jumok.studio.attention_jobs import Text
from jumok.studio.comparing import Both, By, Row, Seen, alike, both, rows_told
from jumok.studio.shelf import Shelf
from jumok.tasks.classifier import encode_texts
from jumok.trained import TrainedClassifier, TrainedTranslator

KINDS = ("cross", "self", "causal")
TASKS = ("translation", "classification", "regression", *comparing_readers.TASKS)


class One(NamedTuple):
    """A run, or one of its checkpoints."""

    run: str
    update: int | None = None


class Given(NamedTuple):
    text: str
    second: str | None = None  # of a pair of texts
    target: str | None = None  # the translation that both write


class Asked(NamedTuple):
    """Which attention; without a layer or a head the mean over all that each has."""

    kind: str
    layer: int | None = None
    head: int | None = None
    by: By = "words"


def loaded(shelf: Shelf, a: One, b: One) -> tuple[Any, Any]:
    """Both, where they can be compared; else an error in words."""
    tasks = [shelf.entry(one.run)["task"] for one in (a, b)]
    if tasks[0] != tasks[1]:
        raise BadInput(
            f'"{a.run}" is a run of task {tasks[0]} and "{b.run}" one of task {tasks[1]}: there is no input that both '
            "take. Choose two runs of one task"
        )
    if tasks[0] not in TASKS:
        raise BadInput(f"runs of task {tasks[0]} are not compared here: choose translators, or readers of texts")
    return shelf.load(a.run, a.update), shelf.load(b.run, b.update)


def compared(shelf: Shelf, a: One, b: One, given: Given) -> dict[str, Any]:
    """All but the maps."""
    first, other = loaded(shelf, a, b)
    if not given.text.strip():
        raise BadInput("there is no text to compare them on: write one")
    task = shelf.entry(a.run)["task"]
    if task in comparing_readers.TASKS:
        found = comparing_readers.compared(task, first, other, Text(given.text, given.second))
    else:
        compare = _translators if isinstance(first, TrainedTranslator) else _readers
        found = compare(first, other, given)
    given = given._replace(target=found.get("target"))
    kinds: list[dict[str, Any]] = []
    for kind in KINDS:
        sizes = [_sizes(model, kind) for model in (first, other)]
        if all(size[0] for size in sizes):
            one, two = (_seen(model, given, Asked(kind)) for model in (first, other))
            names = {
                "tokens": _names(one, two, "tokens") if alike(one, two) else None,
                "words": _names(one, two, "words"),
            }
            layers, heads = ([size[place] for size in sizes] for place in (0, 1))
            kinds.append({"kind": kind, "layers": layers, "heads": heads, **names})
    lacking = [
        side for side, model in (("a", first), ("b", other)) if not any(_sizes(model, kind)[0] for kind in KINDS)
    ]
    languages = [shelf.entry(one.run)["languages"] for one in (a, b)]
    return {
        "task": task, "kinds": kinds, "lacking": lacking,
        "languages": languages if None not in languages and languages[0] != languages[1] else None, **found,
    }  # fmt: skip


def maps(shelf: Shelf, a: One, b: One, given: Given, asked: Asked) -> Both:
    """What the same attention of both shows."""
    models = loaded(shelf, a, b)
    if isinstance(models[0], TrainedTranslator) and given.target is None:
        given = given._replace(target=models[0].nbest([given.text])[0][0].text)
    first, other = (_seen(model, given, asked) for model in models)
    return both(first, other, asked.by)


def _names(a: Seen, b: Seen, by: By) -> dict[str, Any]:
    found = both(a, b, by)
    return {"rows": found.rows, "columns": found.columns, "left_out": found.left_out}


# ---------------------------------------------------------------- translators


def _translators(a: TrainedTranslator, b: TrainedTranslator, given: Given) -> dict[str, Any]:
    for one in (a, b):
        one.refuse_long([given.text])
    outputs = [one.nbest([given.text])[0][0] for one in (a, b)]
    target = outputs[0].text if given.target is None else given.target
    rows = [_row(one, given.text, target) for one in (a, b)]
    sides = [
        {
            "output": output.text, "log_probability": output.log_probability, "finished": output.finished,
            "forced": float(sum(row.log_probs)), "unknown": one.unknown_words(given.text),
        }
        for one, output, row in zip((a, b), outputs, rows, strict=True)
    ]  # fmt: skip
    first, other = rows
    probabilities = {"tokens": rows_told(first, other, "tokens"), "words": rows_told(first, other, "words")}
    return {"sides": sides, "target": target, "probabilities": probabilities}


def _row(translator: TrainedTranslator, text: str, target: str) -> Row:
    cut = translator.target.encode_with_offsets(target)
    if len(cut.ids) > translator.max_length:
        raise BadInput(
            f"the translation has {len(cut.ids)} tokens, the limit is {translator.max_length}: take a part of it"
        )
    scored = translator.score([text], [cut.ids])[0]
    return Row(scored.tokens, (*cut.words, None), target.split(), scored.log_probabilities)


# ---------------------------------------------------------------- readers of texts


def _readers(a: TrainedClassifier, b: TrainedClassifier, given: Given) -> dict[str, Any]:
    text = given.text if given.second is None else (given.text, given.second)
    if not a.labels:
        return {"sides": [{"number": float(one.measure([text])[0])} for one in (a, b)], "labels": None}
    found: list[dict[str, float]] = [
        dict(zip(one.labels, one.probabilities([text])[0].tolist(), strict=True)) for one in (a, b)
    ]
    labels = [label for label in a.labels if label in found[1]]
    if not labels:
        raise BadInput("the two runs have no label in common: there is nothing to compare")
    best = [max(one.items(), key=itemgetter(1))[0] for one in found]
    only = [[label for label in one if label not in labels] for one in found]
    sides = [{"label": label, "only": more} for label, more in zip(best, only, strict=True)]
    return {"sides": sides, "labels": labels, "a": _at(found[0], labels), "b": _at(found[1], labels)}


def _at(values: dict[str, float], names: Sequence[str]) -> list[float]:
    return [values[name] for name in names]


def _text_side(reader: TrainedClassifier, given: Given) -> Side:
    """The tokens as the model reads them, `[CLS] words [SEP] …`, and their words."""
    pair = (given.text, given.second)
    rows, segments, _ = encode_texts(reader.tokenizer, [pair], reader.max_length)
    kept = segments[0].count(0) - 2
    words: list[int | None] = [None, *reader.tokenizer.encode_with_offsets(given.text).words[:kept], None]
    texts = given.text.split()
    if given.second is not None:
        more = reader.tokenizer.encode_with_offsets(given.second).words[: segments[0].count(1) - 1]
        words += [*(word + len(texts) for word in more), None]
        texts += given.second.split()
    return Side(reader.tokenizer.pieces(rows[0]), words, texts)


# ---------------------------------------------------------------- attention


def _taps(model: nn.Module, kind: str) -> list[Tap]:
    found = [one for one in model.modules() if isinstance(one, Tap) and one.kind == kind]
    return sorted(found, key=lambda tap: tap.layer)


def _sizes(model: Any, kind: str) -> tuple[int, int]:
    """Layers of a kind, and heads in each (0: the attention has none). Texts that are read apart have no common map."""
    taps = [] if getattr(model.model, "apart", False) else _taps(model.model, kind)
    return len(taps), min((tap.heads or 0 for tap in taps), default=0)


def _seen(model: Any, given: Given, asked: Asked) -> Seen:
    View(asked.layer, asked.head, asked.kind).tap(model.model)  # what is not there is refused, with what is
    chosen = [tap.layer for tap in _taps(model.model, asked.kind)] if asked.layer is None else [asked.layer]
    if isinstance(model, TrainedTranslator):
        views = [View(layer, asked.head, asked.kind) for layer in chosen]
        keys, queries, weights = forced_views(model, given.text, given.target or "", views)
        return Seen(keys, queries, np.asarray(weights.mean(axis=0), np.float32))
    if not isinstance(model, TrainedClassifier):
        side, layers = comparing_readers.seen(model, Text(given.text, given.second), chosen)
        return Seen(side, side, _mean(layers, asked.head))
    side = _text_side(model, given)
    text = given.text if given.second is None else (given.text, given.second)
    with record(model.model, layers=chosen, kinds=[asked.kind]) as seen:
        model.scores([text])
    return Seen(side, side, _mean([seen.weights(name) for name in seen.names()], asked.head))


def _mean(layers: Sequence[torch.Tensor], head: int | None) -> Any:
    """(T, S) over layers, and over heads unless one is asked for."""
    each = [
        one[0] if one.dim() == 3 else one[0].mean(dim=0) if head is None else one[0, head]
        for one in layers
    ]  # fmt: skip
    return torch.stack(each).mean(dim=0).float().cpu().numpy()
