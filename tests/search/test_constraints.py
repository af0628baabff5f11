"""Required phrases by automata, blocked tokens by history: against reading the tokens again."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from simple_search import has, placed, without_parts

from jumok.data.batch import Sequences
from jumok.search import SearchOptions, generate, refill
from jumok.search.constraints import Blocked, Required

TOKENS = st.integers(4, 6)  # few of them, so that phrases overlap and fall back
PHRASES = st.lists(st.lists(TOKENS, min_size=1, max_size=5).map(tuple), min_size=1, max_size=4).map(tuple)


@settings(max_examples=200, deadline=None)
@given(PHRASES, st.lists(TOKENS, max_size=12).map(tuple))
def test_progress_is_what_reading_again_would_find(phrases, tokens):
    required = Required(phrases)
    assert required.phrases == without_parts(phrases)
    assert required.bank(required.progress(tokens)) == placed(tokens, required.phrases)
    assert (required.missing(tokens) == 0) == all(has(tokens, phrase) for phrase in phrases)


@settings(max_examples=200, deadline=None)
@given(PHRASES, st.lists(TOKENS, max_size=12).map(tuple))
def test_some_token_always_leads_on(phrases, tokens):
    """The furthest hypothesis gets at least one token further in each step, so that everything is placed in time."""
    required = Required(phrases)
    progress = required.progress(tokens)
    if required.missing(tokens):
        assert max(required.bank(required.move(progress, token)) for token in range(4, 7)) > required.bank(progress)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(TOKENS, min_size=2, max_size=4).map(tuple), max_size=3).map(tuple),
    st.integers(0, 4),
    st.lists(st.lists(TOKENS, min_size=6, max_size=6), min_size=1, max_size=3),
    st.integers(0, 6),
)
def test_blocked_is_what_would_complete_a_phrase_or_repeat_an_ngram(phrases, size, rows, length):
    tokens = np.array(rows, np.int32)[:, :length]
    blocked = Blocked.of(SearchOptions(forbidden_phrases=phrases, no_repeat_ngram=size))
    if blocked is None:
        assert not phrases
        assert not size
        return
    hypotheses, banned = blocked.after(tokens)
    expected = set()
    for place, row in enumerate(tokens.tolist()):
        for token in range(4, 7):
            after = (*row, token)
            ngrams = [after[i : i + size] for i in range(len(after) - size + 1)] if size else []
            if any(after[-len(p) :] == p for p in phrases) or (ngrams[-1:] and ngrams[-1] in ngrams[:-1]):
                expected.add((place, token))
    assert set(zip(hypotheses.tolist(), banned.tolist(), strict=True)) == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), PHRASES, st.integers(1, 6), st.integers(0, 3))
def test_every_output_holds_every_phrase(oracle, seed, phrases, beam, extra):
    stepper = oracle(seed, 12)
    limit = Required(phrases).total + 1 + extra  # the least that is not refused, and a little more
    options = SearchOptions(beam=beam, nbest=beam, required=phrases, max_length=limit)
    [found] = generate(stepper, Sequences.pad([[0]]), options)
    assert found
    for output in found:
        assert all(has(tuple(output.tokens), phrase) for phrase in phrases)


def test_a_phrase_is_placed_where_the_model_wants_it(oracle):
    """The model would write 4 5 6 7 or, nearly as gladly, 4 9 6 7: 9 belongs in the second place, nowhere else."""

    class Set(oracle):
        def _log_probs(self, sentence, history):
            row = [-9.0] * self.vocabulary
            row[[4, 5, 6, 7, 3][min(len(history), 4)]] = -0.1
            if len(history) == 1:
                row[9] = -2.0
            return tuple(row)

    options = SearchOptions(beam=4, required=((9,),), max_length=9, length_penalty=0.0)
    [[found]] = generate(Set(0, 12), Sequences.pad([[0]]), options)
    assert found.tokens == [4, 9, 6, 7]
    # two phrases that share their beginning, in one output
    options = SearchOptions(beam=6, required=((5, 8), (5, 6, 7)), max_length=12, length_penalty=0.0)
    [[found]] = generate(Set(0, 12), Sequences.pad([[0]]), options)
    assert has(tuple(found.tokens), (5, 8))
    assert has(tuple(found.tokens), (5, 6, 7))


def test_phrases_may_overlap_in_the_output(oracle):
    class Set(oracle):
        def _log_probs(self, sentence, history):
            row = [-9.0] * self.vocabulary
            row[[4, 5, 6, 3][min(len(history), 3)]] = -0.1
            return tuple(row)

    options = SearchOptions(beam=4, required=((4, 5), (5, 6)), max_length=9, length_penalty=0.0)
    [[found]] = generate(Set(0, 9), Sequences.pad([[0]]), options)
    assert found.tokens == [4, 5, 6]


def test_an_output_without_what_is_required_is_none(oracle):
    class Never(oracle):
        def _log_probs(self, sentence, history):
            row = list(super()._log_probs(sentence, history))
            row[8] = -np.inf
            return tuple(row)

    options = SearchOptions(beam=3, nbest=3, required=((8,),), max_length=5)
    free = SearchOptions(beam=3, nbest=3, max_length=5)
    lacking, plain = generate(Never(0, 9), Sequences.pad([[0], [1]]), [options, free])
    assert lacking == []
    assert len(plain) == 3, "its neighbours do not notice"
    found = dict(refill(Never(0, 9), [([0], options), ([1], free)]))
    assert found[0] == []
    assert [output.tokens for output in found[1]] == [output.tokens for output in plain]


def test_an_output_that_holds_all_but_cannot_end_is_given_as_unfinished(oracle):
    class Dead(oracle):
        def _log_probs(self, sentence, history):
            row = list(super()._log_probs(sentence, history))
            return tuple([-np.inf] * self.vocabulary if 8 in history else row)

    options = SearchOptions(beam=3, required=((8,),), max_length=5)
    [[found]] = generate(Dead(0, 9), Sequences.pad([[0]]), options)
    assert found.tokens[-1] == 8
    assert not found.finished


def test_an_output_with_all_phrases_ends_whatever_else_is_likelier(oracle):
    """8 can come first only, and only <eos> after it: every other hypothesis is likelier at every step."""

    class Once(oracle):
        def _log_probs(self, sentence, history):
            row = [-np.inf] * self.vocabulary
            if history and history[0] == 8:
                row[3] = -0.5
            else:
                row[4], row[5], row[3] = -0.1, -0.2, -0.3
                row[8] = -np.inf if history else -7.0
            return tuple(row)

    options = SearchOptions(beam=2, required=((8,),), max_length=6)
    [[found]] = generate(Once(0, 9), Sequences.pad([[0]]), options)
    assert found.tokens == [8]
    assert found.finished
