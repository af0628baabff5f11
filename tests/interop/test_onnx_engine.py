"""The engine's files: made once, made again when the weights changed, and never half."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from onnx_runs import translating_run, words_run
from safetensors.torch import load_file
from seeded import seed  # noqa: F401
from translators import sentences

from jumok import api
from jumok.errors import BadInput, Failure
from jumok.interop import onnx_graph
from jumok.interop.onnx_engine import engine_folder
from jumok.tasks.engine_onnx import OnnxEngine
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("seed")
CPU = torch.device("cpu")


def translated(run: RunFolder, precision: str = "float32") -> list[str]:
    model, said = api.load(run.path, "cpu"), list[str]()
    model.engine = OnnxEngine(model.models, CPU, engine_folder(run, precision, said.append))
    found: list[str] = model.translate(sentences(5), beam=3)
    return found


def test_made_once_and_again_for_other_weights(tmp_path: Path) -> None:
    run, said = translating_run(tmp_path / "run"), list[str]()
    folder = engine_folder(run, "float32", said.append)
    assert folder == run.path / "engines" / "onnx-float32"
    assert len(said) == 1
    made = (folder / "encoder.onnx").stat().st_mtime_ns
    assert engine_folder(run, "float32", said.append) == folder
    assert (len(said), (folder / "encoder.onnx").stat().st_mtime_ns) == (1, made)
    assert translated(run) == api.load(run.path, "cpu").translate(sentences(5), beam=3)
    weights = {name: tensor + 0.3 for name, tensor in load_file(run.checkpoints / "step-0/model.safetensors").items()}
    checkpoint.write(run.checkpoints / "step-7", weights, None, TrainState(update=7, total=7))
    assert translated(run) == api.load(run.path, "cpu").translate(sentences(5), beam=3)
    assert (folder / "encoder.onnx").stat().st_mtime_ns != made


def test_what_is_damaged_is_made_again(tmp_path: Path) -> None:
    run = translating_run(tmp_path / "run")
    folder = engine_folder(run, "float32", lambda told: None)
    whole = (folder / "decoder_step.onnx").read_bytes()
    (folder / "decoder_step.onnx").write_bytes(whole[:100])
    engine_folder(run, "float32", lambda told: None)
    assert len((folder / "decoder_step.onnx").read_bytes()) == len(whole)


def test_whole_numbers_are_smaller_and_still_near(tmp_path: Path) -> None:
    run = translating_run(tmp_path / "run", width=32, feed_forward=128)
    folders = [engine_folder(run, precision, lambda told: None) for precision in ("float32", "int8")]
    sizes = [(folder / "decoder_step.onnx").stat().st_size for folder in folders]
    assert sizes[1] < sizes[0]
    assert len(translated(run, "int8")) == 5


def test_nothing_is_left_of_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = translating_run(tmp_path / "run")
    monkeypatch.setattr(onnx_graph, "LARGEST", -1.0)
    with pytest.raises(Failure, match="differs"):
        engine_folder(run, "float32", lambda told: None)
    assert [path.name for path in (run.path / "engines").iterdir() if path.is_dir()] == []


def test_what_it_cannot_do_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"bfloat16.*float32 or int8"):
        engine_folder(translating_run(tmp_path / "run"), "bfloat16", lambda told: None)
    with pytest.raises(BadInput, match="does not translate"):
        engine_folder(words_run(tmp_path / "words"), "float32", lambda told: None)
    assert not (tmp_path / "words/engines").exists()
