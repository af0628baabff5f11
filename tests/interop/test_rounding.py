"""What is written in int8 is held to the run's own probabilities; a model that rounding destroys is not kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from ct2_runs import small_run
from seeded import seed as seed

from jumok.data.batch import source_batch
from jumok.errors import Failure
from jumok.interop import ctranslate2, onnx_engine, onnx_export
from jumok.interop.ctranslate2 import Chosen
from jumok.interop.rounding import check_rounded, forced
from jumok.models.transformer import Transformer
from jumok.search import Hypothesis, SearchOptions, generate
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

LARGE = 3000


def with_outliers(run: RunFolder) -> RunFolder:
    """The same model, but one channel of each value has become small and its weights behind that large, so that nothing
    of the weights beside them is left when all are rounded by the same step."""
    model = Chosen.of(run, print).model()
    for block in (*model.encoder.blocks, *model.decoder.blocks):
        for attention in (block.attention, block.cross):
            if attention is not None:
                attention.value.weight.data[0] /= LARGE
                attention.value.bias.data[0] /= LARGE
                attention.output.weight.data[:, 0] *= LARGE
    checkpoint.write(run.checkpoints / "step-9", checkpoint.stored_tensors(model), None, TrainState(update=9))
    run.point("best", 9)
    return run


def model_of(run: RunFolder) -> Transformer:
    return Chosen.of(run, print).model()


def test_translations_that_are_given_are_scored_as_the_search_scored_them(tmp_path: Path, seed: int) -> None:
    model = model_of(small_run(tmp_path / "run", seed))
    rows = [torch.randint(4, 40, (length,)).tolist() for length in (3, 1, 12, 7, 7)]
    options = SearchOptions(beam=3, max_length=20)
    found = [hypotheses[0] for hypotheses in generate(model, source_batch(rows), [options] * len(rows))]
    scores = forced(model, rows, [one.tokens for one in found])
    for one, score in zip(found, scores, strict=True):
        assert score == pytest.approx(one.log_probability, abs=1e-4)


def test_how_far_is_too_far() -> None:
    found = [Hypothesis([5, 6, 7], -1.0, -4.0, True), Hypothesis([5], -1.0, -2.0, True)]
    assert check_rounded(found, [-4.4, -2.0], "") == "max|Δ log p| 1.0e-01 a token, 5.0e-02 in the mean"
    for scores in ([-4.4, -3.0], [float("nan"), -2.0], [float("-inf"), -2.0]):
        with pytest.raises(Failure, match=r"is not the same model any more in int8\. Do that"):
            check_rounded(found, scores, "Do that")


def test_rounding_is_told(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ctranslate2")
    monkeypatch.setattr(ctranslate2, "PROBED", 40)
    run = small_run(tmp_path / "run", seed)
    assert "in the mean" in ctranslate2.export_ct2(run, tmp_path / "ct2", "int8")[-1]
    assert "in the mean" in onnx_export.export_onnx(run, tmp_path / "onnx", (), "int8")[-1]


def test_what_rounding_destroys_is_not_kept(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ctranslate2")
    monkeypatch.setattr(ctranslate2, "PROBED", 40)
    run = with_outliers(small_run(tmp_path / "run", seed))
    with pytest.raises(Failure, match="Nothing was exported; use --precision float32"):
        ctranslate2.export_ct2(run, tmp_path / "ct2", "int8")
    with pytest.raises(Failure, match="Nothing was written; use --precision float32"):
        onnx_export.export_onnx(run, tmp_path / "onnx", (), "int8")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    for engine in (ctranslate2, onnx_engine):
        with pytest.raises(Failure, match="Use --precision float32, or --engine torch"):
            engine.engine_folder(run, "int8", print)
    assert not [path for path in (run.path / "engines").iterdir() if path.is_dir()]
