"""A Transformer that reads packed sentences is the one that reads padded rows: outputs, gradients, what is recorded."""

from __future__ import annotations

import itertools
from copy import deepcopy
from typing import Any

import pytest
import torch
from packed_checks import WORDS, random_pairs, some_lengths
from torch import Tensor, nn

from jumok.data.batch import PairBatch
from jumok.data.packing import PackedPairs
from jumok.inspect.record import record
from jumok.layers.spans import side_by_side
from jumok.layers.tap import Tap
from jumok.models.build import build
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection

POSITIONS = ["sinusoidal", "sinusoidal-halves", "learned", "rotary", "relative", "none"]
SMALL = {
    "width": 32, "heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 2, "max_positions": 64,
    "activation": "gelu",  # smooth: where ReLU has its edge, the last digit decides about a whole gradient
}  # fmt: skip


def model_of(**keys: Any) -> Transformer:
    """A small model without dropout whose every weight is off its start, so that it counts."""
    model = build(TransformerSection(**{**SMALL, "dropout": 0.0, **keys}), WORDS, WORDS)
    assert isinstance(model, Transformer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def padded_states(model: nn.Module, batch: PairBatch) -> Tensor:
    return model(batch.source, batch.target.ids[:, :-1])[batch.target.mask[:, 1:]]


def packed_states(model: nn.Module, batch: PackedPairs) -> Tensor:
    return model(batch.source, batch.target)[0, : batch.tokens]


def gradients(model: nn.Module, states: Tensor, pull: Tensor) -> dict[str, Tensor]:
    found = torch.autograd.grad((states * pull).sum(), list(model.parameters()), allow_unused=True)
    names = [name for name, _ in model.named_parameters()]
    return {name: gradient for name, gradient in zip(names, found, strict=True) if gradient is not None}


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_packed_is_padded(position: str, norm: str) -> None:
    for tied, groups, filled in itertools.product(("none", "all"), (None, 1), (False, True)):
        model = model_of(position=position, norm=norm, tie_embeddings=tied, key_value_heads=groups)
        batch = random_pairs(some_lengths(4, 12))
        packed = PackedPairs.of(batch, (80, 85) if filled else None)
        one, other = padded_states(model, batch), packed_states(model, packed)
        torch.testing.assert_close(other, one, atol=1e-5, rtol=1e-5)
        pull = torch.randn_like(one)
        expected, found = gradients(model, one, pull), gradients(model, other, pull)
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            torch.testing.assert_close(
                found[name], gradient, atol=1e-5 * max(1.0, float(gradient.abs().max())), rtol=1e-5,
                msg=lambda m, name=name: f"{name}: {m}",
            )  # fmt: skip


@pytest.mark.parametrize("position", ["learned", "relative"])
def test_a_batch_that_repeats_is_the_same(position: str) -> None:
    """Told with bounds instead of sizes: several pieces of padding, sentences that are not there."""
    model = model_of(position=position, encoder_layers=1, decoder_layers=1)
    for pairs in (3, 9):
        packed = PackedPairs.of(random_pairs(some_lengths(pairs, 9)), (400, 700))
        told = packed.repeating()
        assert told is not None
        assert told.source.longest > model.section.max_positions
        expected = packed_states(model, packed)
        found = model(told.source, told.target)[0, : packed.tokens]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        (one,) = torch.autograd.grad(expected.square().sum(), model.embedding.weight)
        (other,) = torch.autograd.grad(found.square().sum(), model.embedding.weight)
        torch.testing.assert_close(other, one, atol=1e-4, rtol=1e-4)


def test_a_sentence_does_not_depend_on_its_neighbours() -> None:
    model, batch = model_of(), random_pairs([(5, 7), (3, 2), (8, 4)])
    changed = random_pairs([(5, 7), (3, 2), (8, 4)])
    mixed = PairBatch(*(
        type(mine)(torch.cat([theirs.ids[:1], mine.ids[1:2], theirs.ids[2:]]), mine.lengths)
        for mine, theirs in ((batch.source, changed.source), (batch.target, changed.target))
    ))  # fmt: skip
    here = slice(8, 11)  # <sos> and two words after the eight tokens of the first
    states = [packed_states(model, PackedPairs.of(one)) for one in (batch, mixed)]
    torch.testing.assert_close(states[0][here], states[1][here])
    assert not torch.allclose(states[0][:8], states[1][:8])


@torch.no_grad()
@pytest.mark.parametrize("position", ["sinusoidal", "relative", "rotary"])
def test_what_is_recorded_is_that_of_padded_rows(position: str) -> None:
    model, batch = model_of(position=position).eval(), random_pairs(some_lengths(3, 8))
    packed = PackedPairs.of(batch, (60, 60))
    with record(model) as seen_padded:
        padded_states(model, batch)
    with record(model) as seen_packed:
        found = packed_states(model, packed)
    torch.testing.assert_close(found, packed_states(model, packed), atol=1e-5, rtol=1e-5)
    assert seen_packed.names() == seen_padded.names() != []
    assert seen_packed.max_difference < 1e-4
    for name in seen_padded.names():
        side = batch.source.mask if name.startswith("encoder") else batch.target.mask[:, 1:]
        one, other = seen_padded.weights(name), seen_packed.weights(name)
        assert other.shape == one.shape
        real = side[:, None].expand(one.shape[:3])
        torch.testing.assert_close(other[real], one[real], atol=1e-5, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


@torch.no_grad()
def test_a_head_can_be_taken_away() -> None:
    model, batch = model_of().eval(), random_pairs(some_lengths(3, 8))
    packed = PackedPairs.of(batch)
    whole = packed_states(model, packed)
    taps = [module for module in model.modules() if isinstance(module, Tap) and module.kind == "cross"]

    def without_first(_tap: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(output[:, :1]), output[:, 1:]], dim=1)

    handles = [tap.register_forward_hook(without_first) for tap in taps]
    found, expected = packed_states(model, packed), padded_states(model, batch)
    for handle in handles:
        handle.remove()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found, whole)
    torch.testing.assert_close(packed_states(model, packed), whole)


