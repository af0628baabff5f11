"""Which head of a Transformer follows the words: every view of its cross-attention against gold alignments."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from jumok.data.pharaoh import Link
from jumok.inspect.alignment import READINGS, AlignmentScore, sentence_score
from jumok.inspect.forced import links_of_views
from jumok.inspect.view import View, every_view
from jumok.tasks.translator import Translator


def score_views(
    translator: Translator,
    sentences: Sequence[str],
    targets: Sequence[str],
    gold: Sequence[tuple[Set[Link], Set[Link]]],
    views: Sequence[View],
) -> list[AlignmentScore]:
    """How far the links of each view are from the gold ones (sure and possible); the model reads the texts once."""
    totals = [AlignmentScore()] * len(views)
    predicted = links_of_views(translator, sentences, targets, views)
    for links, (sure, possible) in zip(predicted, gold, strict=True):
        totals = [total + sentence_score(one, sure, possible) for total, one in zip(totals, links, strict=True)]
    return totals


class Chosen(NamedTuple):
    view: View
    score: AlignmentScore  # on what it was chosen by


def best_view(
    translator: Translator,
    sentences: Sequence[str],
    targets: Sequence[str],
    gold: Sequence[tuple[Set[Link], Set[Link]]],
    views: Sequence[View] | None = None,
) -> Chosen:
    """The layer, the head (or the mean over them), the shift and the reading whose links come nearest to the gold ones.

    Choose on other sentences than those that will be reported on: the best of many is flattered by its choice.
    """
    views = every_reading(every_view(translator.model)) if views is None else views
    scores = score_views(translator, sentences, targets, gold, views)
    return min((Chosen(*each) for each in zip(views, scores, strict=True)), key=lambda one: one.score.error_rate)


def best_of_readings(
    translator: Translator,
    sentences: Sequence[str],
    targets: Sequence[str],
    gold: Sequence[tuple[Set[Link], Set[Link]]],
) -> list[View]:
    """For each way of reading links, the layer, head and shift that come nearest to the gold ones."""
    views = every_reading(every_view(translator.model))
    scores = score_views(translator, sentences, targets, gold, views)
    found = {}
    for reading in READINGS:
        mine = [Chosen(*each) for each in zip(views, scores, strict=True) if each[0].reading == reading]
        found[reading] = min(mine, key=lambda one: one.score.error_rate).view
    return list(found.values())


def every_reading(views: Sequence[View]) -> list[View]:
    """Each view as it is and shifted, with its links read in each way."""
    return [
        replace(view, shift=shift, reading=reading) for reading in READINGS for view in views for shift in (False, True)
    ]
