"""What is wrong with the data is told with its lines and with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok import recipe as recipes
from jumok.recipe import Recipe
from jumok.training.doctor.corpora import TODO, check_corpora
from jumok.training.doctor.findings import Finding, Report

NAMES = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
SOURCES = [f"the {name} dogs sleep in the house" for name in NAMES]
TARGETS = [f"les {name} chiens dorment dans la maison" for name in NAMES]


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def corpus(folder: Path, sources: list[str], targets: list[str], *keys: str) -> Recipe:
    files = write(folder / "a.en", sources), write(folder / "a.fr", targets)
    return recipes.read("lstm-luong", [f"data.train.source={files[0]}", f"data.train.target={files[1]}", *keys])


def examined(recipe: Recipe) -> Report:
    report = Report()
    check_corpora(recipe, report, lambda message: None)
    return report


def only(report: Report, words: str) -> Finding:
    (found,) = [finding for finding in report.findings if words in finding.what]
    return found


def test_clean_data_has_no_findings(tmp_path: Path) -> None:
    assert examined(corpus(tmp_path, SOURCES, TARGETS)).findings == []
    assert examined(recipes.read("lstm-luong", ["data.train.pairs=50", "data.valid.pairs=20"])).findings == []


@pytest.mark.parametrize(
    ("line", "source", "target", "words", "level"),
    [
        (3, "", TARGETS[2], "blank", "note"),
        (2, "the same", "the same", "both sides are the same", "warning"),
        (5, "caf\ufffd", "café", "replacement character", "warning"),
        (4, "Ã©tÃ©", "été", "wrong encoding", "warning"),
        (1, "x\x07y", "a b", "control", "warning"),
        (6, "a", "b " * 300, "far longer", "warning"),
        (7, "안녕하세요 세계", "bonjour le monde", "script", "warning"),
    ],
)
def test_lines_to_look_at(tmp_path: Path, line: int, source: str, target: str, words: str, level: str) -> None:
    sources, targets = [*SOURCES], [*TARGETS]
    sources[line - 1], targets[line - 1] = source, target
    found = only(examined(corpus(tmp_path, sources, targets)), words)
    assert found.level == level
    assert found.where == f"{tmp_path / 'a.en'}, {tmp_path / 'a.fr'}, line {line}"
    assert found.todo in {todo for _, todo in TODO.values()}


def test_validation_that_was_learned_from(tmp_path: Path) -> None:
    valid = write(tmp_path / "v.en", SOURCES[2:4]), write(tmp_path / "v.fr", TARGETS[2:4])
    keys = f"data.valid.source={valid[0]}", f"data.valid.target={valid[1]}"
    found = only(examined(corpus(tmp_path, SOURCES, TARGETS, *keys)), "in the training data too")
    assert found.what.startswith("2 pairs of the validation data are")
    assert found.level == "warning"
    assert found.where == f"{tmp_path / 'a.en'}, {tmp_path / 'a.fr'}"


def test_the_longest_lines_are_remembered(tmp_path: Path) -> None:
    sources = [*SOURCES, "word " * 50, "word " * 80]
    recipe = corpus(tmp_path, sources, [*TARGETS, "mot " * 90, "mot"])
    longest = check_corpora(recipe, Report(), lambda message: None)
    assert [line for line, _, _ in longest[0]][:2] == [10, 9]


def test_only_the_first_lines_of_a_large_corpus_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.training.doctor.corpora.MOST_LINES", 4)
    found = only(examined(corpus(tmp_path, [*SOURCES[:5], ""], [*TARGETS[:5], "x"])), "only the first 4 pairs")
    assert f"jumok data check {tmp_path / 'a.en'} {tmp_path / 'a.fr'}" in found.todo


def test_plain_text(tmp_path: Path) -> None:
    text = write(tmp_path / "a.txt", [*SOURCES, "", "caf\ufffd", *["again"] * 8])
    report = examined(recipes.read("lstm-lm", [f"data.train.text={text}"]))
    assert only(report, "U+FFFD").where == f"{text}, line 10"
    assert only(report, "came before").level == "warning"
    assert len(report.findings) == 2
