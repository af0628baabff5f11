"""The search in fixed slots gives what the search on the host gives: for any distributions, and for a Transformer."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
import seeded
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from invariance import Trembling

from jumok.data.batch import END, PAD, START, Sequences
from jumok.errors import BadInput, Failure
from jumok.models import fast_gpu, step_torch
from jumok.models.fast_gpu import StaticTransformer
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection
from jumok.search import Hypothesis, SearchOptions, generate
from jumok.search.device_beam import DeviceBeam, lowest_of_the_best
from jumok.search.device_log import Log
from jumok.search.on_device import (
    DeviceSearch,
    device_search_fits,
    forget,
    generate_on_device,
    round_capacity,
    round_rows,
    round_width,
)

seed = seeded.seed
CPU = torch.device("cpu")
MODELS = {
    "pre": {},
    "post": {"norm": "post", "activation": "gelu", "tie_embeddings": "none"},
    "post-final": {"norm": "post", "final_norm": True, "activation": "silu", "position": "sinusoidal-halves"},
    "no-final": {"final_norm": False, "position": "none"},
    "rms-swiglu-rotary": {"norm_kind": "rms", "activation": "swiglu", "position": "rotary"},
    "grouped-relative": {"key_value_heads": 2, "position": "relative", "tie_embeddings": "all"},
    "learned": {"position": "learned", "max_positions": 40, "key_value_heads": 1},
}


def search_by_table(log_probs, rows: int, options: list[SearchOptions], vocabulary: int) -> list[list[Hypothesis]]:
    """A search in slots over a function of (sentence, history)."""
    beam, nbest, limits = options[0].beam, options[0].nbest, [option.max_length for option in options]
    search = DeviceBeam(rows, beam, nbest, max(limits), vocabulary, END, CPU)
    search.ask(options, limits)
    search.begin(START)
    past: list[torch.Tensor] = []  # (R, K) tokens of each column, in the slot where they were written
    for _ in range(max(limits)):
        past.append(search.tokens_RK.clone())
        table = torch.zeros(rows, beam, vocabulary, dtype=torch.float64)
        for row in range(len(options)):
            for slot in range(beam):
                where = [*search.ancestry_RKC[row, slot, : len(past) - 1].tolist(), slot]
                history = [int(column[row, held]) for column, held in zip(past, where, strict=True)]
                table[row, slot] = torch.tensor(log_probs(row, tuple(history[1:])), dtype=torch.float64)
        search.advance(search.shortlist(table.flatten(0, 1)))
    log = Log.of(search.log[:, :, : len(options)].numpy(), search.steps_R[: len(options)].numpy())
    return log.outputs(options, limits)


def assert_same(found: list[Hypothesis], expected: list[Hypothesis], tolerance: float = 1e-9) -> None:
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    assert [h.finished for h in found] == [h.finished for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=tolerance)
    assert [h.log_probability for h in found] == pytest.approx([h.log_probability for h in expected], abs=tolerance)


@st.composite
def searches(draw) -> list[SearchOptions]:
    """Rows that differ in their lengths only."""
    beam = draw(st.integers(1, 5))
    common = SearchOptions(
        beam=beam,
        nbest=draw(st.integers(1, beam)),
        length_penalty=draw(st.sampled_from([0.0, 0.6, 1.0, 2.0])),
        forbidden=draw(st.sampled_from([(PAD, START), (), (PAD, 1, START), (END,)])),
        patience=draw(st.sampled_from([None, 0.5, 1.0, 2.0])),
    )
    lengths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    return [replace(common, max_length=n, min_length=draw(st.integers(1, n))) for n in lengths]


@settings(max_examples=150, deadline=None)
@given(searches(), st.integers(0, 10**9), st.integers(6, 9), st.booleans(), st.sampled_from([0.0, 0.3]))
def test_equals_the_search_on_the_host(oracle, options, seed, vocabulary, coarse, holes):
    stepper = oracle(seed, vocabulary, coarse, holes)
    expected = generate(stepper, Sequences.pad([[name] for name in range(len(options))]), options)
    found = search_by_table(stepper.log_probs, len(options) + 1, options, vocabulary)  # one row to spare
    for ours, theirs in zip(found, expected, strict=True):
        assert_same(ours, theirs)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 6), st.integers(6, 40))
def test_the_best_of_many_equals_are_the_lowest(seed, count, size):
    values = torch.randint(-3, 1, (4, size), generator=torch.Generator().manual_seed(seed)).double()
    best, places = lowest_of_the_best(values, count)
    for row in range(4):
        order = sorted(range(size), key=lambda place, row=row: (-values[row, place], place))[:count]
        assert places[row].tolist() == order
        assert best[row].tolist() == values[row, order].tolist()


# ---------------------------------------------------------------- with a Transformer


def a_model(seed: int, vocabulary: int = 23, **keys: object) -> Transformer:
    section = {"width": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 40, **keys}
    torch.manual_seed(seed)
    model = Transformer(TransformerSection.model_validate(section), vocabulary, vocabulary).eval()
    with torch.no_grad():  # biases that count, words that differ
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model


def a_batch(seed: int, rows: int = 5, vocabulary: int = 23) -> Sequences:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 12, (rows,), generator=generator).tolist()
    return Sequences.pad([torch.randint(4, vocabulary, (n,), generator=generator).tolist() for n in lengths])


def outputs_of(hypotheses: list[Hypothesis]) -> list[list[int]]:
    return [h.tokens for h in hypotheses]


def is_tie(model: Transformer, row: Sequences, options: SearchOptions) -> bool:
    """Whether log-probabilities that move by no more than rounding could move them give other outputs."""
    [plain] = generate(model, row, options)
    moved = (generate(Trembling(model, 1e-5, draw), row, options)[0] for draw in range(50))
    return any(outputs_of(found) != outputs_of(plain) for found in moved)


def assert_same_or_tied(
    found: list[list[Hypothesis]],
    expected: list[list[Hypothesis]],
    model: Transformer,
    batch: Sequences,
    options: SearchOptions | list[SearchOptions],
) -> None:
    each = [options] * len(batch) if isinstance(options, SearchOptions) else options
    for row, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if outputs_of(ours) != outputs_of(theirs):
            assert is_tie(model, batch.rows(row, row + 1), each[row]), (ours, theirs)
        else:
            assert_same(ours, theirs, tolerance=1e-4)


@pytest.mark.parametrize("kind", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("beam", [1, 4])
def test_a_transformer_in_slots_equals_the_search_on_the_host(seed, kind, beam):
    model, batch = a_model(seed, **kind), a_batch(seed)
    options = SearchOptions(beam=beam, nbest=beam, max_ratio=1.0, max_extra=6, length_penalty=0.8)
    found, expected = generate_on_device(model, batch, options), generate(model, batch, options)
    assert_same_or_tied(found, expected, model, batch, options)
    forced = SearchOptions(beam=beam, min_length=9, max_length=9)
    found, expected = generate_on_device(model, batch, forced), generate(model, batch, forced)
    assert_same_or_tied(found, expected, model, batch, forced)


def test_the_twin_follows_the_weights(seed):
    model, batch = a_model(seed), a_batch(seed)
    options = SearchOptions(beam=3, max_length=8)
    before = generate_on_device(model, batch, options)
    for change in (
        lambda weight: weight.mul_(-1.5),  # as an optimizer does
        lambda weight: weight.data.add_(torch.randn_like(weight) * 0.2),  # behind autograd's back
        lambda weight: setattr(weight, "data", weight.data.flip(0)),  # another storage
    ):
        with torch.no_grad():
            for parameter in model.parameters():
                change(parameter)
        found = generate_on_device(model, batch, options)
        assert_same_or_tied(found, generate(model, batch, options), model, batch, options)
        assert [h.score for row in found for h in row] != [h.score for row in before for h in row]
        before = found


def test_the_twin_keeps_no_model_alive_and_touches_no_random_numbers(seed):
    model = a_model(seed)
    state = torch.get_rng_state()
    generate_on_device(model, a_batch(seed), SearchOptions(max_length=4))
    assert torch.equal(torch.get_rng_state(), state)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_works_between_training_and_inference_mode(seed):
    model, batch = a_model(seed).train(), a_batch(seed)
    options = SearchOptions(beam=2, max_length=5)
    with torch.inference_mode():
        first = generate_on_device(model, batch, options)
    second = generate_on_device(model, batch, options)
    assert [h.tokens for row in first for h in row] == [h.tokens for row in second for h in row]
    assert all(parameter.requires_grad and not parameter.is_inference() for parameter in model.parameters())
    forget(model)


def test_too_much_for_the_memory_is_done_in_parts(seed, monkeypatch):
    model, batch = a_model(seed), a_batch(seed, rows=7)
    options = [SearchOptions(beam=2, max_length=4 + row) for row in range(7)]
    search = DeviceSearch(model, torch.float32)
    whole = search.generate(batch, options, END, START, graphs=False)
    monkeypatch.setattr(search, "_budget", lambda: 1)
    parts = search.generate(batch, options, END, START, graphs=False)
    assert_same_or_tied(parts, whole, model, batch, options)
    assert len(search._rooms) == 1  # the others had to leave


def test_lower_precision_stays_near(seed):
    """One token of many sentences: later ones may follow another word that nearly tied."""
    model, batch = a_model(seed), a_batch(seed, rows=40)
    options = SearchOptions(beam=2, nbest=2, max_length=2, min_length=2)
    exact, rough = (generate_on_device(model, batch, options, dtype=kind) for kind in (torch.float32, torch.bfloat16))
    off = [abs(ours[0].log_probability - theirs[0].log_probability) for ours, theirs in zip(rough, exact, strict=True)]
    assert 0 < sorted(off)[20] < 0.2


def test_weights_that_are_not_numbers_are_told(seed):
    model, batch = a_model(seed), a_batch(seed)
    sound = generate_on_device(model, batch, SearchOptions(beam=2, max_length=5))
    kept = model.bias.detach().clone()
    with torch.no_grad():
        model.decoder.blocks[0].feed_forward.outer.weight[0, 0] = float("nan")
    for limit in (1, 5):
        with pytest.raises(Failure, match=r"row 0, step 1: the model's log-probability is not a number"):
            generate_on_device(model, batch, SearchOptions(beam=2, max_length=limit))
    with torch.no_grad():
        model.decoder.blocks[0].feed_forward.outer.weight[0, 0] = 0.0
        model.bias.copy_(kept)
    again = generate_on_device(model, batch, SearchOptions(beam=2, max_length=5))
    assert all(score == score for row in again for score in [row[0].score])
    assert len(again) == len(sound)


# ---------------------------------------------------------------- when it is used


def test_what_the_device_can_search(seed):
    model, plain = a_model(seed), SearchOptions(beam=4, nbest=2, patience=1.0)
    gpu = torch.device("cuda", 0)
    assert device_search_fits(model, plain, gpu)
    assert device_search_fits(model, [replace(plain, max_length=9), replace(plain, min_length=3)], gpu)
    assert not device_search_fits(model, plain, CPU)
    assert not device_search_fits(torch.nn.Linear(2, 2), plain, gpu)
    for other in (
        replace(plain, prefix=(5,)),
        replace(plain, coverage_penalty=0.2),
        replace(plain, forbidden_phrases=((4, 5),)),
        replace(plain, required=((4,),)),
        replace(plain, no_repeat_ngram=2),
        SearchOptions(sample=True),
        SearchOptions(beam=200),
    ):
        assert not device_search_fits(model, other, gpu), other
        if other.beam < 100:
            with pytest.raises(BadInput, match=r"use search\.generate"):
                generate_on_device(model, a_batch(seed), other)
    assert not device_search_fits(model, [plain, replace(plain, length_penalty=0.5)], gpu)
    handle = model.decoder.blocks[0].cross.tap.register_forward_hook(lambda *_: None)
    assert not device_search_fits(model, plain, gpu)  # somebody is looking
    handle.remove()
    assert device_search_fits(model, plain, gpu)

    class Shard(torch.Tensor):
        """As a model that is split over processes has them."""

    model.bias = torch.nn.Parameter(model.bias.detach().as_subclass(Shard))
    assert not device_search_fits(model, plain, gpu)


def test_impossible_questions(seed):
    model, batch = a_model(seed, position="learned", max_positions=8), a_batch(seed, rows=2)
    with pytest.raises(BadInput, match=r"row 0: min_length 30 exceeds its max_length"):
        generate_on_device(model, batch, SearchOptions(min_length=30, max_ratio=0, max_extra=5))
    with pytest.raises(BadInput, match=r"end at 8 tokens"):
        generate_on_device(model, Sequences.pad([[5, 3]]), SearchOptions(max_length=9))
    with pytest.raises(BadInput, match=r"forbidden token 77 is outside the vocabulary of 23"):
        generate_on_device(model, Sequences.pad([[5, 3]]), SearchOptions(max_length=4, forbidden=(77,)))
    with pytest.raises(BadInput, match=r"1 search options for 2 rows"):
        generate_on_device(model, Sequences.pad([[5], [6]]), [SearchOptions(max_length=4)])
    assert generate_on_device(model, Sequences.pad([]), []) == []


@given(st.integers(1, 5000))
def test_sizes_are_few_and_large_enough(size):
    assert size <= round_rows(size) <= max(1, 1.5 * size)
    assert size <= round_width(size) < size + 64
    assert max(32, size) <= round_capacity(size) < max(33, 2 * size)


def test_without_triton_plain_operations_are_used(monkeypatch):
    fast_gpu.default_operations.cache_clear()
    assert fast_gpu.default_operations(CPU) is step_torch
    monkeypatch.setitem(__import__("sys").modules, "jumok.models.step_triton", None)
    assert fast_gpu.default_operations(torch.device("cuda")) is step_torch
    fast_gpu.default_operations.cache_clear()


def test_the_memory_is_that_of_the_model(seed):
    model, batch = a_model(seed, key_value_heads=2), a_batch(seed)
    twin = StaticTransformer(model, torch.float32)
    slots = twin.slots(len(batch), 1, batch.ids.size(1), 4, torch.zeros(5, 1, 4).int(), torch.zeros(1).long())
    slots.ids.copy_(batch.ids)
    slots.lengths.copy_(batch.lengths)
    with torch.inference_mode():
        twin.encode(slots)
        store = model.encode(batch).store  # (L, 2, R, S, G, D)
    torch.testing.assert_close(slots.memory.permute(2, 3, 0, 1, 4, 5), store, atol=1e-5, rtol=1e-5)
