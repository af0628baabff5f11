"""A search under way: rows come and go, events tell the tree, and what goes wrong is said."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from search_options import searches

from jumok.data.batch import END, PAD, START, Sequences
from jumok.errors import BadInput, Failure
from jumok.search import Completed, Decoding, Finished, Hypothesis, Pruned, SearchOptions, Token, generate

SEEDS = st.integers(0, 10**9)


def sentences(names) -> Sequences:
    """Rows that the oracle tells apart by their first token."""
    return Sequences.pad([[name] for name in names])


# ---------------------------------------------------------------- batches


@given(data=st.data(), seed=SEEDS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_comes_out_goes_on_from_what_was_there(oracle, data, seed):
    """At every step, each of the n-best goes on from a live hypothesis or has finished; the best is the first of those
    that have, if it is among them."""
    each = data.draw(st.lists(searches(7), min_size=1, max_size=3))
    decoding = Decoding(oracle(seed, 7))
    try:
        rows = decoding.add(sentences(range(len(each))), each)
    except BadInput:
        assume(False)
    seen: dict[int, list[tuple[list[list[int]], list[Hypothesis]]]] = {row: [] for row in rows}
    while not decoding.done:
        for row in decoding.live:
            seen[row].append(decoding.outputs(row))
        decoding.step()
    for row, steps in seen.items():
        for live, finished in steps:
            begun = {tuple(tokens) for tokens in live}
            for place, output in enumerate(decoding.results[row]):
                tokens = tuple(output.tokens)
                done = [tuple(one.tokens) for one in (finished if place else finished[:1])]
                assert tokens in done or any(tokens[: len(start)] == start for start in begun)


def test_the_first_step_has_one_row_per_sentence_and_done_rows_leave(oracle):
    stepper = oracle(1, 12)
    options = [SearchOptions(beam=4, nbest=4, max_length=limit) for limit in (2, 9, 4)]
    decoding = Decoding(stepper)
    decoding.add(sentences(range(3)), options)
    while not decoding.done:
        waiting = len(decoding.live)
        decoding.step()
        assert stepper.rows_per_step[-1] <= 4 * waiting
    assert stepper.rows_per_step[0] == 3
    assert len(stepper.rows_per_step) <= 9
    assert max(stepper.rows_per_step[2:]) <= 8, "the row of length 2 has left"
    assert max(stepper.rows_per_step[4:]) <= 4, "the row of length 4 has left"


def test_patience_stops_after_that_many_finished(oracle):
    stepper = oracle(5, 8)
    options = SearchOptions(beam=4, max_length=40, length_penalty=2.0, nbest=4)
    generate(stepper, sentences(range(4)), options)
    thorough = len(stepper.rows_per_step)
    decoding = Decoding(stepper)
    decoding.add(sentences(range(4)), replace(options, patience=1.0))
    finished = dict.fromkeys(range(4), 0)
    stepper.rows_per_step.clear()
    while not decoding.done:
        for row in decoding.live:
            assert finished[row] < 4
        for event in decoding.step():
            if isinstance(event, Finished):
                finished[event.row] += 1
    assert all(count >= 4 for count in finished.values())
    assert len(stepper.rows_per_step) < thorough


def test_max_length_comes_from_each_source(oracle):
    class Endless(oracle):
        def _log_probs(self, sentence, history):
            return tuple(-9.0 if token == END else -0.1 * token for token in range(self.vocabulary))

    batch = Sequences.pad([[7], [7, 7, 7, 7], [7, 7]])
    found = generate(Endless(0, 8), batch, SearchOptions(beam=2, max_ratio=1.5, max_extra=1))
    assert [len(row[0].tokens) + 1 for row in found] == [2, 7, 4]
    assert not any(row[0].finished for row in found)
    assert found[0][0].log_probability == pytest.approx(-0.1 - 9.0), "the forced <eos> is paid for"


def test_max_length_one_is_the_empty_output(oracle):
    stepper = oracle(2, 9)
    [[only]] = generate(stepper, sentences([0]), SearchOptions(beam=3, max_length=1))
    assert only.tokens == []
    assert only.log_probability == pytest.approx(stepper.log_probs(0, ())[END])


def test_an_empty_batch_asks_the_model_nothing(oracle):
    stepper = oracle(0, 9)
    assert generate(stepper, sentences([]), SearchOptions()) == []
    assert stepper.rows_per_step == []


def test_rows_added_later_join_the_running_batch(oracle):
    stepper = oracle(11, 9)
    early, late = SearchOptions(beam=3, nbest=3, max_length=8), SearchOptions(beam=2, max_length=5, length_penalty=0.0)
    decoding = Decoding(stepper)
    rows = decoding.add(sentences([0, 1]), early)
    decoding.step()
    decoding.step()
    rows += decoding.add(sentences([2]), late)
    assert rows == [0, 1, 2] == decoding.live
    while not decoding.done:
        decoding.step()
    assert stepper.rows_per_step[2] == 7, "one step for the two rows of three hypotheses and the new one"
    assert [decoding.results[row] for row in rows] == generate(stepper, sentences([0, 1, 2]), [early, early, late])


# ---------------------------------------------------------------- events


@pytest.mark.parametrize("when", [0, 1, 3])
def test_a_cancelled_row_leaves_and_the_others_do_not_notice(oracle, when):
    stepper = oracle(4, 9)
    options = SearchOptions(beam=3, nbest=3, max_length=12, length_penalty=2.0)
    expected = generate(stepper, sentences(range(3)), options)
    decoding = Decoding(stepper, events=True)
    decoding.add(sentences(range(3)), options)
    for _ in range(when):
        decoding.step()
    assert 1 in decoding.live
    decoding.cancel(1)
    assert decoding.live == [0, 2]
    events = []
    while not decoding.done:
        events += decoding.step()
    assert {event.reason for event in events if isinstance(event, Pruned) and event.row == 1} <= {"cancelled"}
    assert not any(isinstance(event, Token | Finished | Completed) and event.row == 1 for event in events)
    assert decoding.results == {0: expected[0], 2: expected[2]}
    decoding.cancel(0)
    assert decoding.results[0] == expected[0]


def test_cancelling_the_last_row_ends_the_search(oracle):
    decoding = Decoding(oracle(0, 9))
    [row] = decoding.add(sentences([0]), SearchOptions(max_length=5))
    decoding.cancel(row)
    assert decoding.done
    assert decoding.results == {}
    assert decoding.step() == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data(), SEEDS)
def test_events_tell_the_whole_tree(oracle, data, seed):
    stepper = oracle(seed, 8)
    options = data.draw(st.lists(searches(8), min_size=1, max_size=3))
    decoding = Decoding(stepper, events=True)
    try:
        rows = decoding.add(sentences(rows_of := range(len(options))), options)
    except BadInput:
        assume(False)
    tree: dict[int, dict[int, tuple[int, ...]]] = {row: {0: ()} for row in rows}
    closed: dict[int, set[int]] = {row: set() for row in rows}
    outputs: dict[int, list[Hypothesis]] = {row: [] for row in rows}
    while not decoding.done:
        for event in decoding.step():
            if isinstance(event, Completed):
                assert event.hypotheses == decoding.results[event.row]
                continue
            nodes = tree[event.row]
            assert event.parent in nodes
            assert event.parent not in closed[event.row]
            if isinstance(event, Token):
                assert event.hypothesis not in nodes
                nodes[event.hypothesis] = (*nodes[event.parent], event.token)
                assert event.score == pytest.approx(
                    event.log_probability / len(nodes[event.hypothesis]) ** options[event.row].length_penalty
                )
            elif isinstance(event, Finished):
                assert event.hypothesis not in nodes
                assert tuple(event.output.tokens) == nodes[event.parent]
                outputs[event.row].append(event.output)
            else:
                assert event.hypothesis not in closed[event.row]
                closed[event.row].add(event.hypothesis)
    for row in rows:
        best = sorted(outputs[row], key=lambda hypothesis: -hypothesis.score)[: options[row].nbest]
        if best:  # else nothing could finish, and what there was came out as it was
            assert decoding.results[row] == best
    assert generate(stepper, sentences(rows_of), options) == [decoding.results[row] for row in rows]


def test_the_events_of_a_row_do_not_depend_on_its_neighbours(oracle):
    narrow, wide = SearchOptions(beam=2, max_length=5), SearchOptions(beam=6, max_length=8, forbidden=(PAD, 1, START))

    def told(names, options):
        decoding = Decoding(oracle(8, 30), events=True)
        decoding.add(sentences(names), options)
        events = []
        while not decoding.done:
            events += [event for event in decoding.step() if event.row == 0]
        return events

    assert told([0, 1], [narrow, wide]) == told([0], narrow)


def test_without_events_only_what_is_free_is_reported(oracle):
    decoding = Decoding(oracle(3, 9))
    decoding.add(sentences([0, 1]), SearchOptions(beam=3, max_length=6))
    seen = []
    while not decoding.done:
        seen += decoding.step()
    assert {type(event) for event in seen} == {Finished, Completed}


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("token", [4, 150, 299])
def test_a_model_that_yields_nan_is_named_by_row_and_step(oracle, token):
    class Broken(oracle):
        def _log_probs(self, sentence, history):
            row = list(super()._log_probs(sentence, history))
            if sentence == 1 and len(history) == 2:
                row[token] = math.nan
            return tuple(row)

    with pytest.raises(Failure, match=r"row 1, step 3: .*not a number"):
        generate(Broken(7, 300), sentences([0, 1]), SearchOptions(beam=2, max_length=6))


def test_logits_instead_of_log_probabilities_are_refused(oracle):
    class Logits(oracle):
        def _log_probs(self, sentence, history):
            return tuple(float(token) for token in range(self.vocabulary))

    with pytest.raises(Failure, match=r"row 0, step 1: .*above 0"):
        generate(Logits(7, 9), sentences([0]), SearchOptions(max_length=6))


def test_as_many_options_as_rows(oracle):
    with pytest.raises(BadInput, match="2 search options for 3 rows"):
        generate(oracle(0, 9), sentences(range(3)), [SearchOptions()] * 2)


@pytest.mark.parametrize(
    ("prefix", "message"),
    [((4, 5, 6), "exceed max_length 3"), ((4, END), "holds <eos>"), ((4, 99), "99 is outside the vocabulary of 9")],
)
def test_a_prefix_that_cannot_be(oracle, prefix, message):
    with pytest.raises(BadInput, match=message):
        generate(oracle(0, 9), sentences([0]), SearchOptions(max_length=3, prefix=prefix))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"required": ((4, 99),)}, "row 0: required token 99 is outside the vocabulary of 9"),
        ({"forbidden": (PAD, 99)}, "row 0: forbidden token 99 is outside the vocabulary of 9"),
        ({"forbidden_phrases": ((4, 5), (99,))}, "row 0: forbidden token 99 is outside"),
        ({"forbidden_phrases": ((4, 99),)}, "row 0: forbidden token 99 is outside"),
        ({"required": ((4, END),)}, "row 0: a phrase holds <eos>"),
        ({"required": ((4, 5), (6,)), "prefix": (7,), "max_length": 4}, r"required phrases \(3 tokens\).*max_length 4"),
        ({"required": ((4, 5),), "prefix": (7, 4), "max_length": 3}, r"required phrases \(1 tokens\).*max_length 3"),
        ({"min_length": 9, "max_length": None, "max_ratio": 2.0, "max_extra": 4}, "min_length 9 exceeds .*6"),
        ({"max_length": None, "max_ratio": 0.0, "max_extra": 2, "prefix": (4, 5)}, "prefix of 2 and <eos> exceed"),
    ],
)
def test_what_cannot_be_done_is_said(oracle, options, message):
    with pytest.raises(BadInput, match=message):
        generate(oracle(0, 9), sentences([0]), SearchOptions(**{"max_length": 6, "beam": 2, **options}))


def test_a_bad_row_does_not_disturb_those_that_are_under_way(oracle):
    stepper, options = oracle(0, 9), SearchOptions(beam=3, max_length=6)
    decoding = Decoding(stepper)
    decoding.add(sentences([0, 1]), options)
    decoding.step()
    with pytest.raises(BadInput, match="row 2: prefix token 99"):
        decoding.add(sentences([2]), replace(options, prefix=(99,)))
    [row] = decoding.add(sentences([3]), options)
    while not decoding.done:
        decoding.step()
    assert row == 2
    assert [decoding.results[row] for row in range(3)] == generate(stepper, sentences([0, 1, 3]), options)


@pytest.mark.parametrize("options", [{}, {"prefix": (4, 5, 6, 7)}, {"sample": True}, {"max_length": 3}, {"beam": 3}])
def test_nan_is_found_in_every_kind_of_step(oracle, options):
    class Broken(oracle):
        def _log_probs(self, sentence, history):
            return (math.nan,) * self.vocabulary if len(history) == 2 else super()._log_probs(sentence, history)

    if options.get("beam"):
        options = {**options, "required": ((4,), (5, 6))}
    with pytest.raises(Failure, match=r"row 0, step 3: .*not a number"):
        generate(Broken(7, 30), sentences([0]), SearchOptions(**{"max_length": 9, "min_length": 3, **options}))


def test_coverage_needs_lengths(oracle):
    class Nameless(Sequences):
        lengths = None

        def __init__(self, ids):
            object.__setattr__(self, "ids", ids)

    with pytest.raises(BadInput, match="coverage_penalty"):
        Decoding(oracle(0, 9)).add(Nameless(sentences([0]).ids), SearchOptions(max_length=3, coverage_penalty=0.1))
