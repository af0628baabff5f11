"""Scores of a corpus: in order, added up, and what cannot be scored is named or passed over."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from translators import sentences, translator

from jumok.errors import BadInput
from jumok.streaming import scores as module
from jumok.streaming.scores import Scores, corpus_of, line_of


def files(folder: Path, sources: list[str], targets: list[str]) -> Any:
    (folder / "a").write_text("".join(f"{line}\n" for line in sources))
    (folder / "b").write_text("".join(f"{line}\n" for line in targets))
    return corpus_of(folder / "a", folder / "b", None)


def test_scores_come_in_order_and_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 4)
    model: Any = translator()
    sources, targets = sentences(10), sentences(10, "valid")
    scores = Scores(model, files(tmp_path, sources, targets))
    found = [one for one in scores if one is not None]
    expected = model.score(sources, targets)
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    total, count = sum(one.log_probability for one in expected), sum(len(one.tokens) for one in expected)
    assert scores.perplexity == pytest.approx(math.exp(-total / count), rel=1e-4)
    assert f"10 pairs, {count} tokens" in scores.summary()
    cells = line_of(found[0], words=True).split("\t")
    assert float(cells[0]) == pytest.approx(expected[0].log_probability, abs=1e-3)
    assert float(cells[1]) == pytest.approx(float(cells[0]) / int(cells[2]), abs=1e-3)
    words = [float(cell.rpartition(":")[2]) for cell in cells[3].split()]
    assert sum(words) == pytest.approx(float(cells[0]), abs=1e-2)


@pytest.mark.parametrize(
    ("side", "text", "message"),
    [
        (0, "", "line 3: the source is empty"),
        (1, "   ", "line 3: the target is empty"),
        (0, "a student " * 150, "line 3: the source has .* limit is 200"),
        (1, "a student " * 150, "line 3: the target has .* limit is 200"),
    ],
)
def test_what_cannot_be_scored_is_named_or_passed_over(tmp_path: Path, side: int, text: str, message: str) -> None:
    model: Any = translator()
    sides = [sentences(5), sentences(5, "valid")]
    sides[side][2] = text
    corpus = files(tmp_path, *sides)
    scores = iter(Scores(model, corpus))
    assert all((next(scores), next(scores))), "what came before it is told"
    with pytest.raises(BadInput, match=message):
        next(scores)
    skipping = Scores(model, corpus, skip=True)
    lines = [line_of(one, words=False) for one in skipping]
    assert [bool(line) for line in lines] == [True, True, False, True, True]
    assert "4 pairs (1 passed over)" in skipping.summary()


def test_files_are_given_in_one_of_two_ways(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--source and --target"):
        corpus_of(tmp_path / "a", None, None)
    with pytest.raises(BadInput, match="--file"):
        corpus_of(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    assert corpus_of(None, None, tmp_path / "c.tsv").file
