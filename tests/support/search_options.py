"""Any options a search can be asked for, as a hypothesis strategy."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from jumok.data.batch import END, PAD, START
from jumok.errors import BadInput
from jumok.search import SearchOptions


@st.composite
def searches(draw: st.DrawFn, vocabulary: int, plain: bool = False) -> SearchOptions:
    """Over tokens below `vocabulary`; `plain`: beams, lengths, prefixes and single forbidden tokens."""
    beam, limit = draw(st.integers(1, 7)), draw(st.integers(1, 8))
    words = st.sampled_from([1, *range(4, vocabulary)])
    options: dict[str, Any] = {
        "beam": beam,
        "nbest": draw(st.integers(1, beam)),
        "length_penalty": draw(st.sampled_from([0.0, 0.6, 1.0, 2.0])),
        "max_length": limit,
        "prefix": tuple(draw(st.lists(st.sampled_from([0, 1, 2, *range(4, vocabulary)]), max_size=min(3, limit - 1)))),
        "forbidden": draw(st.sampled_from([(PAD, START), (), (PAD, 1, START), (PAD, START, START), (END,)])),
    }
    if not plain:
        phrases = st.lists(st.lists(words, min_size=1, max_size=3).map(tuple), max_size=2).map(tuple)
        options |= {
            "coverage_penalty": draw(st.sampled_from([0.0, 0.0, 0.4])),
            "min_length": draw(st.integers(1, limit)),
            "patience": draw(st.sampled_from([None, 1.0, 0.5])),
            "forbidden_phrases": draw(phrases),
            "no_repeat_ngram": draw(st.integers(0, 3)),
        }
        if draw(st.integers(0, 3)) == 0:
            options |= {
                "sample": True,
                "beam": 1,
                "nbest": 1,
                "temperature": draw(st.sampled_from([0.3, 1.0, 2.0])),
                "top_k": draw(st.integers(0, 4)),
                "top_p": draw(st.sampled_from([0.4, 0.9, 1.0])),
                "seed": draw(st.integers(0, 99)),
                "stream": draw(st.integers(0, 99)),
            }
        else:
            options["required"] = draw(phrases)
    try:
        return SearchOptions(**options)
    except BadInput:
        assume(False)  # contradictions have a test of their own
        raise
