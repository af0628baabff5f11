"""The search against a slow, obviously right one, and what its results can be relied on for."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from search_options import searches
from simple_search import has, search

from jumok.data.batch import END, PAD, START, Sequences
from jumok.errors import BadInput
from jumok.search import Decoding, Hypothesis, SearchOptions, generate
from jumok.search import decoding as decoding_module
from jumok.search.scores import DeviceScores, HostScores

SEEDS = st.integers(0, 10**9)
SLOW = [HealthCheck.filter_too_much, HealthCheck.too_slow]


def sentences(names) -> Sequences:
    """Rows that the oracle tells apart by their first token."""
    return Sequences.pad([[name] for name in names])


def assert_same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    assert [h.finished for h in found] == [h.finished for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-9)
    assert [h.log_probability for h in found] == pytest.approx([h.log_probability for h in expected], abs=1e-9)


def rescore(stepper, name: int, tokens) -> float:
    """log p(tokens <eos>), asked of the model token by token."""
    sequence = (*tokens, END)
    return math.fsum(stepper.log_probs(name, tuple(sequence[:i]))[token] for i, token in enumerate(sequence))


@pytest.mark.parametrize("kind", [HostScores, DeviceScores])
@settings(max_examples=70, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), seed=SEEDS, coarse=st.booleans(), holes=st.sampled_from([0.0, 0.3]))
def test_equals_the_reference_for_any_options_whenever_rows_are_added(oracle, kind, data, seed, coarse, holes):
    vocabulary = data.draw(st.sampled_from([5, 7, 9, 600]))
    options = data.draw(st.lists(searches(min(9, vocabulary)), min_size=1, max_size=4))
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=len(options), max_size=len(options)))
    waits = data.draw(st.lists(st.integers(0, 2), min_size=len(options), max_size=len(options)))
    stepper = oracle(seed, vocabulary, coarse, holes)
    decoding = Decoding(stepper)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding_module, "scores_of", kind)  # on a CPU both can be had
        try:
            for name, (option, length, wait) in enumerate(zip(options, lengths, waits, strict=True)):
                decoding.add(Sequences.pad([[name] * length]), option)
                for _ in range(wait):
                    decoding.step()
        except BadInput:
            assume(False)  # required phrases that do not fit have a test of their own
        while not decoding.done:
            decoding.step()
    for name, (option, length) in enumerate(zip(options, lengths, strict=True)):
        expected = search(
            lambda history, name=name: stepper.log_probs(name, history),
            option,
            option.max_length,
            lambda history, name=name, length=length: stepper.attention(name, history, length),
        )
        assert_same(decoding.results[name], expected)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(1, 5), st.sampled_from([300, 600, 1025]))
def test_ties_in_a_large_vocabulary_go_to_the_lowest_token(oracle, seed, beam, vocabulary):
    stepper = oracle(seed, vocabulary, coarse=True)  # far more ties than any list can hold
    options = SearchOptions(beam=beam, nbest=beam, max_length=3)
    [found] = generate(stepper, sentences([0]), options)
    assert_same(found, search(lambda history: stepper.log_probs(0, history), options, 3))


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.7, 1.0]))
def test_a_beam_wide_enough_finds_the_best_sequence_there_is(oracle, seed, penalty):
    stepper, limit = oracle(seed, 6), 4
    words = [1, 4, 5]

    def score(tokens: tuple[int, ...]) -> float:
        return rescore(stepper, 0, tokens) / (len(tokens) + 1) ** penalty

    every = [tokens for length in range(limit) for tokens in itertools.product(words, repeat=length)]
    wide = SearchOptions(beam=6**limit, nbest=len(every), length_penalty=penalty, max_length=limit)
    [found] = generate(stepper, sentences([0]), wide)
    assert [tuple(h.tokens) for h in found] == sorted(every, key=score, reverse=True)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(5, 12), st.integers(1, 12), st.sampled_from([None, 1.0, 2.0]))
def test_greedy_is_the_argmax_loop(oracle, seed, vocabulary, limit, patience):
    stepper = oracle(seed, vocabulary)
    [[found]] = generate(stepper, sentences([3]), SearchOptions(max_length=limit, patience=patience))
    tokens: list[int] = []
    while len(tokens) < limit - 1:
        row = stepper.log_probs(3, tuple(tokens))
        best = max((token for token in range(vocabulary) if token not in (PAD, START)), key=row.__getitem__)
        if best == END:
            break
        tokens.append(best)
    assert found.tokens == tokens
    assert found.log_probability == pytest.approx(rescore(stepper, 3, tokens))


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 6), st.sampled_from([0.0, 0.5, 1.0, 1.5]))
def test_scores_are_honest_sorted_and_distinct(oracle, seed, beam, penalty):
    stepper = oracle(seed, 10, dtype=torch.float32)
    options = SearchOptions(beam=beam, nbest=beam, length_penalty=penalty, max_length=9)
    for name, row in enumerate(generate(stepper, sentences(range(3)), options)):
        assert row
        assert len({tuple(h.tokens) for h in row}) == len(row)
        assert [h.score for h in row] == sorted((h.score for h in row), reverse=True)
        for hypothesis in row:
            assert hypothesis.log_probability == pytest.approx(rescore(stepper, name, hypothesis.tokens), abs=1e-9)
            length = len(hypothesis.tokens) + 1
            assert hypothesis.score == pytest.approx(hypothesis.log_probability / length**penalty)
            assert length <= 9
            assert not {PAD, START, END} & set(hypothesis.tokens)


def test_a_beam_keeps_its_size_when_a_hypothesis_finishes(oracle):
    stepper = oracle(1, 12)
    generate(stepper, sentences(range(3)), SearchOptions(beam=4, nbest=4, max_length=9, length_penalty=2.0))
    assert stepper.rows_per_step[0] == 3, "one hypothesis a sentence at first"
    assert stepper.rows_per_step[1] == 12
    assert all(rows % 4 == 0 for rows in stepper.rows_per_step[1:])


def test_a_row_stops_as_soon_as_nothing_can_win(oracle):
    class Certain(oracle):
        """Ends after two tokens with all but no doubt."""

        def _log_probs(self, sentence, history):
            row = [-20.0] * self.vocabulary
            row[END if len(history) >= 2 else 4] = -0.01
            return tuple(row)

    stepper = Certain(0, 8)
    [[best]] = generate(stepper, sentences([0]), SearchOptions(beam=3, max_length=10))
    assert best.tokens == [4, 4]
    assert len(stepper.rows_per_step) == 3

    class Stuck(oracle):
        """[] ends with log-probability -1; what goes on has -4.1 a token, and hopes for -4.1 n / 10 at most."""

        def _log_probs(self, sentence, history):
            return tuple(-1.0 if token == END and not history else -4.1 for token in range(self.vocabulary))

    stepper = Stuck(0, 8)
    [[best]] = generate(stepper, sentences([0]), SearchOptions(beam=3, max_length=10))
    assert best.tokens == []
    assert len(stepper.rows_per_step) == 3, "after three tokens -12.3 / 10 is worse than -1"


def test_coverage_prefers_what_looked_at_everything(oracle):
    """Of two outputs of equal probability the one wins whose attention left nothing out."""

    class Looking(oracle):
        def _log_probs(self, sentence, history):
            row = [-math.inf] * self.vocabulary
            if len(history) == 2:
                row[END] = 0.0
            elif not history:
                row[4] = row[5] = math.log(0.5)
            else:
                row[6] = 0.0
            return tuple(row)

        def _attention(self, sentence, history, length):
            wide = history and history[0] == 5 and len(history) == 1
            return (0.0, 0.0, 1.0) if wide else (0.5, 0.5, 0.0)

    batch, options = Sequences.pad([[7, 7, 7]]), {"beam": 2, "nbest": 2, "max_length": 5, "length_penalty": 1.0}
    [plain] = generate(Looking(0, 8), batch, SearchOptions(**options))
    assert [h.tokens for h in plain] == [[4, 6], [5, 6]]
    [found] = generate(Looking(0, 8), batch, SearchOptions(**options, coverage_penalty=0.2))
    assert [h.tokens for h in found] == [[5, 6], [4, 6]]
    assert found[0].score == pytest.approx(found[0].log_probability / 3)
    # [4 6]: three steps look at the first two positions with 0.5 each (1.5, counted as 1), at the third never (1e-10)
    assert found[1].score == pytest.approx(found[1].log_probability / 3 + 0.2 * math.log(1e-10))


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(st.data(), SEEDS)
def test_what_is_asked_for_holds_in_every_output(oracle, data, seed):
    options = data.draw(searches(9))
    stepper = oracle(seed, 9)
    try:
        [found] = generate(stepper, Sequences.pad([[0, 0]]), options)
    except BadInput:
        assume(False)
    assert found
    for output in found:
        tokens = tuple(output.tokens)
        own = tokens[len(options.prefix) :]
        assert tokens[: len(options.prefix)] == options.prefix
        assert len(tokens) + 1 <= options.max_length
        assert not set(own) & set(options.forbidden)
        for phrase in options.forbidden_phrases:
            assert not has(tokens, phrase)
        size = options.no_repeat_ngram
        if size and not options.prefix:
            ngrams = [tokens[i : i + size] for i in range(len(tokens) - size + 1)]
            assert len(set(ngrams)) == len(ngrams)
        if output.finished:
            assert len(tokens) + 1 >= options.min_length
            assert all(has(tokens, phrase) for phrase in options.required)
