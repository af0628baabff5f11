"""Which numbers are computed in, and how the scale of float16 travels through a checkpoint."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from jumok.errors import BadInput
from jumok.training.precision import Precision, choose_precision

CPU = torch.device("cpu")


def test_auto_on_a_cpu_is_float32() -> None:
    assert choose_precision("auto", CPU) == torch.float32
    assert choose_precision("bfloat16", CPU) == torch.bfloat16
    with pytest.raises(BadInput, match=r"training\.precision: float16 .* CPU"):
        choose_precision("float16", CPU)


def test_products_are_computed_in_it_and_weights_stay_as_they_are() -> None:
    layer = nn.Linear(3, 2)
    for dtype in (torch.float32, torch.bfloat16):
        with Precision(dtype, CPU).context():
            assert layer(torch.ones(1, 3)).dtype == dtype
    assert layer.weight.dtype == torch.float32


def test_the_scale_is_what_a_checkpoint_says() -> None:
    """The scaler of PyTorch also works on a CPU: the scale halves after an overflow, and nothing is learned from it."""
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.AdamW([weight], lr=0.1)
    precision = Precision(torch.float16, CPU, scale=1024.0, good=3)
    assert precision.state() == (1024.0, 3)
    assert precision.scaler is not None
    for factor in (float("inf"), 1.0):
        optimizer.zero_grad()
        precision.scaled((weight * factor).sum()).backward()
        precision.scaler.unscale_(optimizer)
        assert factor == float("inf") or weight.grad.item() == 1.0
        precision.scaler.step(optimizer)
        precision.scaler.update()
        assert (weight.item() == 1.0) == (factor == float("inf"))
    assert precision.state() == (512.0, 1)
    assert precision.forgives()
    assert not Precision(torch.float16, CPU, scale=0.5, good=0).forgives()
    assert not Precision(torch.float32, CPU).forgives()
    again = Precision(torch.float16, CPU, *precision.state())
    assert again.state() == (512.0, 1)
