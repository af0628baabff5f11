"""The fast steppers of the CPU say what the model says, whatever the model and whatever the search does."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from invariance import Trembling, differences, refilled
from steppers import WORDS, any_model, model_of, side_by_side, some_rows
from torch import Tensor

from jumok.data.batch import START, Sequences, source_batch
from jumok.errors import BadInput, Failure
from jumok.layers.tap import Tap
from jumok.models import beams, compiled
from jumok.models.compiled import CompiledTransformer, compiles
from jumok.models.fast import fast_stepper
from jumok.models.fast_cpu import FastTransformer
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.recipe import Seq2SeqSection
from jumok.search import Hypothesis, SearchOptions, generate

CLOSE = {"atol": 2e-5, "rtol": 1e-5}
KINDS = [FastTransformer, CompiledTransformer]
Kind = type[FastTransformer] | type[CompiledTransformer]


@pytest.fixture(params=KINDS, ids=["packed", "compiled"])
def kind(request: pytest.FixtureRequest) -> Kind:
    if request.param is CompiledTransformer and not compiles(model_of(), "float32"):
        pytest.skip("no C compiler here")
    return request.param


def together(kind: Kind, precision: str = "float32") -> Callable[..., Any]:
    return lambda model: kind(model, precision)  # type: ignore[arg-type]


# ------------------------------------------------------------ the same numbers


@pytest.mark.parametrize("case", range(25))
def test_every_model_and_every_search(kind: Kind, case: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Little room at first, so that everything grows, is collected and moved."""
    monkeypatch.setattr(beams, "FIRST_ENTRIES", 2)
    monkeypatch.setattr(beams, "PATIENCE", 2)
    monkeypatch.setattr(compiled, "FIRST_ENTRIES", 1)
    monkeypatch.setattr(compiled, "FIRST_LENGTH", 2)
    monkeypatch.setattr(compiled, "STEPS", 1)
    drawn = random.Random(seed + case)
    model = any_model(drawn)
    print(model.section)
    for found in side_by_side(model, kind(model), drawn, coverage=drawn.random() < 0.4):
        torch.testing.assert_close(*found.log_probs, **CLOSE)
        if found.coverage is not None:
            width = min(part.size(1) for part in found.coverage)
            torch.testing.assert_close(*(part[:, :width] for part in found.coverage), **CLOSE)
            assert all((part[:, width:] == 0).all() for part in found.coverage)


def outputs_of(hypotheses: list[Hypothesis]) -> list[list[int]]:
    return [one.tokens for one in hypotheses]


def is_tie(model: Transformer, row: list[int], options: SearchOptions) -> bool:
    """Whether log-probabilities that move by no more than rounding could move them give other outputs."""
    batch = source_batch([row])
    (plain,) = generate(model, batch, options)
    moved = (generate(Trembling(model, 1e-5, draw), batch, options)[0] for draw in range(50))
    return any(outputs_of(found) != outputs_of(plain) for found in moved)


@pytest.mark.parametrize("beam", [1, 5])
def test_the_same_translations(kind: Kind, beam: int, seed: int) -> None:
    drawn = random.Random(seed)
    model = any_model(drawn)
    rows = [[drawn.randrange(4, 60) for _ in range(drawn.randint(1, 12))] for _ in range(9)]
    options = SearchOptions(beam=beam, nbest=beam, max_length=25)
    found, expected = (generate(stepper, source_batch(rows), options) for stepper in (kind(model), model))
    for row, ours, theirs in zip(rows, found, expected, strict=True):
        if outputs_of(ours) != outputs_of(theirs):
            assert is_tie(model, row, options), (ours, theirs)
        else:
            assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-4)


def test_a_batch_that_is_kept_full_for_long(kind: Kind, seed: int) -> None:
    """More steps than the model has positions, and none of a sentence: rows that have left do not count."""
    drawn = random.Random(seed)
    model = model_of(position=drawn.choice(["learned", "relative", "rotary"]), max_positions=13)
    options = SearchOptions(beam=2, max_length=13)
    rows = [[drawn.randrange(4, 60) for _ in range(drawn.randint(1, 12))] for _ in range(40)]
    found, expected = (refilled(stepper, rows, options, 5) for stepper in (kind(model), model))
    unequal = differences(model, rows, options, expected, found)
    assert all(difference.tie for difference in unequal), unequal


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_less_precision_drifts_a_little(kind: Kind, precision: str, seed: int) -> None:
    """Printed and bounded: probabilities move by some hundredths at most."""
    model = any_model(random.Random(seed))
    if kind is CompiledTransformer and not compiles(model, precision):  # type: ignore[arg-type]
        pytest.skip("this processor has no such products")
    moved = [
        (found.log_probs[0].exp() - found.log_probs[1].exp()).abs().max().item()
        for found in side_by_side(model, together(kind, precision)(model), random.Random(seed), coverage=False)
    ]
    print(f"{precision}: probabilities move by up to {max(moved):.4f}")
    assert 0 < max(moved) < 0.15


