"""The search against a slow, obviously right one, and what a caller can rely on."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.batch import END, PAD, START, Sequences
from jumok.errors import BadInput, Failure
from jumok.search import Completed, Decoding, Finished, Hypothesis, Pruned, SearchOptions, Token, generate

SEEDS = st.integers(0, 10**9)


def sentences(names) -> Sequences:
    """Rows that the oracle tells apart by their first token."""
    return Sequences.pad([[name] for name in names])


def reference(log_probs, options: SearchOptions, limit: int) -> list[Hypothesis]:
    """Beam search to the bitter end: lists, no stopping rule, no shortcuts."""
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    finished: list[Hypothesis] = []
    for length in range(1, limit + 1):
        candidates = []
        for parent, (tokens, total) in enumerate(live):
            for token, value in enumerate(log_probs(tokens)):
                if length <= len(options.prefix):
                    allowed = token == options.prefix[length - 1]
                elif length == limit:
                    allowed = token == END
                else:
                    allowed = token not in options.forbidden
                if allowed and value > -math.inf:
                    candidates.append((-(total + value), parent, token))
        if not candidates and not finished:
            size = max(1, length - 1) ** options.length_penalty
            finished = [Hypothesis(list(tokens), total / size, total, False) for tokens, total in live]
        following = []
        for negative, parent, token in sorted(candidates)[: options.beam]:
            tokens = live[parent][0]
            if token == END:
                row = log_probs(tokens)
                best = max(row[other] for other in range(len(row)) if other not in options.forbidden or other == END)
                willing = length < limit or row[END] >= best
                finished.append(
                    Hypothesis(list(tokens), -negative / length**options.length_penalty, -negative, willing)
                )
            else:
                following.append(((*tokens, token), -negative))
        live = following
    return sorted(finished, key=lambda hypothesis: -hypothesis.score)[: options.nbest]


def assert_same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    assert [h.finished for h in found] == [h.finished for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-9)
    assert [h.log_probability for h in found] == pytest.approx([h.log_probability for h in expected], abs=1e-9)


@st.composite
def searches(draw, vocabulary: int) -> SearchOptions:
    beam = draw(st.integers(1, 7))
    limit = draw(st.integers(1, 7))
    return SearchOptions(
        beam=beam,
        nbest=draw(st.integers(1, beam)),
        length_penalty=draw(st.sampled_from([0.0, 0.6, 1.0, 2.0])),
        max_length=limit,
        prefix=tuple(draw(st.lists(st.sampled_from([0, 1, 2, *range(4, vocabulary)]), max_size=min(3, limit - 1)))),
        forbidden=draw(st.sampled_from([(PAD, START), (), (PAD, 1, START), (PAD, START, START), (END,)])),
    )


@settings(max_examples=150, deadline=None)
@given(st.data(), SEEDS, st.integers(4, 9), st.booleans(), st.sampled_from([0.0, 0.3]))
def test_equals_the_reference_for_any_mix_of_options(oracle, data, seed, vocabulary, coarse, holes):
    options = data.draw(st.lists(searches(vocabulary), min_size=1, max_size=4))
    stepper = oracle(seed, vocabulary, coarse, holes)
    found = generate(stepper, sentences(range(len(options))), options)
    for name, (row, option) in enumerate(zip(found, options, strict=True)):
        expected = reference(lambda history, name=name: stepper.log_probs(name, history), option, option.max_length)
        assert_same(row, expected)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(1, 5))
def test_ties_in_a_large_vocabulary_go_to_the_lowest_token(oracle, seed, beam):
    stepper = oracle(seed, 300, coarse=True)  # far more ties than the shortlist can hold
    options = SearchOptions(beam=beam, nbest=beam, max_length=3)
    [found] = generate(stepper, sentences([0]), options)
    assert_same(found, reference(lambda history: stepper.log_probs(0, history), options, 3))


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


def rescore(stepper, name: int, tokens) -> float:
    """log p(tokens <eos>), asked of the model token by token."""
    sequence = (*tokens, END)
    return math.fsum(stepper.log_probs(name, tuple(sequence[:i]))[token] for i, token in enumerate(sequence))


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(5, 12), st.integers(1, 12))
def test_greedy_is_the_argmax_loop(oracle, seed, vocabulary, limit):
    stepper = oracle(seed, vocabulary)
    [[found]] = generate(stepper, sentences([3]), SearchOptions(max_length=limit))
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


# ---------------------------------------------------------------- batches


class TinyRecurrent(torch.nn.Module):
    """A real network with random weights: what the search will meet."""

    def __init__(self, seed: int, vocabulary: int = 23, width: int = 12):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.cell = torch.nn.GRUCell(width, width)
        self.head = torch.nn.Linear(width, vocabulary)
        with torch.no_grad():
            self.head.weight.mul_(4)
            self.head.bias[END] += 2

    def encode(self, batch: Sequences):
        state = torch.zeros(len(batch), self.cell.hidden_size)
        for column in range(batch.ids.size(1)):
            following = self.cell(self.embedding(batch.ids[:, column]), state)
            state = torch.where(batch.mask[:, column, None], following, state)
        return state

    def start(self, memory, rows, capacity):
        return torch.zeros_like(memory)

    def step(self, tokens, positions, memory, cache):
        state = self.cell(self.embedding(tokens) + memory, cache)
        return self.head(state).log_softmax(-1), state

    def select(self, memory, cache, rows):
        return memory[rows], cache[rows]


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(1, 5), st.sampled_from([None, 1.0]))
def test_a_row_does_not_depend_on_its_batch(seed, beam, patience):
    source = random.Random(seed)
    model = TinyRecurrent(seed)
    rows = [[source.randint(4, 22) for _ in range(source.randint(1, 9))] + [END] for _ in range(7)]
    options = [
        SearchOptions(beam=beam, nbest=source.randint(1, beam), patience=patience, max_extra=source.randint(1, 9))
        for _ in rows
    ]
    alone = [generate(model, Sequences.pad([row]), option)[0] for row, option in zip(rows, options, strict=True)]
    order = source.sample(range(7), 7)
    together = generate(model, Sequences.pad(rows), options)
    shuffled = generate(model, Sequences.pad([rows[i] for i in order]), [options[i] for i in order])
    for index, expected in enumerate(alone):
        for found in (together[index], shuffled[order.index(index)]):
            assert [h.tokens for h in found] == [h.tokens for h in expected]
            assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-5)


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


def test_a_row_stops_as_soon_as_nothing_can_win(oracle):
    class Certain(oracle):
        """Ends after two tokens with all but no doubt."""

        def _log_probs(self, sentence, history):
            row = [-20.0] * self.vocabulary
            row[END if len(history) >= 2 else 4] = -0.01
            return tuple(row)

    stepper = Certain(0, 8)
    [[best]] = generate(stepper, sentences([0]), SearchOptions(beam=3, max_length=100))
    assert best.tokens == [4, 4]
    assert len(stepper.rows_per_step) == 3


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


def test_rows_added_later_give_the_same_results(oracle):
    stepper = oracle(11, 9)
    options = SearchOptions(beam=3, nbest=3, max_length=8)
    decoding = Decoding(stepper)
    rows = decoding.add(sentences([0, 1]), options)
    decoding.step()
    decoding.step()
    rows += decoding.add(sentences([2]), options)
    while not decoding.done:
        decoding.step()
    assert rows == [0, 1, 2]
    assert [decoding.results[row] for row in rows] == generate(stepper, sentences([0, 1, 2]), options)


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


@settings(max_examples=40, deadline=None)
@given(st.data(), SEEDS)
def test_events_tell_the_whole_tree(oracle, data, seed):
    stepper = oracle(seed, 8)
    options = data.draw(st.lists(searches(8), min_size=1, max_size=3))
    decoding = Decoding(stepper, events=True)
    rows = decoding.add(sentences(rows_of := range(len(options))), options)
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
