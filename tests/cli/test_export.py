"""`jumok export` and `jumok translate --engine`: the same words whoever writes them, and what cannot be is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from journey import jumok, refused

SMALL = ["training.updates=30", "training.warmup=10", "training.validate_every=30", "training.checkpoint_every=30"]
SENTENCES = "The young cat sleeps.\n\nA dog devoured his treat, because he was hungry.\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "run"
    sizes = ["model.width=32", "model.heads=2", "model.feed_forward=64", "data.train.pairs=2000"]
    result = jumok("train", "demo-transformer", "--run", path, *SMALL, *sizes, "threads=1")
    assert result.returncode == 0, result.stderr
    return path


def test_every_engine_writes_the_same(run: Path) -> None:
    plain = jumok("translate", "--run", run, input=SENTENCES)
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.count("\n") == 3
    for engine in ("ct2", "onnx", "fastest"):
        result = jumok("translate", "--run", run, "--engine", engine, input=SENTENCES)
        assert result.returncode == 0, result.stderr
        assert result.stdout == plain.stdout, engine
    assert "--engine fastest: " in result.stderr
    assert {path.name for path in (run / "engines").iterdir() if path.is_dir()} == {"ct2-float32", "onnx-float32"}


def test_what_an_engine_cannot_do(run: Path) -> None:
    refused(jumok("translate", "--run", run, "--engine", "tpu", input="x"), "tpu", "fastest")
    refused(jumok("translate", "--run", run, "--engine", "ct2", "--sample", input="x"), "--sample", "ct2")
    refused(jumok("translate", "--run", run, "--engine", "onnx", "--alignments", input="x"), "--alignments", "torch")
    prefixes = run.parent / "prefixes.txt"
    prefixes.write_text("le\n")
    refused(jumok("translate", "--run", run, "--engine", "ct2", "--prefix-file", prefixes, input="x"), "--prefix-file")
    refused(jumok("translate", "--run", run, "--engine", "ct2", "--sample", input=""), "--sample", "ct2")
    both = ["--run", run, "--run", run]
    refused(jumok("translate", *both, "--engine", "ct2", input="x"), "ct2", "2 together")


def test_what_is_refused_is_refused_before_files_are_made_for_it(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("engines"))
    for option in ("--sample", "--prefix=le", "--no-repeat-ngram=2"):
        refused(jumok("translate", "--run", copy, "--engine", "ct2", option, input="x"), "--engine ct2")
    refused(jumok("translate", "--run", copy, "--run", copy, "--engine", "ct2", input="x"), "2 together")
    assert not (copy / "engines").exists()


def test_the_fastest_does_what_fits_the_users_sentences(run: Path) -> None:
    """A beginning that is too long for the short sentences it is timed with."""
    text, prefix = "the young cat sleeps and " * 10, "le la les un une " * 8
    asked = ["translate", "--run", run, "--prefix", prefix]
    plain = jumok(*asked, input=text)
    result = jumok(*asked, "--engine", "fastest", input=text)
    assert result.returncode == plain.returncode == 0, result.stderr
    assert result.stdout == plain.stdout
    assert "--engine fastest: not ct2: --prefix" in result.stderr


def test_half_a_file_is_not_continued_by_another_engine(run: Path, tmp_path: Path) -> None:
    text, out = tmp_path / "in.txt", tmp_path / "out.txt"
    text.write_text(SENTENCES + "the " * 5000, encoding="utf-8")  # the last line is too long: it stops there
    begun = ["translate", "--run", run, "--input", text, "--output", out, "--batch", 1]
    refused(jumok(*begun, "--engine", "onnx"), "4 has 5000 tokens")
    again = [*begun, "--resume", "--too-long", "truncate"]
    refused(jumok(*again), "different now: engine.")
    refused(jumok(*again, "--engine", "onnx", "--precision", "int8"), "different now: precision.")
    assert jumok(*again, "--engine", "onnx").returncode == 0


@pytest.mark.parametrize("kind", ["ct2", "onnx"])
def test_an_export_is_checked_and_told(run: Path, tmp_path: Path, kind: str) -> None:
    probe = tmp_path / "probe.txt"
    probe.write_text(SENTENCES, encoding="utf-8")
    result = jumok("export", kind, "--run", run, "--out", tmp_path / "out", "--probe", probe)
    assert result.returncode == 0, result.stderr
    assert "2 of 2 translations" in result.stdout
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "2 of 2 translations" in card
    assert "pairs: 2000" in card  # it learned from the grammar, so many
    assert f"exported: {tmp_path / 'out'}" in result.stdout
    refused(jumok("export", kind, "--run", tmp_path, "--out", tmp_path / "new"), "run folder")
    assert not (tmp_path / "new").exists()


def test_what_marian_cannot_express(run: Path, tmp_path: Path) -> None:
    refused(jumok("export", "hf", "--run", run, "--out", tmp_path / "out"), "model.norm")
    assert not (tmp_path / "out").exists()


def test_a_probe_that_says_nothing(run: Path, tmp_path: Path) -> None:
    (tmp_path / "probe.txt").write_text("\n  \n")
    refused(
        jumok("export", "ct2", "--run", run, "--out", tmp_path / "out", "--probe", tmp_path / "probe.txt"), "--probe"
    )
    assert not (tmp_path / "out").exists()
