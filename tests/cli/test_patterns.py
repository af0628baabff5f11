"""`jumok patterns`: measured on a small run, drawn, and refused where there is nothing to see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jumok import api
from jumok.cli.main import run

SMALL = ["model.width=16", "model.heads=2", "model.layers=1", "model.feed_forward=16", "training.updates=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("patterns")
    keys = [*SMALL, "data.train.pairs=200", "data.valid.pairs=20", "tokenizer.vocabulary=300"]
    api.train("bert-tiny", place / "run", keys, quiet=True, report=False)
    (place / "texts.txt").write_text("the dog sees the cat.\n\na cat eats.\n", encoding="utf-8")
    return place


def test_patterns_are_told_and_drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "heads.png"
    assert run(["patterns", str(folder / "texts.txt"), "--run", str(folder / "run"), "--out", str(out)]) == 0
    assert "previous" in capsys.readouterr().out
    assert out.read_bytes().startswith(b"\x89PNG")
    assert run(["patterns", str(folder / "texts.txt"), "--run", str(folder / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["heads"]) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["EMPTY", "--run", "RUN"], "no texts"),
        (["TEXTS", "--run", "RUN", "--out", "heads.txt"], ".png"),
        (["TEXTS", "--run", "RUN", "--out", "missing/heads.png"], "folder that exists"),
        (["TEXTS", "--run", "nowhere"], "no run folder"),
    ],
)
def test_what_cannot_be_measured(
    folder: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty.txt").write_text("\n \n", encoding="utf-8")
    places = {"EMPTY": folder / "empty.txt", "TEXTS": folder / "texts.txt", "RUN": folder / "run"}
    assert run(["patterns", *(str(places.get(word, word)) for word in arguments)]) == 2
    assert words in capsys.readouterr().err
