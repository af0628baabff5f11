"""`jumok fonts`: a table of what can be written with what."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from built_fonts import build, random_shape

from jumok.cli.main import run
from jumok.data.rendering import font_files

MATPLOTLIB = Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chance = np.random.default_rng()
    build(tmp_path / "plain.ttf", {letter: random_shape(chance) for letter in "ABCé0123456789"}, "Some Sans")
    build(tmp_path / "bold.ttf", {letter: random_shape(chance) for letter in "ABC0123456789"}, "Some Sans", "Bold")
    build(tmp_path / "hangul.otf", {letter: random_shape(chance) for letter in "A한국어"}, "Hangul [red]", cubic=True)
    return tmp_path


def test_a_table_of_families(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fonts", str(folder)]) == 0
    said = capsys.readouterr()
    lines = {line.split("  ")[0]: line.split() for line in said.out.splitlines()}
    assert lines["Some Sans"][2:] == ["2", "all", "3", "of", "52", "–", "1", "of", "94", "–"]
    assert lines["Hangul [red]"][-3:] == ["3", "of", "11,172"]
    assert "2 families, 3 faces; 1 with Hangul" in said.out
    assert "plain.ttf" not in said.out
    assert run(["fonts", str(folder), "--paths"]) == 0
    shown = capsys.readouterr().out.replace("\n", "").replace(" ", "")
    assert all(name in shown for name in ("plain.ttf", "bold.ttf", "hangul.otf"))


def test_only_those_that_can_write_a_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fonts", str(folder), "--covers", "CAé", "--json"]) == 0
    (face,) = json.loads(capsys.readouterr().out)
    covers = {"digits": 10, "latin": 3, "punctuation": 0, "latin-1": 1, "hangul": 0}
    assert face == {
        "family": "Some Sans", "style": "Regular", "path": str(folder / "plain.ttf"), "number": 0, "characters": 14,
        "covers": covers,
    }  # fmt: skip
    assert run(["fonts", str(folder), "--covers", "한A"]) == 0  # typed as letters of a syllable, it is the syllable
    assert "1 family, 1 face; 1 with Hangul" in capsys.readouterr().out
    assert run(["fonts", str(folder), "--covers", "한B"]) == 2
    assert "no font has all of the characters" in capsys.readouterr().err
    assert run(["fonts", str(folder), "--covers", "학A"]) == 2
    told = capsys.readouterr().err
    assert '"학"' in told
    assert "fonts-nanum" in told


def test_nothing_to_write_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"no font, though it is called one")
    assert run(["fonts", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "broken.ttf" in told
    assert "there are no fonts to write with" in told
    monkeypatch.setattr(font_files, "font_files", lambda paths: [])
    monkeypatch.setattr("jumok.data.rendering.fonts.font_files", lambda paths: [])
    assert run(["fonts"]) == 2
    assert "apt install fonts-dejavu fonts-nanum" in capsys.readouterr().err
    assert run(["fonts", str(tmp_path / "missing")]) == 2
    assert "missing" in capsys.readouterr().err
