"""Which head of a Transformer follows the words: every view of its cross-attention against gold alignments."""

from __future__ import annotations

from collections.abc import Sequence, Set

from jumok.data.pharaoh import Link
from jumok.inspect.alignment import AlignmentScore, sentence_score
from jumok.inspect.forced import links_of_views
from jumok.inspect.view import View
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
