"""Which sentences are shown, and what is kept of a score."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok.ladder.scoring import FORMAT, drawn_sentences, read_attention, read_score, tutorial_bleu
from jumok.tasks.metrics import corpus_scores
from jumok.training.run import RunFolder


def test_sentences_that_can_be_seen_whole_come_first_else_the_shortest() -> None:
    words = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"]
    sources = ["a b", " ".join(words), " ".join(words[:6]), "", " ".join(words[:12]), " ".join(words[:5])]
    assert drawn_sentences(sources) == [2, 4]
    assert drawn_sentences(sources, 9) == [2, 4, 5]
    assert drawn_sentences([" ".join(words), "", "a b c", "a"]) == [3, 2]
    assert drawn_sentences([""]) == []


def test_scores_that_are_not_whole_are_none(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert read_score(run) is None
    for content in ("{", "[]", '{"format": 99}'):
        (tmp_path / "test.json").write_text(content)
        assert read_score(run) is None
    (tmp_path / "test.json").write_text(f'{{"format": {FORMAT}, "sentences": 2}}')
    assert read_score(run) is None  # without its translations
    for lines, whole in (("one\ntwo\n", True), ("one\n", False), ("one\ntwo\nthree\n", False)):
        (tmp_path / "test.txt").write_text(lines)
        assert (read_score(run) is not None) == whole


def test_attention_comes_back_as_it_was(climbed: Path) -> None:
    found = read_score(RunFolder(climbed / "luong-1"))
    assert found is not None
    for picture in read_attention(found).values():
        assert picture.weights.sum(axis=1) == pytest.approx(1.0, abs=1e-4)
    without = read_score(RunFolder(climbed / "gru-1"))
    assert without is not None
    assert read_attention(without) == {}


def test_lower_cased_and_tokenised_as_everywhere_else_here() -> None:
    outputs = ["Ein Mann, der läuft.", "It's 3.5 METRES", "the Dog (a big one) sees."]
    references = ["ein mann , der läuft .", "it's 3.5 metres long", "The dog sees a big one."]
    expected = corpus_scores(outputs, references, lowercase_tokenised=True)[0].score
    assert tutorial_bleu(outputs, references) == pytest.approx(expected, abs=1e-9)
