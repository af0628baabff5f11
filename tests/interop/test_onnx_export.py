"""Runs of every kind as ONNX files: whole, of open sizes, the same numbers as here; or refused, and nothing is left."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx_runs import keep, translating_run, words_run
from seeded import seed  # noqa: F401
from torch import nn
from translators import sentences, tokenizers

from jumok import api
from jumok import recipe as recipes
from jumok.errors import BadInput, Failure
from jumok.interop import onnx_graph, onnx_translator
from jumok.interop.onnx_export import export_onnx
from jumok.interop.onnx_translator import best_of
from jumok.layers.ctc import best_path
from jumok.models.bert import Bert, HiddenWords
from jumok.models.reader import TextLabeller, WordLabeller
from jumok.models.vit import ImageLabeller
from jumok.recipe import BertSection, VitSection
from jumok.tasks.engine_onnx import OnnxStepper, open_session
from jumok.tasks.vocabulary import save_tokenizers
from jumok.training.run import RunFolder

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("seed")
READS = {"width": 16, "heads": 2, "layers": 2, "feed_forward": 24, "max_positions": 40}
PROBE = ["The cat sleeps .", "A young dog reads the old book .", "She sees it ."]
LABELS: dict[str, dict[str, Any]] = {
    "classification": {"labels": ["bad", "good", "so so"], "counts": [1, 1, 1], "pairs": False},
    "regression": {"mean": 2.5, "scale": 1.25, "lowest": 0, "highest": 5, "pairs": False},
    "tagging": {"labels": ["B-PER", "I-PER", "O"], "counts": [1, 1, 1]},
    "answering": {"longest": 8, "unanswerable": True},
}


def reading_run(path: Path, task: str, **model: Any) -> RunFolder:
    vocabulary = tokenizers("bpe")[0]
    given = {"text": ["none.txt"]} if task == "pretraining" else {"examples": ["none"]}
    data = {"train": given, "valid": given, "window" if task == "pretraining" else "max_length": 32}
    raw: dict[str, Any] = {"task": task, "data": data, "model": {"kind": "bert", **READS, **model}}
    raw["training"] = {"label_smoothing": 0.0} if task == "pretraining" else {}
    raw["tokenizer"] = {"kind": "bpe", "vocabulary": 500}
    if task == "regression":
        raw["training"] = {"metric": "pearson"}
    recipe = recipes.check(raw, "test")
    run = RunFolder.create(path, recipe)
    save_tokenizers(run.tokenizer, {"text": vocabulary})
    section, made = recipe.model, nn.Module()
    if task == "pretraining":
        assert isinstance(section, BertSection)
        made = HiddenWords(Bert(section, vocabulary.size), order=recipe.masking.sentences != "none")
    elif task in ("tagging", "answering"):
        made = WordLabeller(section, vocabulary.size, 3 if task == "tagging" else 2)  # type: ignore[arg-type]
    else:
        made = TextLabeller(section, vocabulary.size, 3 if task == "classification" else 1)  # type: ignore[arg-type]
    if task in LABELS:
        (path / "labels.json").write_text(json.dumps(LABELS[task]))
    return keep(run, made)


def image_run(path: Path, **model: Any) -> RunFolder:
    section = {"image": [8, 12], "patch": 4, "width": 16, "heads": 2, "layers": 2, "feed_forward": 24, **model}
    raw = {"task": "vision", "data": {"train": {"drawn": "shapes"}, "valid": {"drawn": "shapes"}}}
    recipe = recipes.check({**raw, "model": {"kind": "vit", **section}}, "test")
    run = RunFolder.create(path, recipe)
    assert isinstance(recipe.model, VitSection)
    (path / "labels.json").write_text(json.dumps({"labels": ["a", "b", "c"], "counts": [1, 1, 1]}))
    return keep(run, ImageLabeller(recipe.model, 3))


def left(folder: Path) -> list[str]:
    """What lies beside the run."""
    return sorted(path.name for path in folder.iterdir() if path.name != "run")


def test_a_translator_is_two_graphs_and_all_that_is_needed_beside(tmp_path: Path) -> None:
    run = translating_run(tmp_path / "run", position="rotary", key_value_heads=1)
    notes = export_onnx(run, tmp_path / "out", PROBE)
    assert notes[-1].startswith("verified: 3 of 3 translations (beam 5) are the same in onnxruntime and PyTorch; ")
    assert left(tmp_path) == ["out"]
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert (config["kind"], config["layers"], config["groups"], config["head_width"]) == ("translator", 2, 1, 8)
    assert config["special_ids"] == {"pad": 0, "unknown": 1, "start": 2, "end": 3}
    assert config["files"]["encoder.onnx"]["inputs"]["ids"] == {"type": "int64", "shape": ["batch", "source"]}
    assert config["files"]["decoder_step.onnx"]["inputs"]["past_key_1"]["shape"] == ["batch", 1, "past", 8]
    loaded = api.load(run.path, "cpu")
    for side in ("source", "target"):
        kept = (tmp_path / "out/tokenizer" / side / "tokenizer.json").read_text(encoding="utf-8")
        assert kept == getattr(loaded, side).content
    assert OnnxStepper(tmp_path / "out").max_source is None


def test_without_sentences_those_of_the_grammar_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, rows = translating_run(tmp_path / "run", position="none"), []

    def turned_around(stepper: Any, asked: list[Any]) -> Any:
        rows[:] = [row for row, _ in asked]
        found = best_of(stepper, asked)
        return found[:196] + found[:-5:-1]

    monkeypatch.setattr(onnx_translator, "best_of", turned_around)
    monkeypatch.setattr(onnx_translator, "tied", lambda *_: False)
    with pytest.raises(Failure, match=r"19[6-8] of 200 translations .*: at least 99\.5% must be: nothing was written"):
        export_onnx(run, tmp_path / "out")
    assert left(tmp_path) == []
    assert len(rows) == 200
    texts = tokenizers("bpe")[0].decode(rows)
    assert set(sentences(20)) <= set(texts)


@pytest.mark.parametrize("task", ["pretraining", *LABELS])
def test_a_bert_of_every_task(tmp_path: Path, task: str) -> None:
    run = reading_run(tmp_path / "run", task, **({} if task == "tagging" else {"position": "rotary", "norm": "pre"}))
    assert "verified: the largest difference" in export_onnx(run, tmp_path / "out")[-1]
    session, loaded = open_session(tmp_path / "out/model.onnx"), api.load(run.path, "cpu")
    vocabulary, config = tokenizers("bpe")[0], json.loads((tmp_path / "out/config.json").read_text())
    rows = [[2, *row[:30], 3] for row in vocabulary.encode(PROBE)]
    longest = max(map(len, rows))
    ids = np.array([row + [0] * (longest - len(row)) for row in rows])
    feed = {"ids": ids, "mask": (ids > 0).astype(np.int64), "segments": np.zeros_like(ids)}
    scores, hidden, embedding = session.run(None, feed)
    assert hidden.shape == (3, longest, 16)
    np.testing.assert_allclose(embedding, loaded.embed(PROBE), atol=2e-5)
    expected = {"pretraining": (3, longest, vocabulary.size), "tagging": (3, longest, 3), "answering": (3, longest, 2)}
    assert scores.shape == expected.get(task, (3, 3 if task == "classification" else 1))
    if task == "classification":
        likeliest = [LABELS[task]["labels"][best] for best in scores.argmax(axis=1)]
        assert likeliest == [said.label for said in loaded.predict(PROBE)]
    assert config.get("labels") == LABELS.get(task)
    assert config["max_length"] == 32


def test_texts_that_are_read_apart_have_vectors_and_no_scores(tmp_path: Path) -> None:
    run = reading_run(tmp_path / "run", "regression", pairs="apart", pooling="mean")
    export_onnx(run, tmp_path / "out")
    outputs = json.loads((tmp_path / "out/config.json").read_text())["files"]["model.onnx"]["outputs"]
    assert list(outputs) == ["hidden", "embedding"]


@pytest.mark.parametrize("model", [{}, {"position": "sinusoidal", "pooling": "mean", "registers": 1}], ids=str)
def test_an_image_classifier(tmp_path: Path, model: dict[str, Any]) -> None:
    run = image_run(tmp_path / "run", **model)
    export_onnx(run, tmp_path / "out")
    images = torch.randint(256, (5, 3, 8, 12), dtype=torch.uint8).numpy()
    (scores,) = open_session(tmp_path / "out/model.onnx").run(None, {"images": images.astype(np.float32)})
    np.testing.assert_allclose(scores, api.load(run.path, "cpu").scores(images), atol=2e-5)


@pytest.mark.parametrize("encoder", ["vit", "recurrent"])
def test_a_reader_of_columns(tmp_path: Path, encoder: str) -> None:
    run = words_run(tmp_path / "run", encoder=encoder, decoder="ctc")
    export_onnx(run, tmp_path / "out")
    images = torch.randint(256, (5, 1, 32, 48), dtype=torch.uint8)
    feed = {"images": images.numpy().astype(np.float32)}
    (log_probs,) = open_session(tmp_path / "out/model.onnx").run(None, feed)
    found = torch.from_numpy(log_probs)
    found[..., 1:4] = -torch.inf  # neither <unk> nor <sos> nor <eos>
    ids, *_ = best_path(*found.max(dim=-1))
    with torch.no_grad():
        expected = api.load(run.path, "cpu").model.read(images).ids
    assert ids.tolist() == expected.tolist()
    assert (tmp_path / "out/charset.json").read_bytes() == (run.path / "charset.json").read_bytes()
    assert json.loads((tmp_path / "out/config.json").read_text())["reads"] == "columns"


def test_whole_numbers(tmp_path: Path) -> None:
    """Smaller, proved in float32 before, and how far off it is is told."""
    run = reading_run(tmp_path / "run", "tagging", width=64, feed_forward=256)
    for precision in ("float32", "int8"):
        told = export_onnx(run, tmp_path / precision, precision=precision)[-1]
        assert ("written in int8, it is" in told) == (precision == "int8")
    sizes = [(tmp_path / precision / "model.onnx").stat().st_size for precision in ("float32", "int8")]
    assert sizes[1] < 0.6 * sizes[0]
    told = export_onnx(translating_run(tmp_path / "a" / "run"), tmp_path / "b", PROBE, "int8")[-1]
    assert "3 of 3 translations" in told
    assert "; in int8 " in told
    with pytest.raises(BadInput, match="--precision int4"):
        export_onnx(run, tmp_path / "c", precision="int4")
    with pytest.raises(BadInput, match=r"--precision bfloat16: .* \(bfloat16 is for jumok translate --engine torch\)"):
        export_onnx(run, tmp_path / "c", precision="bfloat16")


def test_a_disk_that_is_full_when_numbers_become_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime reads what it could not write, and says something about domains."""
    quantization = importlib.import_module("onnxruntime.quantization")

    def broken(*_given: Any, **_named: Any) -> None:
        raise ValueError("Failed to find proper ai.onnx domain")

    monkeypatch.setattr(quantization, "quantize_dynamic", broken)
    with pytest.raises(Failure, match="space left on the disk"):
        export_onnx(reading_run(tmp_path / "run", "tagging"), tmp_path / "out", precision="int8")
    assert left(tmp_path) == []


