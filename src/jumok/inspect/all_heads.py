"""Every layer and head of a model over one sentence: what the page and the sheet of all heads are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jumok.errors import BadInput
from jumok.inspect.attention import Attention, Weights
from jumok.inspect.attention_record import AttentionRecord
from jumok.inspect.forced import Side, forced_views
from jumok.inspect.view import View, every_view
from jumok.layers.tap import Tap
from jumok.tasks.translator import Translator

KINDS = ("cross", "self", "causal")


@dataclass(frozen=True)
class Place:
    """Where a map is from. No head: the mean over the layer's heads, or a model whose attention has none."""

    layer: int
    head: int | None = None


@dataclass(frozen=True, eq=False)
class Kind:
    """All maps of one kind ("cross", "self" or "causal"); they share their keys and queries."""

    kind: str
    keys: Side
    queries: Side
    places: tuple[Place, ...]
    weights: Weights  # (places, queries, keys), by tokens

    def __post_init__(self) -> None:
        expected = (len(self.places), len(self.queries.tokens), len(self.keys.tokens))
        if self.weights.shape != expected:
            raise ValueError(f"weights are {self.weights.shape}, but places, queries and keys ask for {expected}")

    def heads(self) -> int:
        """How many heads the widest layer shows; 0 where there are none."""
        return max((place.head + 1 for place in self.places if place.head is not None), default=0)


@dataclass(frozen=True, eq=False)
class AllHeads:
    """What a model looked at while it wrote one sentence, everywhere."""

    kinds: tuple[Kind, ...]
    score: float | None = None

    def maps(self) -> int:
        return sum(len(kind.places) for kind in self.kinds)

    def _repr_html_(self) -> str:
        """In a notebook: the page, in a frame of its own."""
        from jumok.inspect.canvas import page
        from jumok.inspect.html import framed

        return framed(page(self)[0], 900)


def all_heads(
    translator: Translator,
    sentence: str,
    target: str | Sequence[int] | None = None,
    kinds: Sequence[str] = KINDS,
) -> AllHeads:
    """Each layer's mean and all of its heads, while the model writes its own translation or the given one."""
    known = {tap.kind for tap in translator.model.modules() if isinstance(tap, Tap)}
    wanted = [kind for kind in kinds if kind in known]
    if not wanted:
        View(kind=kinds[0]).tap(translator.model)  # says what there is instead
        raise BadInput(f"this model has no attention of kind {' or '.join(kinds)}")
    score, ended = None, True
    if target is None:
        best = translator.nbest([sentence])[0][0]
        target, score, ended = best.ids, best.log_probability, best.finished
    shown = []
    for kind in wanted:
        views = every_view(translator.model, kind)
        keys, queries, weights = forced_views(translator, sentence, target, views, ended)
        places = tuple(Place(view.layer or 0, view.head) for view in views)
        shown.append(Kind(kind, keys, queries, places, weights))
    return AllHeads(tuple(shown), score)


def of_records(records: Sequence[AttentionRecord], row: int = 0) -> AllHeads:
    """What `record` has seen of one row, of any model: `of_records(seen.records)`. Each attention's newest call."""
    newest = {record.name: record for record in records}
    if not newest:
        raise BadInput("nothing was recorded: the model has no attention, or it was not run inside the block")
    if any(record.step for record in newest.values()):
        raise BadInput("the model was recorded step by step: record its forward on the finished text instead")
    shown = []
    for kind in dict.fromkeys([*KINDS, *(record.kind for record in newest.values())]):
        same = sorted((record for record in newest.values() if record.kind == kind), key=lambda record: record.layer)
        if not same:
            continue
        keys, queries = (
            Side(side.tokens, side.words, side.text.split()) for side in (same[0].keys(row), same[0].queries(row))
        )
        places, maps = [], []
        for record in same:
            weights = record.weights[row].numpy()[..., : len(queries.tokens), : len(keys.tokens)]
            places.append(Place(record.layer))
            maps.append(weights if record.heads is None else weights.mean(axis=0))
            places += [Place(record.layer, head) for head in record.heads or ()]
            maps += [] if record.heads is None else list(weights)
        shown.append(Kind(kind, keys, queries, tuple(places), np.stack(maps)))
    return AllHeads(tuple(shown))


def of_attention(attention: Attention) -> AllHeads:
    """One picture's data as all there is."""
    keys, queries = (Side(tokens, (None,) * len(tokens), ()) for tokens in (attention.source, attention.target))
    kind = Kind(attention.kind, keys, queries, (Place(0),), np.asarray(attention.weights)[None])
    return AllHeads((kind,), attention.score)
