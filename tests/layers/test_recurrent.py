"""The equations and the fused kernels are the same function, with padding, in both directions, to the gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.layers.recurrent import KINDS, CellWeights, Recurrent, State, gru_cell, lstm_cell, rnn_cell


def twins(cell: str, layers: int, bidirectional: bool, dropout: float = 0.0) -> tuple[Recurrent, Recurrent]:
    """The same parameters, fused and written out; biases moved off their start so that they count."""
    fused = Recurrent(cell, 5, 8, layers, bidirectional, dropout, forget_bias=1.0)
    for name, parameter in fused.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)
    written = Recurrent(cell, 5, 8, layers, bidirectional, dropout, written_out=True)
    written.load_state_dict(fused.state_dict())
    return fused, written


def results(model: Recurrent, x: Tensor, lengths: Tensor | None, state: State | None) -> list[Tensor]:
    """Outputs, final states, and the gradients of all inputs and parameters under one fixed loss."""
    x = x.clone().requires_grad_()
    state = None if state is None else tuple(part.clone().requires_grad_() for part in state)
    outputs, final = model(x, lengths, state)
    generator = torch.Generator().manual_seed(1)
    loss = sum(
        ((torch.randn(part.shape, generator=generator) * part).sum() for part in (outputs, *final)), x.new_zeros(())
    )
    gradients = torch.autograd.grad(loss, [x, *(state or ()), *model.parameters()])
    return [outputs.detach(), *(part.detach() for part in final), *gradients]


@pytest.mark.parametrize("given_state", [False, True])
@pytest.mark.parametrize("lengths", [None, [6, 6, 6, 6], [3, 6, 1, 4], [2, 6, 0, 5], [3, 2, 4, 1]])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("cell", KINDS)
def test_fused_and_written_out_agree(
    cell: str, layers: int, bidirectional: bool, lengths: list[int] | None, given_state: bool
) -> None:
    fused, written = twins(cell, layers, bidirectional)
    x = torch.randn(4, 6, 5)
    given = None if lengths is None else torch.tensor(lengths)
    state = tuple(torch.randn_like(part) for part in fused.initial_state(x)) if given_state else None
    for mine, theirs in zip(results(fused, x, given, state), results(written, x, given, state), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", KINDS)
def test_packing_agrees_too(cell: str, bidirectional: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU uses."""
    fused, written = twins(cell, 2, bidirectional)
    monkeypatch.setattr(fused, "kind", fused.kind._replace(holding=()))
    x, lengths = torch.randn(4, 6, 5), torch.tensor([3, 6, 0, 5])
    for mine, theirs in zip(results(fused, x, lengths, None), results(written, x, lengths, None), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("cell", KINDS)
def test_one_step_calls_follow_the_whole_row(cell: str) -> None:
    model, _ = twins(cell, 3, False)
    x = torch.randn(4, 7, 5)
    outputs, final = model(x)
    state = model.initial_state(x)
    for position in range(7):
        output, state = model(x[:, position : position + 1], state=state)
        torch.testing.assert_close(output[:, 0], outputs[:, position], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(state, final, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("written_out", [False, True])
@pytest.mark.parametrize("cell", KINDS)
def test_a_row_alone_and_in_a_padded_batch(cell: str, written_out: bool) -> None:
    model = twins(cell, 2, True)[written_out]
    x, lengths = torch.randn(5, 9, 5), torch.tensor([9, 2, 5, 1, 7])
    outputs, final = model(x, lengths)
    noisy, noisy_final = model(x.masked_fill((torch.arange(9) >= lengths[:, None])[..., None], 1e4), lengths)
    torch.testing.assert_close((outputs, final), (noisy, noisy_final))  # what lies in the padding does not matter
    for row, length in enumerate(lengths.tolist()):
        alone, alone_final = model(x[row : row + 1, :length])
        torch.testing.assert_close(outputs[row, :length], alone[0], atol=1e-5, rtol=1e-5)
        assert not outputs[row, length:].any()
        for part, alone_part in zip(final, alone_final, strict=True):
            torch.testing.assert_close(part[:, row], alone_part[:, 0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("cell", KINDS)
def test_stack_equals_torch(cell: str) -> None:
    """A third opinion: PyTorch's own stacked bidirectional network with our weights."""
    ours, _ = twins(cell, 2, True)
    theirs = KINDS[cell].fused(5, 4, num_layers=2, bidirectional=True, batch_first=True)
    with torch.no_grad():
        for index, layer in enumerate(ours.layers):
            for name, parameter in layer.named_parameters():
                getattr(theirs, name.replace("l0", f"l{index}")).copy_(parameter)
    x = torch.randn(3, 6, 5)
    outputs, final = ours(x)
    expected, expected_final = theirs(x)
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(final, expected_final if isinstance(expected_final, tuple) else (expected_final,))


@pytest.mark.parametrize(("cell", "gates", "states"), [(rnn_cell, 1, 1), (lstm_cell, 4, 2), (gru_cell, 3, 1)])
def test_gradients_of_the_equations(cell: object, gates: int, states: int) -> None:
    def double(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    inputs = [double(2, 3), *(double(2, 4) for _ in range(states))]
    weights = CellWeights(double(gates * 4, 3), double(gates * 4, 4), double(gates * 4), double(gates * 4))

    def run(x: Tensor, *rest: Tensor) -> State:
        return cell(x, rest[:states], CellWeights(*rest[states:]))  # type: ignore[operator]

    assert torch.autograd.gradcheck(run, (*inputs, *weights))


@pytest.mark.parametrize("written_out", [False, True])
def test_dropout_lies_between_the_layers(written_out: bool) -> None:
    model = twins("lstm", 2, False, dropout=0.5)[written_out]
    x, lengths = torch.randn(4, 6, 5), torch.tensor([6, 4, 5, 2])
    _, (first, _) = model(x, lengths)
    _, (second, _) = model(x, lengths)
    torch.testing.assert_close(first[0], second[0])  # nothing dropped below the first layer
    assert not torch.allclose(first[1], second[1])
    model.eval()
    torch.testing.assert_close(model(x, lengths), model(x, lengths), rtol=0, atol=0)


def test_forget_bias_starts_the_forget_gate_only() -> None:
    model = Recurrent("lstm", 3, 4, bidirectional=True, forget_bias=1.5)
    for name, parameter in model.named_parameters():
        if "bias" in name:
            expected = torch.zeros(8)
            expected[2:4] = 1.5 if "bias_ih" in name else 0.0
            torch.testing.assert_close(parameter.detach(), expected)


def test_unknown_cell_and_odd_width() -> None:
    with pytest.raises(BadInput, match='Did you mean "lstm"'):
        Recurrent("lstn", 3, 4)
    with pytest.raises(BadInput, match="even"):
        Recurrent("gru", 3, 5, bidirectional=True)
