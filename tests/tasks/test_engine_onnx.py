"""A translator over onnxruntime writes what it writes over PyTorch, whatever is asked of the search; what it cannot do
is refused by name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from steppers import any_model, model_of, side_by_side
from translators import sentences, translator

from jumok.data.batch import source_batch
from jumok.errors import BadInput
from jumok.inspect.record import record
from jumok.interop.onnx_export import write_config
from jumok.interop.onnx_translator import write_translator
from jumok.models.transformer import Transformer
from jumok.recipe import BertSection
from jumok.tasks.engine_onnx import OnnxEngine, OnnxStepper, open_session
from jumok.tasks.translator import Translator

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("seed")
CPU = torch.device("cpu")


def stepper_of(model: Transformer, folder: Path) -> OnnxStepper:
    folder.mkdir(exist_ok=True)
    config, _ = write_translator(model, folder)
    write_config(folder, config)
    return OnnxStepper(folder)


def with_onnx(model: Translator, folder: Path) -> Translator:
    assert isinstance(model.model, Transformer)
    stepper_of(model.model, folder)
    other = copy(model)
    other.engine = OnnxEngine(model.models, CPU, folder)
    return other


@pytest.mark.parametrize("number", range(4))
def test_step_by_step(tmp_path: Path, number: int) -> None:
    """Rows chosen, repeated, dropped and joined at random, by models of any options; with and without coverage."""
    drawn = random.Random(torch.initial_seed() + number)
    model = any_model(drawn)
    print(model.section)
    stepper = stepper_of(model, tmp_path)
    for coverage in (False, True):
        for found in side_by_side(model, stepper, drawn, coverage, steps=24):  # more than a cache's first columns
            torch.testing.assert_close(*found.log_probs, atol=1e-4, rtol=1e-4)
            assert (found.coverage is not None) == coverage
            if found.coverage is not None:
                torch.testing.assert_close(*found.coverage, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("position", ["sinusoidal", "rotary"])
def test_texts_may_be_longer_than_any_table(tmp_path: Path, position: str) -> None:
    model = model_of(position=position)
    stepper, batch = stepper_of(model, tmp_path), source_batch([[7] * 700, [5] * 3])
    with torch.inference_mode():
        memories = model.encode(batch), stepper.encode(batch)
        parts = memories[0].store.transpose(3, 4), memories[1].store
        torch.testing.assert_close(*parts, atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Translator, Translator]:
    """A translator, and the same over onnxruntime: the export takes a second."""
    model = translator(wordy=True)
    return model, with_onnx(model, tmp_path_factory.mktemp("onnx"))


@pytest.mark.parametrize(
    "wishes",
    [
        {"beam": 1},
        {"beam": 4, "nbest": 3},
        {"coverage_penalty": 0.2, "beam": 3},
        {"sample": True, "seed": 3, "top_k": 10},
        {"forbid": ("le",), "no_repeat_ngram": 2},
        {"min_length": 4, "length_penalty": 0.5},
    ],
    ids=str,
)
def test_all_that_a_search_is_asked_for(
    both: tuple[Translator, Translator], wishes: dict[str, Any], is_tie: Callable[..., bool]
) -> None:
    model, other = both
    texts = sentences(7)
    pairs = zip(texts, model.nbest(texts, batch=3, **wishes), other.nbest(texts, batch=3, **wishes), strict=True)
    for text, here, there in pairs:
        same = [one.ids for one in here] == [one.ids for one in there]
        assert same or is_tie(model, text, **wishes), text
        if same:
            scores = [torch.tensor([one.score for one in found]) for found in (here, there)]
            torch.testing.assert_close(*scores, atol=1e-4, rtol=1e-4)


def test_who_wants_to_look_is_told(tmp_path: Path) -> None:
    other = with_onnx(translator(), tmp_path)
    with record(other.model), pytest.raises(BadInput, match="onnx engine cannot show"):
        other.translate(sentences(1))
    assert len(other.translate(sentences(1))) == 1


def test_an_ensemble_and_a_gpu_are_refused(tmp_path: Path) -> None:
    model = translator()
    with pytest.raises(BadInput, match="2 were given as an ensemble"):
        OnnxEngine([model.model, model.model], CPU, tmp_path)
    with pytest.raises(BadInput, match="on the CPU, not on cuda"):
        OnnxEngine(model.models, torch.device("cuda"), tmp_path)


def test_learned_positions_end(tmp_path: Path) -> None:
    stepper = stepper_of(model_of(position="learned", max_positions=9), tmp_path)
    memory = stepper.encode(source_batch([[5] * 8]))
    stepper.start(memory, 1, 9)
    for asked in (lambda: stepper.start(memory, 1, 10), lambda: stepper.encode(source_batch([[5] * 9]))):
        with pytest.raises(BadInput, match=r"end at 9 tokens .* 10 were asked for"):
            asked()


def test_a_bert_may_read_the_source(tmp_path: Path) -> None:
    """Its positions end, one before for [CLS]; those of what is written do not."""
    reader = BertSection(width=32, heads=4, layers=1, feed_forward=48, max_positions=30)
    model = model_of(reader=reader)
    stepper = stepper_of(model, tmp_path)
    assert (stepper.max_source, stepper.max_target) == (29, None)
    for found in side_by_side(model, stepper, random.Random(torch.initial_seed()), coverage=False):
        torch.testing.assert_close(*found.log_probs, atol=1e-4, rtol=1e-4)


def test_a_folder_that_is_something_else(tmp_path: Path) -> None:
    for content in ("", "[]", json.dumps({"format": "other"})):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(BadInput, match="not an ONNX export of jumok"):
            OnnxStepper(tmp_path)
    write_config(tmp_path, {"kind": "reader"})
    with pytest.raises(BadInput, match="not of a translator: reader"):
        OnnxStepper(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(BadInput, match="cannot be opened by onnxruntime"):
        open_session(tmp_path / "model.onnx")
