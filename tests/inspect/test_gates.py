"""The gates that were recomputed are those of the kernels, and the gradient is autograd's."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed as seed
from torch import Tensor

from jumok import api
from jumok.data.batch import END, source_batch
from jumok.errors import BadInput
from jumok.inspect.gates import gates_of, gradient_norms, read
from jumok.layers.recurrent import KINDS, Recurrent
from jumok.models.forecaster import Forecaster
from jumok.models.language import RecurrentLanguageModel
from jumok.models.seq2seq import Seq2Seq
from jumok.recipe import ForecasterSection, RecurrentLanguageSection, Seq2SeqSection
from jumok.tasks.generator import Generator
from jumok.text.tokenizer import train_tokenizer

TOLERANCE = 1e-5  # float32, rounded in two ways: how far apart that comes depends on the weights


@pytest.fixture(scope="module")
def packaged() -> Any:
    return api.load(device="cpu")


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", KINDS)
def test_states_are_those_of_the_fused_layer(cell: str, bidirectional: bool) -> None:
    recurrent = Recurrent(cell, 5, 8, layers=2, bidirectional=bidirectional, dropout=0.5, forget_bias=0.7).eval()
    x = torch.randn(1, 7, 5)
    readings = read([recurrent], x)
    assert [(one.layer, one.backwards) for one in readings] == [
        (layer, back) for layer in (0, 1) for back in ((False, True) if bidirectional else (False,))
    ]
    outputs, state = recurrent(x)
    top = np.concatenate([one.hidden for one in readings if one.layer == 1], axis=-1)
    np.testing.assert_allclose(top, outputs[0].detach(), atol=TOLERANCE)
    for number, one in enumerate(readings):
        end = 0 if one.backwards else -1
        np.testing.assert_allclose(one.hidden[end], state[0][number, 0].detach(), atol=TOLERANCE)
        if cell == "lstm":
            assert one.cell is not None
            np.testing.assert_allclose(one.cell[end], state[1][number, 0].detach(), atol=TOLERANCE)
        assert 0 <= one.difference < TOLERANCE
        assert set(one.gates) == {"lstm": {"input", "forget", "output"}, "gru": {"reset", "update"}}.get(cell, set())
        for gate in one.gates.values():
            assert gate.shape == one.hidden.shape
            assert ((gate > 0) & (gate < 1)).all()


def test_gates_carry_the_state_as_the_equations_say() -> None:
    (lstm,) = read([Recurrent("lstm", 4, 6)], torch.randn(1, 9, 4))
    assert lstm.cell is not None
    # h_t = o ⊙ tanh(c_t); what the input gate lets in is at most 1: |c_t − f ⊙ c_(t-1)| ≤ i
    np.testing.assert_allclose(lstm.hidden, lstm.gates["output"] * np.tanh(lstm.cell), atol=TOLERANCE)
    came_in = lstm.cell[1:] - lstm.gates["forget"][1:] * lstm.cell[:-1]
    assert (abs(came_in) <= lstm.gates["input"][1:] + TOLERANCE).all()
    (gru,) = read([Recurrent("gru", 4, 6)], torch.randn(1, 9, 4))
    new = gru.hidden[1:] - gru.gates["update"][1:] * gru.hidden[:-1]
    assert (abs(new) <= 1 - gru.gates["update"][1:] + TOLERANCE).all()


@pytest.mark.parametrize("cell", KINDS)
def test_the_gradient_is_the_norm_of_the_jacobian(cell: str) -> None:
    recurrent = Recurrent(cell, 3, 4, layers=2, bidirectional=True).eval()
    x = torch.randn(1, 6, 3)

    def ends(given: Tensor) -> Tensor:
        return recurrent(given)[1][0][:, 0]  # (layers x directions, D)

    jacobian = torch.autograd.functional.jacobian(ends, x)[:, :, 0]  # (R, D, L, E)
    for one, expected in zip(read([recurrent], x), jacobian.pow(2).sum(dim=(1, 3)).sqrt(), strict=True):
        np.testing.assert_allclose(one.gradient, expected, rtol=1e-4, atol=1e-6)
        assert one.distance[0 if one.backwards else -1] == 0
        assert sorted(one.distance) == list(range(6))


def test_the_sentence_is_read_as_the_model_reads_it(packaged: Any) -> None:
    gates = gates_of(packaged, " I am a student. ")
    assert gates.tokens[0].endswith("I")
    assert gates.tokens[-1] == "<eos>"
    assert gates.kind == "lstm"
    assert [one.name for one in gates.readings] == ["layer 0, forward", "layer 0, backward"]
    assert gates.difference < 1e-5
    assert "forget" in str(gates)
    assert all(parameter.grad is None for parameter in packaged.model.parameters())


def test_a_language_model_of_several_layers() -> None:
    tokenizer = train_tokenizer(["the dog sees the cat"], "word", 20)
    section = RecurrentLanguageSection(cell="gru", embedding=8, width=12, layers=2)
    model = RecurrentLanguageModel(section, tokenizer.size).eval()
    generator = Generator(model, tokenizer, 16, torch.device("cpu"))
    gates = gates_of(generator, "the dog sees")
    assert gates.tokens == ("<eos>", "▁the", "▁dog", "▁sees")
    assert [one.layer for one in gates.readings] == [0, 1]
    hidden = model(torch.tensor([[END, *tokenizer.encode(["the dog sees"])[0]]]))
    np.testing.assert_allclose(gates.readings[1].hidden, hidden[0].detach(), atol=TOLERANCE)
    assert [one.layer for one in gates_of(generator, "the dog", layer=1).readings] == [1]


def test_an_encoder_that_reads_backwards(packaged: Any) -> None:
    section = Seq2SeqSection(cell="rnn", embedding=8, width=12, layers=1, reverse_source=True)
    model = Seq2Seq(section, packaged.source.size, packaged.target.size).eval()
    turned = copy(packaged)
    turned.model = model
    gates = gates_of(turned, "I am here")
    assert gates.tokens == ("▁here", "▁am", "▁I", "<eos>")
    ids = packaged.source.encode(["I am here"])
    outputs = model.encoder(source_batch(ids)).outputs[0].detach()  # in the order of the text
    np.testing.assert_allclose(gates.readings[0].hidden, outputs[[2, 1, 0, 3]], atol=TOLERANCE)


def test_what_cannot_be_shown_is_refused(packaged: Any) -> None:
    with pytest.raises(BadInput, match="only layer 0"):
        gates_of(packaged, "I am here.", layer=1)
    with pytest.raises(BadInput, match="empty"):
        gates_of(packaged, "  ")
    with pytest.raises(BadInput, match="limit is 256"):
        gates_of(packaged, "dog " * 300)
    with pytest.raises(BadInput, match="no recurrence"):
        gates_of(SimpleNamespace(model=torch.nn.Linear(2, 2)), "I am here.")
    with pytest.raises(BadInput, match="reads numbers"):
        gates_of(SimpleNamespace(model=Forecaster(ForecasterSection(), 4, 2)), "I am here.")


def test_gradients_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    recurrent = Recurrent("gru", 5, 10, layers=2, bidirectional=True, dropout=0.0, forget_bias=1.0).double().eval()
    x = torch.randn(1, 6, 5, dtype=torch.float64)
    whole = gradient_norms([recurrent], x)
    monkeypatch.setattr("jumok.inspect.gates.UNITS", 2)  # five units a direction: a part is left over
    for one, other in zip(whole, gradient_norms([recurrent], x), strict=True):
        torch.testing.assert_close(one, other)


def test_a_text_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = train_tokenizer(["a b c d e"], "word", 20)
    model = RecurrentLanguageModel(RecurrentLanguageSection(width=4, embedding=4, layers=1), tokenizer.size)
    monkeypatch.setattr("jumok.inspect.gates.LONGEST", 4)
    generator = Generator(model, tokenizer, 10, torch.device("cpu"))
    assert len(gates_of(generator, "a b c").tokens) == 4
    with pytest.raises(BadInput, match="5 tokens: gates are shown of 4"):
        gates_of(generator, "a b c d")
