"""A model's own translations, and whether the model ended them itself.

A search that reaches its limit closes the translation with an `<eos>` that the model would not have written. Pictures
of what the model looked at must not show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

from jumok.inspect.tokens import Ids
from jumok.tasks.engine import Engine, Found, Row
from jumok.tasks.translator import Translation, Translator


class Own(NamedTuple):
    """The best translation of a sentence."""

    translation: Translation
    ended: bool  # False: it was cut where the model would have gone on


def own_translations(translator: Translator, sentences: Sequence[str], **wishes: Any) -> list[Own]:
    """The best translation of each sentence, in order; `Wishes` says what can be asked for."""
    noting, engine = copy(translator), _Noting(translator.engine)
    noting.engine = engine
    best = [found[0] for found in noting.nbest(sentences, **wishes)]
    return [Own(one, engine.ended.get((number, one.ids), True)) for number, one in enumerate(best)]


class _Noting(Engine):
    """Searches as the usual engine does, and notes what the search alone knows: which outputs the model ended."""

    def __init__(self, usual: Engine) -> None:
        super().__init__(usual.models, usual.device, usual.precision, usual.fast)
        self.usual = usual
        self.ended: dict[tuple[int, Ids], bool] = {}  # by sentence and output

    def asked(self, texts: Sequence[str]) -> None:
        self.usual.asked(texts)

    def answered(self, outputs: Sequence[Sequence[Ids]]) -> None:
        self.usual.answered(outputs)

    def search(self, rows: Sequence[Row], size: int, sentences: Sequence[int] = ()) -> Found:
        for place, hypotheses in self.usual.search(rows, size, sentences):
            for one in hypotheses:
                self.ended[sentences[place], tuple(one.tokens)] = one.finished
            yield place, hypotheses
