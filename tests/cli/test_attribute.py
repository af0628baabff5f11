"""`jumok attribute`: rankings, their agreement, and pictures of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from commands import invoke

from jumok.cli.attribute import _ranked, attribute
from jumok.errors import BadInput
from jumok.inspect.attribution import Attribution

SENTENCE = "The big dog does not see the cat."


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(attribute)
    return app


def test_the_packaged_model_depends_on_the_words_it_translates(app: typer.Typer, tmp_path: Path) -> None:
    """A trained model: without "not" there is no "pas", and "cat." makes "chat."; all ways of asking agree on that."""
    file = tmp_path / "x.json"
    said = invoke(app, SENTENCE, "--device", "cpu", "--out", str(file)).output
    assert "Kendall" in said
    found = json.loads(file.read_text(encoding="utf-8"))
    source, target = found["source"], found["target"]
    assert target[:-1] == ["Le", "grand", "chien", "ne", "voit", "pas", "le", "chat."]
    for method in ("attention", "integrated gradients", "occlusion"):
        values = found["values"][method]
        for word, cause in (("pas", "not"), ("chat.", "cat."), ("chien", "dog"), ("voit", "see")):
            row = [abs(value) for value in values[target.index(word)]]
            assert source[row.index(max(row))] == cause
    assert found["gap"] < 0.05
    assert all(-1 <= one["kendall"] <= 1 for one in found["agreement"])


def test_what_cannot_be_is_refused(app: typer.Typer, tmp_path: Path) -> None:
    for words, *options in (
        ("empty", " "),
        ("nothing to put", SENTENCE, "--absent", "gone"),
        ("too few", SENTENCE, "--steps", "0"),
        ("none of .png", SENTENCE, "--out", str(tmp_path / "x.gif")),
        ("has no heads", SENTENCE, "--head", "0"),
    ):
        with pytest.raises(BadInput, match=words):
            invoke(app, *options, "--device", "cpu")


def test_where_no_word_matters_more_there_is_no_ranking() -> None:
    values = {"occlusion": np.array([[0.0, 0.0, 0.0], [0.2, -0.2, 0.2], [0.1, -0.5, 0.2]])}
    found = Attribution(("a", "b", "c"), ("x", "y", "z"), (0.0, 0.0, 0.0), values, "unknown", 0.0)
    assert [_ranked(found, "occlusion", row) for row in range(3)] == ["–", "–", "b, c, a"]
