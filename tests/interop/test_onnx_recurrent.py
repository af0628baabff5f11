"""Recurrent translators as an encoder and a step: they write what they write over PyTorch, or are refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from onnx_runs import translating_run
from seeded import seed  # noqa: F401
from steppers import WORDS, side_by_side
from translators import sentences

from jumok import api
from jumok.data.batch import source_batch
from jumok.errors import BadInput, Failure
from jumok.interop.onnx_engine import engine_folder
from jumok.interop.onnx_export import export_onnx, write_config
from jumok.interop.onnx_translator import verify_steps, write_translator
from jumok.models.seq2seq import Seq2Seq
from jumok.recipe import Seq2SeqSection
from jumok.tasks.engine_onnx import OnnxEngine, stepper_of
from jumok.tasks.engine_onnx_recurrent import RecurrentStepper
from jumok.training.run import RunFolder

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("seed")
SMALL: dict[str, Any] = {"embedding": 12, "width": 16, "layers": 2}
MODELS: list[dict[str, Any]] = [
    {},
    {"cell": "gru", "attention": "bahdanau", "scorer": "additive", "bidirectional": True},
    {"cell": "rnn", "scorer": "dot", "bidirectional": True, "reverse_source": True, "tie_embeddings": True},
    {"scorer": "location", "max_source": 12, "input_feeding": True, "bidirectional": True},
    {"attention": "none", "reverse_source": True, "layers": 3},
    {"cell": "rnn", "attention": "none"},
    {"cell": "gru", "written_out": True, "input_feeding": True, "scorer": "scaled-dot"},
]


def model_of(**keys: Any) -> Seq2Seq:
    model = Seq2Seq(Seq2SeqSection(**{**SMALL, **keys}), WORDS, WORDS).eval()
    for parameter in model.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model


def written(model: Seq2Seq, folder: Path) -> RecurrentStepper:
    config, _ = write_translator(model, folder)
    write_config(folder, config)
    stepper = stepper_of(folder)
    assert isinstance(stepper, RecurrentStepper)
    return stepper


@pytest.mark.parametrize("keys", MODELS, ids=str)
def test_step_by_step(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Rows chosen, repeated, dropped and joined at random."""
    model = model_of(**keys)
    stepper = written(model, tmp_path)
    for found in side_by_side(model, stepper, random.Random(torch.initial_seed()), coverage=model.attends):
        torch.testing.assert_close(*found.log_probs, atol=1e-4, rtol=1e-4)
        if found.coverage is not None:
            torch.testing.assert_close(*found.coverage, atol=1e-4, rtol=1e-4)


def test_another_model_is_found(tmp_path: Path) -> None:
    model = model_of(input_feeding=True)
    stepper = written(model, tmp_path)
    assert verify_steps(model, stepper) < 1e-4
    model.decoder.recurrent.layers[1].weight_hh_l0.data.mul_(1.2)  # nothing but what a step takes over
    with pytest.raises(Failure, match="log p at position"):
        verify_steps(model, stepper)


def test_what_it_cannot_do_is_named(tmp_path: Path) -> None:
    stepper = written(model_of(scorer="location", max_source=6), tmp_path)
    with pytest.raises(BadInput, match="at most 6 tokens"):
        stepper.encode(source_batch([[5] * 9]))
    stepper = written(model_of(attention="none"), tmp_path)
    with pytest.raises(BadInput, match="coverage penalty needs attention"):
        stepper.start(stepper.encode(source_batch([[5]])), 1, 9, coverage=True)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_run_that_has_learned(tmp_path: Path, precision: str) -> None:
    """The one that comes with the package."""
    run = RunFolder.open(api.packaged_run())
    told = export_onnx(run, tmp_path / "out", sentences(20), precision)[-1]
    assert "20 of 20 translations" in told
    assert ("; in int8 " in told) == (precision == "int8")
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert (config["kind"], config["decoder"]) == ("translator", "recurrent")
    model = api.load(run.path, "cpu")
    expected = model.translate(sentences(20), beam=3)
    model.engine = OnnxEngine(model.models, torch.device("cpu"), tmp_path / "out")
    found = model.translate(sentences(20), beam=3)
    assert found == expected if precision == "float32" else len(found) == 20


def test_an_engine_of_its_own(tmp_path: Path) -> None:
    run = translating_run(tmp_path / "run", {"kind": "seq2seq", **SMALL, "attention": "bahdanau"})
    folder = engine_folder(run, "float32", lambda told: None)
    model = api.load(run.path, "cpu")
    expected = model.translate(sentences(5), beam=3)
    model.engine = OnnxEngine(model.models, torch.device("cpu"), folder)
    assert model.translate(sentences(5), beam=3) == expected
