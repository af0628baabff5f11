"""What tells a tie from a mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from invariance import Trembling
from seeded import seed

from jumok.data.batch import source_batch
from jumok.search import generate
from jumok.tasks.translator import Translator
from jumok.tasks.wishes import Asked, Sentence, Wishes

__all__ = ["is_tie", "seed"]


@pytest.fixture
def is_tie() -> Callable[..., bool]:
    """Whether a sentence's n best would be others if log-probabilities moved by no more than rounding could move them.

    Asked only where two searches differ: of a random model that happens once in some hundred runs.
    """

    def found(translating: Translator, text: str, nbest: int = 1, **wishes: Any) -> bool:
        asked = Asked(Wishes(nbest=nbest, **wishes), translating.search, translating.phrases)
        (source,) = translating.source.encode([text])
        (options,) = asked.options(0, Sentence(text), len(source))
        shaken = (Trembling(translating.model, 1e-5, draw) for draw in range(50))
        outputs = [
            [one.tokens for one in generate(stepper, source_batch([source]), options)[0]]
            for stepper in (translating.model, *shaken)
        ]
        return any(other != outputs[0] for other in outputs[1:])

    return found
