"""Draws: the right distribution, the same numbers whatever the batch, and the cuts of top-k and top-p."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from simple_search import drawn

from jumok.data.batch import END, Sequences
from jumok.search import SearchOptions, generate
from jumok.search.sampling import draw, uniform


def test_numbers_are_uniform_and_depend_on_all_three():
    numbers = [uniform(seed, stream, position) for seed in range(20) for stream in range(20) for position in range(10)]
    assert len(set(numbers)) == 4000
    assert all(0 <= number < 1 for number in numbers)
    tenths = Counter(int(number * 10) for number in numbers)
    # fixed numbers, so that this cannot fail by chance: chi-square with 9 degrees of freedom, 27.9 at 0.1 %
    assert sum((tenths[tenth] - 400) ** 2 / 400 for tenth in range(10)) < 27.9
    assert uniform(1, 23, 4) != uniform(12, 3, 4) != uniform(1, 2, 34)


def test_the_distribution_is_followed():
    log_probs = torch.tensor([[0.5, 0.25, 0.125, 0.125, 0.0]]).log()
    options = [SearchOptions(sample=True)]
    grid = [(place + 0.5) / 1000 for place in range(1000)]
    found = Counter(int(draw(log_probs, options, [number])) for number in grid)
    assert found == {0: 500, 1: 250, 2: 125, 3: 125}
    cold = Counter(int(draw(log_probs, [SearchOptions(sample=True, temperature=0.5)], [number])) for number in grid)
    squares = [0.25, 0.0625, 0.015625, 0.015625]
    for token, square in enumerate(squares):
        assert cold[token] == pytest.approx(1000 * square / sum(squares), abs=1.1)


@pytest.mark.parametrize("temperature", [5e-324, 1e-310, 1e-300, 1e300])
@pytest.mark.parametrize("top_p", [5e-324, 1e-9, 0.5, 1.0])
def test_extremes_find_a_token(temperature, top_p):
    log_probs = torch.tensor([[-math.inf, 0.2, 0.5, 0.3]]).log_softmax(1)
    options = [SearchOptions(sample=True, temperature=temperature, top_p=top_p)]
    found = {int(draw(log_probs, options, [number])) for number in (0.0, 0.3, 0.999999)}
    assert found <= {1, 2, 3}
    assert temperature == 1e300 or found == {2}  # so cold that only the likeliest is left


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, -0.5, -1.0, -2.5, -7.0, -math.inf]), min_size=2, max_size=9),
    st.lists(
        st.tuples(st.sampled_from([0.5, 1.0, 3.0]), st.integers(0, 12), st.sampled_from([0.3, 0.8, 1.0])),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 99),
)
def test_cuts_of_rows_that_differ(values, cuts, seed):
    possible = [token for token, value in enumerate(values) if value > -math.inf]
    if not possible:
        return
    options = [
        SearchOptions(sample=True, temperature=t, top_k=k, top_p=p, seed=seed, stream=stream)
        for stream, (t, k, p) in enumerate(cuts)
    ]
    numbers = [uniform(option.seed, option.stream, 5) for option in options]
    found = draw(torch.tensor([values] * len(cuts), dtype=torch.float64), options, numbers).tolist()
    assert found == [drawn(values, possible, option, 5) for option in options]


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
def test_the_ends_of_the_interval_are_possible_tokens(number):
    log_probs = torch.tensor([[-math.inf, -1.0, -2.0, -math.inf]])
    assert int(draw(log_probs, [SearchOptions(sample=True)], [number])) in (1, 2)


def test_streams_differ_and_seeds_repeat(oracle):
    stepper = oracle(3, 40)

    def outputs(seed: int, streams: list[int]) -> list[list[int]]:
        options = [SearchOptions(sample=True, max_length=12, seed=seed, stream=stream) for stream in streams]
        return [row[0].tokens for row in generate(stepper, Sequences.pad([[0]] * len(streams)), options)]

    first = outputs(1, list(range(8)))
    assert len({tuple(tokens) for tokens in first}) > 4
    assert outputs(1, [5, 2]) == [first[5], first[2]]
    assert outputs(2, list(range(8))) != first


def test_a_sample_has_the_probability_the_model_gives_it(oracle):
    stepper = oracle(3, 12)
    options = SearchOptions(sample=True, temperature=2.0, max_length=9, seed=4, length_penalty=0.0)
    [[found]] = generate(stepper, Sequences.pad([[0]]), options)
    sequence = (*found.tokens, END)
    total = sum(stepper.log_probs(0, sequence[:place])[token] for place, token in enumerate(sequence))
    assert found.log_probability == pytest.approx(total)
    [[greedy]] = generate(stepper, Sequences.pad([[0]]), SearchOptions(max_length=9))
    [[one]] = generate(stepper, Sequences.pad([[0]]), SearchOptions(sample=True, top_k=1, max_length=9))
    assert one.tokens == greedy.tokens
