"""`jumok positions` without a run and with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from commands import invoke

from jumok import api
from jumok.cli.positions import positions
from jumok.errors import BadInput
from jumok.recipe import read

TINY = [
    "data.train.pairs=40", "data.valid.pairs=4", "tokenizer.kind=word", "model.width=16", "model.heads=2",
    "model.feed_forward=16", "model.encoder_layers=1", "model.decoder_layers=1", "training.updates=1",
    "training.batch_tokens=300", "training.validate_sentences=2", "device=cpu", "threads=1",
    "model.position=learned", "model.max_positions=60", "data.max_length=20",
]  # fmt: skip


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(positions)
    return app


def test_formulas(app: typer.Typer, tmp_path: Path) -> None:
    assert "sinusoidal: 128 dimensions" in invoke(app).output
    shown = invoke(app, "--kind", "rotary", "--width", "16", "--length", "30", "--trained", "10").output
    assert "rotary: 16 dimensions" in shown
    assert "longer than in training (10)" in shown
    assert "sinusoidal-halves: 128 dimensions" in invoke(app, "--kind", "sinusoidal-halves").output
    for ending in ("png", "svg", "html", "json"):
        out = tmp_path / f"positions.{ending}"
        assert f"written: {out}" in invoke(app, "--kind", "learned", "--length", "16", "--out", str(out)).output
        assert out.stat().st_size > 500


def test_a_run_shows_its_own(app: typer.Typer, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "positions.json"
    trained = api.train(read("transformer-tiny", TINY), run, quiet=True, report=False)
    invoke(app, "--run", str(run), "--out", str(out))
    encoder, decoder = json.loads(out.read_text(encoding="utf-8"))["positions"]
    assert (encoder["name"], decoder["name"]) == ("encoder: learned", "decoder: learned")
    assert (encoder["trained"], encoder["length"]) == (21, 42)  # 20 tokens and <eos>; twice as many are shown
    weights = trained.model.encoder.added.weight
    assert encoder["table"][5] == pytest.approx(weights[5].tolist(), rel=1e-4)
    assert "encoder: learned: 16 dimensions" in invoke(app, "--run", str(run), "--length", "70").output
    for option in ("--kind", "--width"):
        with pytest.raises(BadInput, match=f"{option} goes without --run"):
            invoke(app, "--run", str(run), option, "16")


def test_a_reader_of_words_shows_the_places_of_characters(app: typer.Typer, tmp_path: Path, words_run: Path) -> None:
    out = tmp_path / "positions.json"
    invoke(app, "--run", str(words_run), "--out", str(out))
    (found,) = json.loads(out.read_text(encoding="utf-8"))["positions"]
    assert (found["name"], found["trained"], found["length"]) == ("decoder: learned", 4, 8)  # three digits and <eos>
    learned = api.load(words_run, "cpu").model.positions
    assert found["table"][2] == pytest.approx(learned[2].tolist(), rel=1e-4)
    assert found["table"][4] == [None] * learned.size(1)


def test_what_cannot_be_is_refused(app: typer.Typer) -> None:
    with pytest.raises(BadInput, match=r'--kind: no positions "learnt".* "learned"'):
        invoke(app, "--kind", "learnt")
    with pytest.raises(BadInput, match=r"^--kind relative: .* only in a trained model: name one with --run$"):
        invoke(app, "--kind", "relative")
    with pytest.raises(BadInput, match="--length 1: from 2"):
        invoke(app, "--length", "1")
    with pytest.raises(BadInput, match="it is recurrent"):
        invoke(app, "--run", str(api.packaged_run()))
    with pytest.raises(BadInput, match=r"none of \.png"):
        invoke(app, "--out", "positions.gif")
    with pytest.raises(BadInput, match="no run folder"):
        invoke(app, "--run", "nowhere")
