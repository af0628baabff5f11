"""`jumok ablate`: the table, and pictures of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from commands import invoke
from journey import write_corpus
from PIL import Image

from jumok import api
from jumok.cli.ablate import ablate
from jumok.errors import BadInput
from jumok.recipe import read

TINY = [
    "data.train.pairs=60", "data.valid.pairs=6", "tokenizer.kind=word", "model.width=16", "model.heads=2",
    "model.feed_forward=16", "model.encoder_layers=2", "model.decoder_layers=1", "training.updates=2",
    "training.batch_tokens=500", "training.validate_sentences=2", "search.beam=1", "device=cpu", "threads=1",
    "search.max_ratio=1.0", "search.max_extra=3",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    api.train(read("transformer-tiny", TINY), folder, quiet=True, report=False)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    source, target, _ = write_corpus(tmp_path_factory.mktemp("corpus"), 8, "test")
    return ["--source", str(source), "--target", str(target), "--device", "cpu", "--bleu-sentences", "2"]


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(ablate)
    return app


def test_every_head_of_a_transformer(app: typer.Typer, run: Path, files: list[str], tmp_path: Path) -> None:
    picture = tmp_path / "heads.png"
    said = invoke(app, "--run", str(run), *files, "--out", str(picture)).output
    for name in (
        "encoder.0.self, head 0",
        "encoder.1.self, head 1",
        "decoder.0.causal, head 1",
        "decoder.0.cross, head 0",
    ):
        assert name in said
    with Image.open(picture) as image:
        assert min(image.size) > 200
    found = json.loads(invoke(app, "--run", str(run), *files, "--kind", "cross", "--instead", "mean", "--json").output)
    assert [head["kind"] for head in found["heads"]] == ["cross", "cross"]
    assert found["sentences"] == 8
    assert found["way"] == "mean"
    for head in found["heads"]:
        assert head["loss"] == pytest.approx(found["loss"] + head["loss_change"])


def test_the_attention_of_the_packaged_model_is_worth_everything(
    app: typer.Typer, files: list[str], tmp_path: Path
) -> None:
    assert "decoder" in invoke(app, *files, "--out", str(tmp_path / "heads.json")).output
    found = json.loads((tmp_path / "heads.json").read_text(encoding="utf-8"))
    assert found["heads"][0]["loss_change"] > 1
    assert found["heads"][0]["bleu_change"] < -50


def test_what_cannot_be_is_refused(app: typer.Typer, files: list[str], tmp_path: Path) -> None:
    for words, *options in (
        ("no such attention", "--kind", "self"),
        ("no way to take", "--instead", "nothing"),
        ("none of .png", "--out", str(tmp_path / "x.jpg")),
        ("1 or more", "--sentences", "0"),
    ):
        with pytest.raises(BadInput, match=words):
            invoke(app, *files, *options)
