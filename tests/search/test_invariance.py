"""What a row's result does not depend on: its neighbours, their order, and when it came into the batch."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from invariance import Trembling
from torch import nn

from jumok.data.batch import END, START, source_batch
from jumok.models.seq2seq import Seq2Seq
from jumok.recipe import Seq2SeqSection
from jumok.search import Decoding, Hypothesis, SearchOptions, generate, refill

KINDS: list[dict[str, Any]] = [
    {"attention": "none", "cell": "gru"},
    {"attention": "luong", "bidirectional": True},
    {"attention": "luong", "input_feeding": True, "cell": "rnn"},
    {"attention": "bahdanau", "scorer": "additive", "cell": "gru", "reverse_source": True},
]


def model_of(seed: int, **options: Any) -> Seq2Seq:
    """Random weights, bold enough to write different things for different sources, and to end."""
    torch.manual_seed(seed)
    model = Seq2Seq(Seq2SeqSection(**{"width": 16, "embedding": 12, "layers": 1, "dropout": 0.0, **options}), 40, 41)
    with torch.no_grad():
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.5)
        model.bias[END] += 1.0
    return model.eval()


def searched(model: Any, rows: list[list[int]], options: list[SearchOptions]) -> list[list[Hypothesis]]:
    return generate(model, source_batch(rows), options)


def added(model: Seq2Seq, rows: list[list[int]], options: list[SearchOptions], source: random.Random) -> Any:
    """A few at a time, between steps."""
    decoding, names, rest = Decoding(model), [], list(range(len(rows)))
    while rest or not decoding.done:
        if rest and (decoding.done or source.random() < 0.5):
            now, rest = rest[: (count := source.randint(1, 3))], rest[count:]
            names += decoding.add(source_batch([rows[i] for i in now]), [options[i] for i in now])
        decoding.step()
    return [decoding.results[name] for name in names]


def refilled(model: Seq2Seq, rows: list[list[int]], options: list[SearchOptions], capacity: int, ahead: int) -> Any:
    found = dict(refill(model, zip(rows, options, strict=True), capacity, ahead))
    return [found[place] for place in range(len(rows))]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_any_options_alone_together_shuffled_added_and_refilled(kind, seed):
    """In float64, where only the order of operations is left to differ: every n-best list, token for token."""
    source = random.Random(seed)
    model = model_of(seed, **kind).double()
    rows = [[source.randint(4, 39) for _ in range(source.randint(0, 9))] for _ in range(9)]

    def drawn(place: int) -> SearchOptions:
        beam = source.randint(1, 5)
        options: dict[str, Any] = {
            "beam": beam,
            "nbest": source.randint(1, beam),
            "max_extra": source.randint(3, 9),
            "length_penalty": source.choice([0.0, 1.0]),
            "patience": source.choice([None, 1.0]),
            "no_repeat_ngram": source.choice([0, 2]),
            "coverage_penalty": 0.0 if kind["attention"] == "none" else source.choice([0.0, 0.3]),
        }
        special = source.randint(0, 3)
        if special == 0:
            options |= {"beam": 1, "nbest": 1, "sample": True, "top_k": source.choice([0, 9]), "stream": place}
        elif special == 1:
            options |= {"required": ((source.randint(4, 39), source.randint(4, 39)),)}
        elif special == 2:
            options |= {"prefix": (source.randint(8, 39),), "forbidden_phrases": ((5, 6), (7,))}
        return SearchOptions(**options)

    options = [drawn(place) for place in range(len(rows))]
    alone = [searched(model, [row], [option])[0] for row, option in zip(rows, options, strict=True)]
    order = source.sample(range(len(rows)), len(rows))
    shuffled = searched(model, [rows[i] for i in order], [options[i] for i in order])
    ways = {
        "together": searched(model, rows, options),
        "shuffled": [shuffled[order.index(i)] for i in range(len(rows))],
        "added": added(model, rows, options, source),
        "refilled": refilled(model, rows, options, source.randint(1, 6), source.randint(1, 2)),
    }
    for way, found in ways.items():
        for place, (one, other) in enumerate(zip(alone, found, strict=True)):
            assert [h.tokens for h in other] == [h.tokens for h in one], (way, place, options[place])
            assert [h.score for h in other] == pytest.approx([h.score for h in one], abs=1e-5)


def is_tie(model: Seq2Seq, row: list[int], options: SearchOptions) -> bool:
    """Whether log-probabilities that move by less than 1e-5, or than float32 itself moves them, give another output."""
    plain = searched(model, [row], [options])[0][0].tokens
    size = max(1e-5, 4 * own_error(model, row, plain))
    moved = (searched(Trembling(model, size, draw), [row], [options])[0][0].tokens for draw in range(50))
    return any(tokens != plain for tokens in moved)


@torch.no_grad()
def own_error(model: Seq2Seq, row: list[int], tokens: list[int]) -> float:
    """How far float32 is from float64 along an output: recurrences of bold weights make much of a little."""
    ids = torch.tensor([[START, *tokens]])
    one, other = (
        torch.log_softmax(each.head(each(source_batch([row]), ids)).double(), -1)
        for each in (model, copy.deepcopy(model).double())
    )
    return float((one - other).abs().max())


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_float32(kind, beam, seed):
    """Ties below 1e-5 may fall either way, and nothing else."""
    source = random.Random(seed)
    rows = [[source.randint(4, 39) for _ in range(source.randint(1, 12))] for _ in range(80)]
    options = [SearchOptions(beam=beam, min_length=4, max_extra=5, patience=1.0)] * len(rows)
    for number in range(seed, seed + 20):
        model = model_of(number, **kind)
        alone = [searched(model, [row], options[:1])[0][0] for row in rows]
        if len({tuple(h.tokens) for h in alone}) > 10:  # a model that says the same to all shows nothing
            break
    else:
        pytest.fail("every model says the same to all")
    for found in (searched(model, rows, options), refilled(model, rows, options, 16, 2)):
        different = [
            place for place, (one, other) in enumerate(zip(alone, found, strict=True)) if one.tokens != other[0].tokens
        ]
        assert all(is_tie(model, rows[place], options[0]) for place in different), different
