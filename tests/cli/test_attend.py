"""`jumok attend` of a Transformer, from the run that training left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import typer
from commands import invoke

from jumok import api
from jumok.cli.attend import attend
from jumok.data.batch import END
from jumok.errors import BadInput
from jumok.inspect.run_report import write_run_report
from jumok.recipe import read
from jumok.tasks.engine import Engine

TINY = [
    "data.train.pairs=60", "data.valid.pairs=6", "tokenizer.kind=word", "model.width=16", "model.heads=2",
    "model.feed_forward=16", "model.encoder_layers=2", "model.decoder_layers=3", "training.updates=2",
    "training.batch_tokens=500", "training.validate_sentences=2", "search.beam=1", "device=cpu", "threads=1",
    "search.max_ratio=1.0", "search.max_extra=3",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    api.train(read("transformer-tiny", TINY), folder, quiet=True)
    return folder


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(attend)
    return app


def test_training_ends_with_a_report_that_shows_attention(run: Path) -> None:
    assert (run / "report.html").is_file()
    translator = api.load_translator(run, "cpu")
    with torch.no_grad():
        translator.model.bias[END] = -50.0  # after two updates it may have nothing to say
    translator.engine = Engine([translator.model], torch.device("cpu"))
    write_run_report(translator, translator.recipe, translator.run, ["I am here."], ["Je suis ici."])
    report = (run / "report.html").read_text(encoding="utf-8")
    assert 'id="attention"' in report
    assert "<span>decoder.1.cross, mean of 2 heads</span>" in report


def test_layer_head_and_kind(run: Path, app: typer.Typer, tmp_path: Path) -> None:
    common = ["I am a student .", "--run", str(run), "--target", "je suis étudiant ."]
    shown = invoke(app, *common).output
    assert "decoder.1.cross, mean of 2 heads" in shown
    assert "student" in shown.splitlines()[1]  # after the word on what is unknown
    out = tmp_path / "picture.json"
    keys = {"cross": "I am a student . <eos>", "self": "I am a student . <eos>", "causal": "<sos> je suis étudiant ."}
    queries = {"cross": "je suis étudiant . <eos>", "self": keys["self"], "causal": "je suis étudiant . <eos>"}
    for kind in keys:
        told = invoke(app, *common, "--kind", kind, "--layer", "1", "--head", "0", "--out", str(out)).output
        assert ("étudiant" in told) == (kind != "self")
        picture = json.loads(out.read_text(encoding="utf-8"))
        side = "encoder" if kind == "self" else "decoder"
        assert (picture["kind"], picture["name"]) == (kind, f"{side}.1.{kind}, head 0")
        assert " ".join(picture["source"]) == keys[kind]
        assert len(picture["target"]) == len(queries[kind].split())
        for number, row in enumerate(picture["weights"]):
            assert sum(row) == pytest.approx(1, abs=1e-5)
            assert kind != "causal" or not any(row[number + 1 :])  # nothing that was not written yet


def test_what_does_not_exist_is_refused(run: Path, app: typer.Typer) -> None:
    for options, words in (
        (("--layer", "9"), "layer 9: the cross attention of this model is in layers 0 to 2"),
        (("--head", "5"), "head 5: layer 1 has heads 0 to 1"),
        (("--kind", "cros"), 'Did you mean "cross"'),
        (("--kind", "self", "--layer", "2"), "layers 0 to 1"),
    ):
        with pytest.raises(BadInput, match=words):
            invoke(app, "I am here .", "--run", str(run), *options)


def test_the_steps_for_a_word_are_printed_and_drawn(run: Path, app: typer.Typer, tmp_path: Path) -> None:
    common = ["I am a student .", "--run", str(run), "--target", "je suis étudiant ."]
    out = tmp_path / "steps.json"
    told = invoke(app, *common, "--steps", "2", "--layer", "1", "--head", "1", "--out", str(out)).output
    assert 'word 2, "suis": decoder.1.cross, head 1 of 2' in told
    assert "the model's prediction here" in told
    assert f"written: {out}" in told.replace("\n", "")
    values = json.loads(out.read_text(encoding="utf-8"))
    weights = next(step for step in values["steps"] if step["symbol"] == "softmax")
    assert sum(weights["values"]) == pytest.approx(1, abs=1e-5)
    assert len(weights["labels"]) == 6
    for options, words in (
        (("--steps", "seven"), "--steps seven: no such word"),
        (("--steps", "1", "--all"), "leave one of the two out"),
        (("--steps", "1", "--out", str(tmp_path / "x.gif")), "gif"),
    ):
        with pytest.raises(BadInput, match=words):
            invoke(app, *common, *options)
