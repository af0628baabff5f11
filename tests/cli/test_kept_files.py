"""Files that are there stay as they are when a command says no, whatever it says no to."""

from __future__ import annotations

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
