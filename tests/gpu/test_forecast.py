"""Forecasters on a GPU: the same numbers as on the CPU, and a resumed run that is bit-identical."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from stopping import StopAt

from jumok import api
from jumok import recipe as recipes
from jumok.models.forecaster import Forecaster
from jumok.recipe import ForecasterSection
from jumok.training.run import RunFolder
from jumok.training.verify import differences

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")

SMALL = ["device=cuda", "data.series.length=400", "data.series.horizon=8", "model.dropout=0.1", "training.log_every=1"]


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "transformer"])
@pytest.mark.parametrize("normalise", ["level", "scale"])
def test_the_gpu_computes_what_the_cpu_does(cell: str, normalise: str) -> None:
    """In float64, so that what differs is what is computed, not how it is rounded."""
    section = ForecasterSection.model_validate({"cell": cell, "width": 32, "layers": 2, "normalise": normalise})
    model = Forecaster(section, 40, 12).double()
    for parameter in model.head.parameters():
        torch.nn.init.normal_(parameter)
    past = torch.randn(16, 40, dtype=torch.float64)
    assert torch.allclose(copy.deepcopy(model).cuda()(past.cuda()).cpu(), model(past), atol=1e-9)


@pytest.mark.parametrize("name", ["forecast", "forecast-rnn", "forecast-transformer"])
def test_a_resumed_run_is_the_undisturbed_one(tmp_path: Path, name: str) -> None:
    keys = [*SMALL, "training.validate_every=6", "training.checkpoint_every=6", "training.patience=0"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    api.train(recipes.read(name, [*keys, "training.updates=12"]), whole, quiet=True, report=False)

    with pytest.raises(KeyboardInterrupt):
        api.train(recipes.read(name, [*keys, "training.updates=12"]), cut, quiet=True, report=False, sinks=[StopAt(8)])
    api.train(None, cut, resume=True, quiet=True, report=False)
    assert differences(RunFolder(whole), RunFolder(cut)) == []
