"""Required phrases where no n-gram may come twice: what is called possible can be written, what is not cannot."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jumok.data.batch import Sequences
from jumok.search import SearchOptions, generate
from jumok.search.phrases import holds, repeats, together

phrase = st.lists(st.integers(4, 6), min_size=1, max_size=3).map(tuple)


def can_be_written(output, phrases, size, given, room):
    """By trying every output, with one more token than those of the phrases."""
    if all(holds(output, each) for each in phrases):
        return True
    return room > 0 and any(
        can_be_written((*output, token), phrases, size, given, room - 1)
        for token in range(4, 8)
        if not repeats((*output, token), size, given)
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(phrase, min_size=1, max_size=3), st.lists(st.integers(4, 6), max_size=3).map(tuple), st.integers(1, 3))
@example([(5, 6, 4), (5, 6, 5)], (), 2)
@example([(4, 5, 6), (5, 6, 4)], (4, 4, 5), 2)
@example([(4, 4, 5)], (4, 4), 1)
@example([(4, 4, 5), (5, 6)], (4, 4), 1)
def test_together_is_possible_exactly_where_an_output_is(phrases, prefix, size):
    found = together(phrases, prefix, size)
    if found is None:
        assert not can_be_written(prefix, phrases, size, len(prefix), 5)
        return
    output = found.opening
    for separator, each in enumerate(found.phrases, 100):
        output = (*output, separator, *each)
    assert output[: len(prefix)] == prefix
    assert all(holds(output, each) for each in phrases)
    assert not repeats(output, size, len(prefix))


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(
    ("required", "prefix", "held"),
    [
        (((6, 7, 8), (5, 6, 7)), (), (5, 6, 7, 8)),
        (((5, 6, 7),), (4, 5, 6), (4, 5, 6, 7)),
        (((5, 6),), (5, 6), (5, 6)),
    ],
)
def test_phrases_that_must_overlap_are_placed_as_one(oracle, beam, required, prefix, held):
    options = SearchOptions(beam=beam, required=required, prefix=prefix, no_repeat_ngram=2, max_length=12)
    for seed in range(20):
        [[found]] = generate(oracle(seed, 10), Sequences.pad([[0]]), options)
        assert holds(tuple(found.tokens), held)
        assert not repeats(tuple(found.tokens), 2)