def log_probs(stepper: Any, batch: Sequences, steps: int = 4) -> Tensor:
    """(rows, steps, vocabulary) after the same few tokens in every row."""
    memory = stepper.encode(batch)
    cache, found = stepper.start(memory, len(batch), steps), []
    for position in range(steps):
        tokens = torch.full((len(batch),), START + position)
        step, cache = stepper.step(tokens, torch.full_like(tokens, position), memory, cache)
        found.append(step.clone())
    return torch.stack(found, dim=1)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_company_and_threads_change_no_bit_of_the_compiled_steps(precision: str, seed: int) -> None:
    model = any_model(random.Random(seed))
    if not compiles(model, precision):  # type: ignore[arg-type]
        pytest.skip("no C compiler, or no such products")
    stepper = CompiledTransformer(model, precision)  # type: ignore[arg-type]
    rows = [torch.randint(4, 60, (length,)).tolist() for length in torch.randint(1, 20, (30,)).tolist()]
    alone = torch.cat([log_probs(stepper, source_batch([row])) for row in rows])
    assert torch.equal(log_probs(stepper, source_batch(rows)), alone)
    torch.set_num_threads(2)
    try:
        assert torch.equal(log_probs(stepper, source_batch(rows)), alone)
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_damaged_weights_are_noticed(kind: Kind, precision: str, seed: int) -> None:
    model = any_model(random.Random(seed))
    if kind is CompiledTransformer and not compiles(model, precision):  # type: ignore[arg-type]
        pytest.skip("this processor has no such products")
    block = model.decoder.blocks[-1]
    with torch.no_grad():
        if random.Random(seed).random() < 0.5:
            block.feed_forward.outer.bias[0] = float("nan")  # type: ignore[union-attr, operator]
        else:  # the last of the numbers that the next product reads
            block.feed_forward.inner.bias[-1] = float("nan")  # type: ignore[union-attr, operator]
    with pytest.raises(Failure, match="not a number"):
        generate(together(kind, precision)(model), some_rows(random.Random(seed)), SearchOptions())


def test_learned_positions_end_with_a_message(kind: Kind) -> None:
    stepper = kind(model_of(position="learned", max_positions=16))
    memory = stepper.encode(source_batch([[5, 6]]))
    with pytest.raises(BadInput, match="learned positions end at 16"):
        stepper.start(memory, 1, 17)
    with pytest.raises(BadInput, match="learned positions end at 16"):
        stepper.encode(source_batch([[5] * 16]))


@pytest.mark.parametrize("wrong", [-1, WORDS, 1 << 40])
def test_tokens_that_the_vocabulary_does_not_have(wrong: int) -> None:
    """Looked up in C they would be whatever lies there."""
    if not compiles(model_of(), "float32"):
        pytest.skip("no C compiler here")
    stepper = CompiledTransformer(model_of())
    for rows in ([[5, wrong]], [[5, 6, 7], [wrong]]):
        with pytest.raises(BadInput, match=f"token {wrong} is outside the vocabulary of {WORDS}"):
            stepper.encode(source_batch(rows))
    memory = stepper.encode(source_batch([[5], [6]]))
    cache = stepper.start(memory, 2, 4)
    with pytest.raises(BadInput, match=f"token {wrong} is outside"):
        stepper.step(torch.tensor([START, wrong]), torch.zeros(2, dtype=torch.long), memory, cache)
    log_probs, _ = stepper.step(torch.tensor([0, WORDS - 1]), torch.zeros(2, dtype=torch.long), memory, cache)
    assert log_probs.isfinite().all(), "the first and the last there are"


def test_tokens_in_fewer_bits_are_the_same_tokens(kind: Kind) -> None:
    stepper, batch = kind(model_of()), source_batch([[5, 6, 7], [8]])
    narrow = Sequences(batch.ids.int(), batch.lengths)
    torch.testing.assert_close(log_probs(stepper, narrow), log_probs(stepper, batch), **CLOSE)


# ------------------------------------------------------------ which one it is


def test_made_once_and_again_when_the_weights_change() -> None:
    model = model_of()
    first = fast_stepper(model)
    assert fast_stepper(model) is first
    assert fast_stepper(model, "int8") is not first
    batch = some_rows(random.Random(1))
    before = log_probs(first, batch)
    with torch.no_grad():
        model.bias[7] -= 30.0
    second = fast_stepper(model)
    assert second is not first
    assert (log_probs(second, batch)[..., 7] < before[..., 7] - 0.5).all()


def test_nothing_keeps_a_model_that_is_gone() -> None:
    model = model_of()
    fast_stepper(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_the_model_itself_where_nothing_is_faster() -> None:
    recurrent = Seq2Seq(Seq2SeqSection(width=8, embedding=8, layers=1), 20, 20).eval()
    assert fast_stepper(recurrent) is recurrent
    double = model_of().double()
    assert fast_stepper(double) is double
    training = model_of().train()
    assert fast_stepper(training) is training
    for model in (recurrent, double):
        with pytest.raises(BadInput, match="--precision int8 is for Transformers on the CPU"):
            fast_stepper(model, "int8")


def test_an_observed_attention_is_not_passed_by() -> None:
    model, seen = model_of(), []
    tap = next(module for module in model.modules() if isinstance(module, Tap))
    handle = tap.register_forward_hook(lambda *given: seen.append(given))
    assert fast_stepper(model) is model
    handle.remove()
    assert fast_stepper(model) is not model
