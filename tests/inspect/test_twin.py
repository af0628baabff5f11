"""Compiled models: the same output as ever, the record of an eager twin, and the difference of the two."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumok.data.batch import PairBatch, Sequences
from jumok.inspect.record import record
from jumok.layers.multihead import Look, MultiHeadAttention
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection
from jumok.tasks.objective import Loss, Objective
from jumok.training.compiling import Compiled


class Small(nn.Module):
    """One attention: little to compile."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(12, 3, 3, 0.0, "self", "only.0.self")

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, Look())


def small() -> Transformer:
    section = TransformerSection(width=12, heads=3, feed_forward=16, encoder_layers=1, decoder_layers=1)
    return Transformer(section, 20, 20).eval()


def batch() -> PairBatch:
    return PairBatch.of([[4, 5, 6], [7]], [[5, 6], [8, 9, 10]])


@pytest.mark.parametrize(("in_place", "warm"), [(False, True), (True, False)])
@torch.no_grad()
def test_a_compiled_model_is_seen_and_does_what_it_does(in_place: bool, warm: bool) -> None:
    torch._dynamo.reset()
    model, inputs = Small(), (torch.randn(2, 5, 12),)
    with record(model) as eager:
        model(*inputs)
    if in_place:
        model.compile(backend="eager")
    compiled: Any = model if in_place else torch.compile(model, backend="eager")
    if warm:
        compiled(*inputs)
    with record(compiled) as seen:
        output = compiled(*inputs)
    assert torch.equal(output, compiled(*inputs))
    assert seen.names() == eager.names()
    for name in seen.names():
        torch.testing.assert_close(seen.weights(name), eager.weights(name), atol=1e-6, rtol=0)
    assert seen.twin_difference is not None
    assert seen.twin_difference < 1e-5
    assert "eager twin" in seen.notes[0]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert eager.twin_difference is None


class Elsewhere(nn.Module):
    """As `torch.compile` wraps a module, but what it runs is off by a quarter."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._orig_mod = module

    def forward(self, *inputs: Any) -> Tensor:
        return self._orig_mod(*inputs) + 0.25 + 0 * torch.rand(1)


@torch.no_grad()
def test_the_difference_is_stated_and_random_numbers_stay() -> None:
    model, pair = small(), batch()
    model.train()
    wrapped = Elsewhere(model)
    torch.manual_seed(1)
    plain = wrapped(pair.source, pair.target.ids), torch.rand(1)
    torch.manual_seed(1)
    model.eval()
    with record(wrapped) as seen:
        wrapped(pair.source, pair.target.ids)
    assert seen.twin_difference == pytest.approx(0.25, abs=1e-6)
    model.train()
    torch.manual_seed(1)
    with record(wrapped) as seen:
        observed = wrapped(pair.source, pair.target.ids), torch.rand(1)
    assert torch.equal(plain[0], observed[0])
    assert torch.equal(plain[1], observed[1])
    assert len(seen.records) == 3


class Attends(Objective):
    def __init__(self) -> None:
        super().__init__()
        self.model = Small()

    def forward(self, batch: Sequences) -> Loss:
        return Loss(self.model(batch.ids[..., None].float().expand(-1, -1, 12) / 20).square().sum(), len(batch))


def test_the_trainings_own_compilation_is_seen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda module, **_: compile_(module, backend="eager"))
    objective = Attends()
    compiled = Compiled(objective, lambda _: None)
    with record(compiled, heads=[1]) as seen:
        loss = compiled(batch().source)
    loss.sum.backward()
    assert objective.model.attention.query.weight.grad is not None
    assert seen.weights("only.0.self").shape == (2, 1, 4, 4)
    assert seen.twin_difference is not None
    assert seen.twin_difference < 1e-4
