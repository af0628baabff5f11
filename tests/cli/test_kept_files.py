"""Files that are there stay as they are when a command says no, whatever it says no to."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from jumok.cli.main import run

SOURCE, TARGET = "I am a student.\nThe dog sees a house.\n", "Je suis étudiant.\nLe chien voit une maison.\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"a": SOURCE, "b": TARGET, "align": "0-0\n0-0\n", "prefix": "Je\nLe\n", "old": "kept\n"}.items():
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


def unchanged(folder: Path, line: str) -> None:
    """The command is refused and leaves the folder as it is."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert run(line.split()) == 2, line
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, line


@pytest.mark.parametrize(
    "line",
    [
        "score --source a --target b --output b",
        "score --source a --target b --output a",
        "translate --input a --prefix-file prefix --output prefix",
        "translate --input a --require-file prefix --output ./prefix",
        "evaluate --source a --reference b --output b",
        "evaluate --source a --reference b --output a",
        "evaluate --source a --reference b --alignments align --output align",
    ],
)
def test_no_input_is_written_over(files: Path, line: str, capfd: pytest.CaptureFixture[str]) -> None:
    unchanged(files, line)
    assert "the very file" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("translate --input a --output old --temperature 0.5", "are for sampling"),
        ("translate --input a --output old --prefix 日本", "outside the vocabulary"),
        ("translate --input a --output old --require 日本", "outside the vocabulary"),
        ("translate --input a --output old --length-penalty -1", "from 0 to 10"),
        ("translate --input a --output old --prefix Je --max-length 1", "does not fit"),
        ("translate --input a --output old --tag 2xx", "2xx"),
        ("translate --input cut.gz --output old", "cut.gz"),
        ("translate --input latin --output old", "latin"),
        ("translate --input long --output old", "sentence 1 has"),
        ("translate --input long --output new", "sentence 1 has"),
        ("translate --input a --require-file strange --output old", "sentence 1: "),
        ("translate I --output old --top-k 5", "are for sampling"),
        ("score --source a --target none --output old", "none"),
        ("score --source a --target short --output old", "short"),
        ("evaluate --source a --reference short --output old", "short"),
    ],
)
def test_what_is_wrong_is_said_before_an_output_is_emptied(
    files: Path, line: str, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("cut.gz").write_bytes(gzip.compress(SOURCE.encode() * 1000)[:-20])
    Path("latin").write_bytes("Où\n".encode("latin-1"))
    Path("short").write_text("Je\n")
    Path("long").write_text("dog " * 1000 + f"\n{SOURCE}")
    Path("strange").write_text("日本\n\n", encoding="utf-8")
    unchanged(files, line)
    assert words in capfd.readouterr().err