def test_dropout_in_the_attention_is_drawn_anew_and_only_in_training() -> None:
    model, packed = model_of(attention_dropout=0.5), PackedPairs.of(random_pairs(some_lengths(3, 8)))
    assert not torch.equal(packed_states(model, packed), packed_states(model, packed))
    torch.manual_seed(5)
    once = packed_states(model, packed)
    torch.manual_seed(5)
    assert torch.equal(packed_states(model, packed), once)
    model.eval()
    torch.testing.assert_close(packed_states(model, packed), packed_states(model, packed))


def test_batches_of_all_sizes_compile_once_or_twice() -> None:
    """Nothing in the packed way breaks the graph, and sizes are no constants of it."""
    model = model_of(norm="post", encoder_layers=1, decoder_layers=1)
    compiled = torch.compile(deepcopy(model), backend="eager", fullgraph=True)
    counters = torch._dynamo.utils.counters
    counters.clear()
    for number in range(4):
        # sizes that all differ: two that are equal by chance are taken for one, and it is compiled once more
        lengths = [(0, 8 + 3 * number), (9 + 6 * number, 0), (0, 0), *[(1, 2)] * number]
        packed = PackedPairs.of(random_pairs(lengths))
        one, other = packed_states(model, packed), packed_states(compiled, packed)
        torch.testing.assert_close(other, one, atol=1e-5, rtol=1e-5)
        pull = torch.randn_like(one)
        found = list(gradients(compiled, other, pull).values())
        for mine, theirs in zip(found, gradients(model, one, pull).values(), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)
    assert counters["stats"]["unique_graphs"] <= 3, counters["stats"]


def test_side_by_side_needs_no_more_than_the_longest() -> None:
    packed = PackedPairs.of(random_pairs([(4, 2), (1, 3)]), (100, 100))
    assert side_by_side(torch.randn(100, 1, 1), packed.source).shape == (2, 1, 5, 1)
