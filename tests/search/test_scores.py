"""The best continuations of every row, on the host and from a device, against sorting everything."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.batch import Sequences
from jumok.search import SearchOptions, generate
from jumok.search.scores import DeviceScores, HostScores, NotLogProbabilities

END = 3
KINDS = [HostScores, DeviceScores]


def everything(log_probs, totals, rows, beams, banned):
    """(row, parent, token, total) of the best of each row, from a list of all."""
    listed = [
        (row, -(float(total) + float(value)), parent, token)
        for parent, (row, total, values) in enumerate(zip(rows, totals, log_probs.double().tolist(), strict=True))
        for token, value in enumerate(values)
        if token != END and token not in banned and value > -np.inf
    ]
    best = [item for row, beam in enumerate(beams) for item in sorted(i for i in listed if i[0] == row)[:beam]]
    return [(row, parent, token, -negative) for row, negative, parent, token in best]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    vocabulary=st.sampled_from([5, 60, 511, 512, 575, 767]),
    distinct=st.sampled_from([2, 6, 10**6]),
    data=st.data(),
)
def test_the_best_of_each_row(kind, seed, vocabulary, distinct, data):
    generator = np.random.default_rng(seed)
    equal = data.draw(st.booleans())
    rows = data.draw(st.integers(1, 4))
    beam = data.draw(st.sampled_from([1, 2, 5, 40]))
    beams = [beam] * rows if equal else generator.integers(1, beam + 1, rows).tolist()
    counts = [beam] * rows if equal and data.draw(st.booleans()) else generator.integers(1, beam + 1, rows).tolist()
    row_N = np.repeat(np.arange(rows), counts)
    total_N = -generator.integers(0, 3, len(row_N)).astype(float)
    log_probs = -torch.from_numpy(generator.integers(0, distinct, (len(row_N), vocabulary)) / distinct).float()
    log_probs[torch.rand(log_probs.shape, generator=torch.Generator().manual_seed(seed)) < 0.2] = -torch.inf
    banned = (0, 2)
    even = counts[0] if equal and len(set(counts)) == 1 else 0
    expected = everything(log_probs, total_N, row_N.tolist(), beams, banned)
    ends = log_probs[:, END].double().numpy()
    scores = kind(log_probs, END, banned)
    found = scores.top(total_N, row_N, np.array(beams), even)
    assert list(zip(*(part.tolist() for part in found), strict=True)) == expected
    np.testing.assert_array_equal(scores.end, ends)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_values_arrive_unchanged_in_any_precision(kind, dtype):
    log_probs = torch.randn(5, 50_000, dtype=torch.float64).log_softmax(-1).to(dtype)
    before = log_probs.double().numpy().copy()
    scores = kind(log_probs, END, (0,))
    found = scores.top(np.zeros(5), np.arange(5), np.full(5, 4), 1)
    np.testing.assert_array_equal(found.total, before[found.parent, found.token])
    np.testing.assert_array_equal(scores.end, before[:, END])
    picked = np.array([0, END, 7, 49_999, 3])
    np.testing.assert_array_equal(scores.pick(np.arange(5), picked), before[np.arange(5), picked])
    np.testing.assert_array_equal(scores.ends(np.array([4, 1])), before[[4, 1], END])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_impossible(kind):
    scores = kind(torch.full((4, 9), -2.0), END, (0,))
    scores.block(np.array([0, 0]), np.array([1, 2]))
    scores.silence(np.array([1]))
    scores.only(np.array([2, 2]), np.array([7, 8]), np.array([-1.0, -3.0]))
    found = scores.top(np.zeros(4), np.arange(4), np.full(4, 9), 1)
    left = {parent: found.token[found.parent == parent].tolist() for parent in range(4)}
    assert left == {0: [4, 5, 6, 7, 8], 1: [], 2: [7, 8], 3: [1, 2, 4, 5, 6, 7, 8]}
    assert scores.whole(np.array([2]))[0].tolist() == [-np.inf] * 7 + [-1.0, -3.0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("token", [1, END, 600, 639])
@pytest.mark.parametrize(("beam", "value"), [(1, np.nan), (4, np.nan), (4, 0.5)])
def test_what_is_no_log_probability(kind, token, beam, value):
    log_probs = torch.randn(3, 640).log_softmax(-1)
    log_probs[1, token] = value
    for ask in (lambda scores: scores.top(np.zeros(3), np.arange(3), np.full(3, beam), 1), lambda s: s.check()):
        with pytest.raises(NotLogProbabilities) as caught:
            ask(kind(log_probs.clone(), END, (0,)))
        assert caught.value.hypothesis == 1
        assert caught.value.value == pytest.approx(value, nan_ok=True)


def test_tensors_made_for_inference_only_can_be_searched_outside_of_it():
    with torch.inference_mode():
        log_probs = torch.randn(2, 20).log_softmax(-1)
    for kind in KINDS:
        found = kind(log_probs, END, (0,)).top(np.zeros(2), np.arange(2), np.full(2, 2), 1)
        assert len(found.token) == 4


class WithoutFloat64(torch.Tensor):
    """As on a device that has no float64: only what was brought to the CPU can become that."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cpu:
            return args[0].as_subclass(torch.Tensor)
        result = super().__torch_function__(func, types, args, kwargs or {})
        assert not isinstance(result, cls) or result.dtype != torch.float64, "this device has no float64"
        return result


@pytest.mark.parametrize(
    "asked",
    [
        {"beam": 3, "coverage_penalty": 0.5},
        {"beam": 2, "prefix": (4, 5)},
        {"beam": 2, "required": ((5, 6),), "no_repeat_ngram": 2},
        {"sample": True, "top_p": 0.9, "seed": 7},
    ],
)
def test_a_device_needs_no_float64(oracle, monkeypatch, asked):
    class There(oracle):
        def step(self, *given):
            log_probs, cache = super().step(*given)
            return log_probs.as_subclass(WithoutFloat64), cache

        def coverage(self, cache):
            return super().coverage(cache).float().as_subclass(WithoutFloat64)

    options, batch = SearchOptions(max_length=6, **asked), Sequences.pad([[0, 4], [1], [2, 4, 4]])
    expected = generate(oracle(3, 9, dtype=torch.float32), batch, options)
    monkeypatch.setattr("jumok.search.decoding.scores_of", DeviceScores)
    monkeypatch.setattr("jumok.search.restrict.WITH_FLOAT64", ())
    found = generate(There(3, 9, dtype=torch.float32), batch, options)
    assert [[h.tokens for h in row] for row in found] == [[h.tokens for h in row] for row in expected]
    assert [row[0].score for row in found] == pytest.approx([row[0].score for row in expected], abs=1e-5)
