"""Several models as one: their probabilities averaged, through the same search."""

from __future__ import annotations

import math
import secrets

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from invariance import Trembling
from simple_search import search

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.models.build import build
from jumok.models.fast import fast_stepper
from jumok.recipe import Seq2SeqSection, TransformerSection
from jumok.search import Decoding, Ensemble, SearchOptions, refill


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9), st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=3))
def test_the_probabilities_are_averaged_by_weight(oracle, seed, weights):
    members = [oracle(seed + place, 9) for place in range(len(weights))]
    shares = [weight / sum(weights) for weight in weights]
    options = SearchOptions(beam=3, nbest=3, max_length=7, coverage_penalty=0.3)
    decoding = Decoding(Ensemble(members, weights))
    decoding.add(Sequences.pad([[0, 0], [1]]), options)
    decoding.step()
    decoding.add(Sequences.pad([[2, 2, 2]]), options)
    while not decoding.done:
        decoding.step()

    for name, length in enumerate([2, 1, 3]):

        def log_probs(history, name=name):
            rows = zip(*(member.log_probs(name, history) for member in members), strict=True)
            return [math.log(sum(s * math.exp(p) for s, p in zip(shares, row, strict=True))) for row in rows]

        def attention(history, name=name, length=length):
            rows = zip(*(member.attention(name, history, length) for member in members), strict=True)
            return [sum(s * a for s, a in zip(shares, row, strict=True)) for row in rows]

        expected = search(log_probs, options, 7, attention)
        assert [h.tokens for h in decoding.results[name]] == [h.tokens for h in expected]
        assert [h.score for h in decoding.results[name]] == pytest.approx([h.score for h in expected], abs=1e-6)


def test_members_that_make_room_for_the_source_in_their_own_ways():
    """The compiled Transformer keeps the width of sentences that have left; a recurrent model does not."""
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    torch.manual_seed(seed)
    transformer = build(TransformerSection(width=16, heads=2, feed_forward=16), 20, 20).eval()
    recurrent = build(Seq2SeqSection(width=16, embedding=8, layers=1), 20, 20).eval()
    lengths = [9, 2, 1, 3, 2, 4, 1, 2]
    rows = [
        (torch.randint(4, 20, (length,)).tolist(), SearchOptions(beam=2, coverage_penalty=0.5, max_length=limit))
        for length, limit in zip(lengths, [2, 9, 9, 9, 9, 5, 5, 5], strict=True)
    ]
    mixed = dict(refill(Ensemble([fast_stepper(transformer), recurrent]), rows, 4, share=0.25))
    both = Ensemble([transformer, recurrent])

    def best(stepper, row) -> float:
        [(_, [found])] = refill(stepper, [row])
        return found.score

    for place, row in enumerate(rows):
        alone = pytest.approx(best(both, row), abs=1e-4)
        if mixed[place][0].score != alone:  # then a last digit has decided which of two the beam kept
            assert any(best(Trembling(both, 1e-5, draw), row) != alone for draw in range(50)), place


def test_what_cannot_generate_together(oracle):
    decoding = Decoding(Ensemble([oracle(0, 9), oracle(0, 11)]))
    decoding.add(Sequences.pad([[0]]), SearchOptions(max_length=4))
    with pytest.raises(BadInput, match="vocabularies of 9 and 11"):
        decoding.step()
    with pytest.raises(BadInput, match="no models"):
        Ensemble([])
    with pytest.raises(BadInput, match="1 weights for 2 models"):
        Ensemble([oracle(0, 9), oracle(1, 9)], [1.0])
    with pytest.raises(BadInput, match="above 0"):
        Ensemble([oracle(0, 9), oracle(1, 9)], [1.0, 0.0])
