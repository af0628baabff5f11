"""The forecasting network: its equations, its normalisation, and that the past is all it reads."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from jumok.models.forecaster import Forecaster
from jumok.recipe import ForecasterSection

CELLS = ("rnn", "lstm", "gru", "transformer")


def build(cell: str = "lstm", window: int = 12, horizon: int = 5, **keys: object) -> Forecaster:
    section = ForecasterSection.model_validate({"cell": cell, "width": 16, "layers": 2, "heads": 2, **keys})
    model = Forecaster(section, window, horizon).eval()
    for parameter in (*model.head.parameters(), *(model.highway.parameters() if model.highway else ())):
        nn.init.normal_(parameter)  # they begin at 0, where nothing can be seen
    return model


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("highway", [False, True])
def test_without_training_nothing_changes(cell: str, highway: bool) -> None:
    section = ForecasterSection(cell=cell, width=16, heads=2, highway=highway)  # type: ignore[arg-type]
    past = torch.randn(3, 12)
    assert torch.equal(Forecaster(section, 12, 4)(past), past[:, -1:].expand(3, 4))


@pytest.mark.parametrize("cell", CELLS)
def test_a_level_is_carried_through(cell: str) -> None:
    """f(y + c) = f(y) + c: a trend that has left the range of the training part changes nothing."""
    model, past = build(cell, normalise="level"), torch.randn(3, 12)
    assert torch.allclose(model(past + 7), model(past) + 7, atol=1e-4)
    assert not torch.allclose(build(cell, normalise="none")(past + 7), model(past) + 7, atol=1e-2)


@pytest.mark.parametrize("cell", CELLS)
def test_a_scale_is_carried_through(cell: str) -> None:
    """f(a y + c) = a f(y) + c"""
    model, past = build(cell, normalise="scale"), torch.randn(3, 12)
    assert torch.allclose(model(3 * past + 7), 3 * model(past) + 7, atol=1e-4)
    flat = torch.full((1, 12), 2.5)
    assert torch.isfinite(model(flat)).all(), "a flat window has no spread to divide by"


def test_the_lstm_is_torchs_lstm() -> None:
    """The whole of the docstring's equations, over PyTorch's own modules."""
    model, past = build("lstm", layers=1), torch.randn(4, 12)
    reference = nn.LSTM(1, 16, batch_first=True)
    reference.load_state_dict(model.reader.layers[0].state_dict())
    level = past[:, -1:]
    outputs, _ = reference((past - level)[..., None])
    assert model.highway is not None
    expected = level + outputs[:, -1] @ model.head.weight.T + model.head.bias + (past - level) @ model.highway.weight.T
    assert torch.allclose(model(past), expected, atol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_the_order_of_the_past_matters_and_rows_do_not_meet(cell: str) -> None:
    model, past = build(cell, highway=False), torch.randn(3, 12)
    turned = past.clone()
    turned[0, :11] = past[0, :11].flip(0)
    found, other = model(past), model(turned)
    assert not torch.allclose(found[0], other[0], atol=1e-4)
    assert torch.allclose(found[1:], other[1:], atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_every_parameter_learns(cell: str) -> None:
    model = build(cell).train()
    (model(torch.randn(8, 12)) - torch.randn(8, 5)).square().sum().backward()
    still = [name for name, each in model.named_parameters() if each.grad is None or not each.grad.abs().sum() > 0]
    # a key's bias adds the same to all scores of a query: it cannot be learned, and needs not to
    assert [name for name in still if not name.endswith("key.bias")] == []