def test_sentences_to_translate_are_for_translators(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"--probe: .* does not \(tagging\)"):
        export_onnx(reading_run(tmp_path / "run", "tagging"), tmp_path / "out", PROBE)
    assert left(tmp_path) == []


def test_what_has_no_graph_is_named(tmp_path: Path) -> None:
    recipe = recipes.read("transformer-lm", [])
    with pytest.raises(BadInput, match="task language"):
        export_onnx(RunFolder.create(tmp_path / "run", recipe), tmp_path / "out")
    assert left(tmp_path) == []


def test_what_is_there_is_only_replaced_if_it_is_an_export(tmp_path: Path) -> None:
    run, out = image_run(tmp_path / "run"), tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="no export of jumok"):
        export_onnx(run, out)
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]
    export_onnx(run, tmp_path / "other")
    export_onnx(run, tmp_path / "other")
    assert left(tmp_path) == ["other", "out"]
    (tmp_path / "other/more.txt").write_text("mine too")
    with pytest.raises(BadInput, match=r"more\.txt came there"):
        export_onnx(run, tmp_path / "other")
    assert (tmp_path / "other/more.txt").read_text() == "mine too"


def test_a_graph_that_says_something_else_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_graph, "LARGEST", -1.0)
    for run, probe in (
        (reading_run(tmp_path / "run", "classification"), []),
        (translating_run(tmp_path / "a" / "run"), PROBE),
    ):
        with pytest.raises(Failure, match="differs between onnxruntime and PyTorch"):
            export_onnx(run, tmp_path / "out", probe)
        assert not (tmp_path / "out").exists()
    assert left(tmp_path) == ["a"]


@pytest.mark.parametrize("library", ["onnx", "onnxruntime"])
def test_a_missing_library_is_named_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    run = image_run(tmp_path / "run")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BadInput, match=r"pip install 'jumok\[onnx\]'"):
        export_onnx(run, tmp_path / "out")
    assert left(tmp_path) == []
