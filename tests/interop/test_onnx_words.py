"""Readers that write, as one graph: it reads what the model reads, and one that reads otherwise is found."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx_runs import translating_run, words_run
from seeded import seed  # noqa: F401
from torch import nn

from jumok import api
from jumok.errors import Failure
from jumok.interop import onnx_graph, onnx_readings
from jumok.interop.onnx_export import export_onnx
from jumok.interop.onnx_graph import Graph, write
from jumok.interop.onnx_int8 import _as_products
from jumok.interop.onnx_readings import rounded_readings, verify_readings
from jumok.interop.onnx_words import WordsGraph, random_pictures, words_graph
from jumok.layers.ctc import best_path
from jumok.models.permuted import PermutedRecognizer
from jumok.models.recognizer import reading_of
from jumok.models.recognizer_decoders import WritingRecognizer
from jumok.tasks.engine_onnx import open_session
from jumok.text.special import END
from jumok.training.run import RunFolder

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("seed")
DIGITS, HANGUL = ("digits",), ("digits", "hangul")
READERS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "permuted": (DIGITS, {"refinements": 2, "stem_depth": 2, "stem_width": 8}),
    "permuted, of letters": (HANGUL, {"ctc": 0.0, "decoder_layers": 2}),
    "cnn-permuted": (DIGITS, {"encoder": "recurrent", "refinements": 0}),
    "vit-decoder": (HANGUL, {"decoder": "transformer", "decoder_layers": 2}),
    "cnn-decoder": (DIGITS, {"encoder": "recurrent", "decoder": "transformer", "width": 30, "decoder_heads": 3}),
    "attn-lstm": (DIGITS, {"encoder": "recurrent", "decoder": "recurrent", "decoder_layers": 2}),
    "vit-lstm": (HANGUL, {"decoder": "recurrent"}),
}


def model_of(run: RunFolder) -> PermutedRecognizer | WritingRecognizer:
    model = api.load(run.path, "cpu").model
    assert isinstance(model, PermutedRecognizer | WritingRecognizer)
    return model.eval()


def written(tmp_path: Path, name: str) -> tuple[PermutedRecognizer | WritingRecognizer, Graph, Path]:
    sets, section = READERS[name]
    model = model_of(words_run(tmp_path / "run", *sets, **section))
    heads_of(model).bias.data[END] -= 3  # some random models read nothing at all, in which nothing can be otherwise
    graph, path = words_graph(model), tmp_path / "model.onnx"
    write(graph, path)
    return model, graph, path


@pytest.mark.parametrize("name", READERS)
def test_the_whole_reading_is_one_graph(tmp_path: Path, name: str) -> None:
    sets, section = READERS[name]
    run = words_run(tmp_path / "run", *sets, **section)
    assert "readings of random pictures" in export_onnx(run, tmp_path / "out")[-1]
    session, model = open_session(tmp_path / "out/model.onnx"), model_of(run)
    images = random_pictures(11, (1, 32, 48))
    ids, log_probs, *columns = (torch.from_numpy(one) for one in session.run(None, {"images": images.numpy()}))
    found, expected = reading_of(ids, log_probs), model.read(images)
    longest = expected.ids.size(1)  # it stops when all have ended
    assert found.ids[:, :longest].tolist() == expected.ids.tolist()
    assert found.lengths.tolist() == expected.lengths.tolist()
    torch.testing.assert_close(found.log_probs[:, :longest], expected.log_probs, atol=1e-4, rtol=0)
    torch.testing.assert_close(found.ending, expected.ending, atol=1e-4, rtol=0)
    has_columns = isinstance(model, PermutedRecognizer) and model.ctc is not None
    assert len(columns) == has_columns
    if has_columns:
        columns[0][..., 1:4] = -torch.inf
        assert best_path(*columns[0].max(dim=-1))[0].tolist() == model.read(images, fast=True).ids.tolist()
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert (config["reads"], config["special_ids"]["end"]) == ("places", 3)
    assert config["files"]["model.onnx"]["outputs"]["ids"] == {"type": "int64", "shape": ["batch", 4]}
    assert (tmp_path / "out/charset.json").read_bytes() == (run.path / "charset.json").read_bytes()


def heads_of(model: PermutedRecognizer | WritingRecognizer) -> nn.Linear:
    head = model.head if isinstance(model, PermutedRecognizer) else model.writer.head
    assert isinstance(head.map, nn.Linear)
    return head.map


def shuffle(linear: nn.Linear) -> None:
    """Every digit becomes the next: the numbers stay, and mean something else."""
    for parameter in linear.parameters():
        parameter.data[4:] = parameter.data[4:].roll(1, dims=0)


@pytest.mark.parametrize("name", ["permuted", "attn-lstm"])
def test_a_graph_that_reads_otherwise_is_found(tmp_path: Path, name: str) -> None:
    model, graph, path = written(tmp_path, name)
    assert verify_readings(model, graph, path).decided > 20
    shuffle(heads_of(model))
    with pytest.raises(Failure, match="otherwise than the model itself"):
        verify_readings(model, graph, path)
    assert isinstance(graph.module, WordsGraph)
    shuffle(heads_of(graph.module.model))
    with pytest.raises(Failure, match=r"of \d+ readings differ"):
        verify_readings(model, graph, path)


def test_a_difference_of_numbers_alone_is_found(tmp_path: Path) -> None:
    """In the last place there is nothing to choose, and only log p of the end can be wrong."""
    model, graph, path = written(tmp_path, "permuted")
    assert isinstance(model, PermutedRecognizer)
    assert isinstance(graph.module, WordsGraph)
    graph.module.model.positions.data[-1] += 0.3 * torch.randn(32)
    with pytest.raises(Failure, match="log_probs differs"):
        verify_readings(model, graph, path)


def test_nothing_is_left_of_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = words_run(tmp_path / "run", decoder="transformer")
    monkeypatch.setattr(onnx_graph, "LARGEST", -1.0)
    with pytest.raises(Failure, match="differs between onnxruntime and PyTorch"):
        export_onnx(run, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_readings_that_rounding_decides_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, graph, path = written(tmp_path, "cnn-decoder")
    monkeypatch.setattr(onnx_readings, "DOUBT", 1e9)
    with pytest.raises(Failure, match="rounding decides all of 60 readings"):
        verify_readings(model, graph, path)


@pytest.mark.parametrize("name", ["permuted", "attn-lstm"])
def test_whole_numbers(tmp_path: Path, name: str) -> None:
    """Every map of the loop, not the first time it is used alone."""
    onnx = importlib.import_module("onnx")
    sets, section = READERS[name]
    run = words_run(tmp_path / "run", *sets, **section)
    told = export_onnx(run, tmp_path / "out", precision="int8")[-1]
    assert "verified: " in told
    assert "written in int8, " in told
    graph = onnx.load(tmp_path / "out/model.onnx").graph
    weights = {one.name for one in graph.initializer}
    kinds = [node.op_type for node in graph.node]
    assert kinds.count("MatMulInteger") > 20
    assert not [node.name for node in graph.node if node.op_type in ("MatMul", "Gemm") and node.input[1] in weights]


def test_garbage_is_no_rounding(tmp_path: Path) -> None:
    _, graph, path = written(tmp_path, "permuted")
    assert "100.0% of them" in rounded_readings(graph, path, 1e-3)
    assert isinstance(graph.module, WordsGraph)
    ctc = graph.module.model.ctc
    assert isinstance(ctc, nn.Module)
    for parameter in ctc.parameters():
        parameter.data.mul_(30.0)
    with pytest.raises(Failure, match="columns differs"):
        rounded_readings(graph, path, 0.1)


def test_maps_as_products_compute_the_same(tmp_path: Path) -> None:
    """Weights that several maps share, and word vectors that are the last layer's weights, too."""
    onnx = importlib.import_module("onnx")
    path = written(tmp_path, "attn-lstm")[2]
    export_onnx(translating_run(tmp_path / "a/run", tie_embeddings="target"), tmp_path / "b", ["The cat sleeps ."])
    for file in (path, tmp_path / "b/decoder_step.onnx"):
        _as_products(file, tmp_path / "products.onnx")
        assert "Gemm" not in {node.op_type for node in onnx.load(tmp_path / "products.onnx").graph.node}
        sessions = [open_session(one) for one in (file, tmp_path / "products.onnx")]
        sizes = {"batch": 2, "source": 3, "past": 4}
        feed = {}
        for one in sessions[0].get_inputs():
            shape = [sizes.get(size, size) for size in one.shape]
            whole = "int64" in one.type
            feed[one.name] = np.ones(shape, np.int64) if whole else np.random.default_rng().random(shape, np.float32)
        for here, there in zip(*(session.run(None, feed) for session in sessions), strict=True):
            np.testing.assert_allclose(here, there, atol=1e-5)


def test_random_pictures_are_of_many_kinds() -> None:
    pictures = random_pictures(40, (3, 16, 24))
    assert pictures.shape == (40, 3, 16, 24)
    assert pictures.min() >= 0
    assert pictures.max() <= 255
    spread = pictures.flatten(1).std(dim=1)
    assert spread.max() > 2 * spread.min()
