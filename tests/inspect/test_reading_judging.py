"""A test set of words against a reader: each counts once, what cannot be judged is named, what is kept is the same."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from misread_words import misread
from PIL import Image
from striped_words import a_reader, a_word, striped, write_striped

from jumok.data.images.raw import RawImage
from jumok.data.images.sources import open_images
from jumok.data.text_images.sources import open_text_images
from jumok.errors import BadInput
from jumok.inspect.reading_judging import Misreadings, judge_reading
from jumok.tasks import text_reader
from jumok.tasks.known_words import KnownWords
from jumok.tasks.reading_kinds import script_of
from jumok.tasks.reading_scores import reading_scores
from jumok.tasks.text_reader import Way


def write_words(folder: Path, written: list[str], labels: list[str]) -> Path:
    files = write_striped(folder, written, (20, 100))
    lines = "".join(f"{file.name}\t{label}\n" for file, label in zip(files, labels, strict=True))
    (folder / "labels.txt").write_text(lines, encoding="utf-8")
    return folder


def test_the_scores_are_those_of_the_words_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_reader, "ROWS", 8)
    written = [a_word() for _ in range(30)]
    labels = [word if random.random() < 0.6 else a_word() for word in written]
    folder = write_words(tmp_path / "words", written, labels)
    reader = a_reader()
    found = judge_reading(reader, open_text_images([folder]), page=100)
    files = sorted(folder.glob("*.png"))
    assert [Path(name) for name in found.names] == files
    assert list(found.truth) == labels
    assert list(found.read) == written
    alone = reader.read(files)
    assert list(found.confidences) == [one.confidence for one in alone]
    assert found.scores == reading_scores(labels, written, [one.confidence for one in alone])
    assert found.notes() == ()
    wrong = [place for place, (one, other) in enumerate(zip(labels, written, strict=True)) if one != other]
    kept = found.mistakes.kept()
    assert sorted(one.number - 1 for one in kept) == wrong
    for one in kept:
        place = one.number - 1
        assert (one.name, one.truth, one.read) == (str(files[place]), labels[place], written[place])
        assert one.confidence == alone[place].confidence
        np.testing.assert_array_equal(one.pixels, np.asarray(Image.open(files[place])))
    without = judge_reading(reader, open_text_images([folder]))
    assert without.scores == found.scores
    assert without.mistakes.kept() == []


def test_what_cannot_be_opened_is_left_out_by_name(tmp_path: Path) -> None:
    words = [a_word() for _ in range(9)]
    folder = write_words(tmp_path, words, words)
    for number in range(7):
        (folder / f"{number:03}.png").write_bytes(b"nothing")
    found = judge_reading(a_reader(), open_text_images([folder]))
    assert (found.scores.count, found.scores.accuracy.score, len(found.broken)) == (2, 1.0, 7)
    assert found.notes()[0].startswith("7 pictures cannot be read and are left out: ")
    assert "000.png" in found.notes()[0]
    assert found.notes()[0].endswith("; and 2 more")
    for number in range(7, 9):
        (folder / f"{number:03}.png").write_bytes(b"")
    with pytest.raises(BadInput, match=r"no pictures to judge, and the first of 9 that cannot be read is: .*000\.png"):
        judge_reading(a_reader(), open_text_images([folder]))


def test_texts_must_be_told(tmp_path: Path) -> None:
    write_striped(tmp_path, ["0", "1"])
    with pytest.raises(BadInput, match=r"000\.png: it is not said what is written there.* labels file"):
        judge_reading(a_reader(), open_text_images([tmp_path]))
    with pytest.raises(BadInput, match="not said what is written"):
        judge_reading(a_reader(), open_images([tmp_path]))


def test_what_the_model_cannot_write_is_told(tmp_path: Path) -> None:
    folder = write_words(tmp_path, ["0", "1", "a", "b"], ["0", "Ω1", "ΩΨ", "0123456789"])
    found = judge_reading(a_reader(), open_text_images([folder]))
    assert found.scores.right == 1
    assert found.notes() == (
        "2 words have characters that this run has not learned (Ω Ψ), and cannot be right",
        "1 word is longer than the 8 characters that this run can write",
    )


def test_notes_of_the_data_are_passed_on(tmp_path: Path) -> None:
    folder = write_words(tmp_path, ["0", "1"], ["0", "1"])
    Image.fromarray(striped("a")).save(folder / "unnamed.png")
    notes = judge_reading(a_reader(), open_text_images([folder])).notes()
    assert len(notes) == 1
    assert "unnamed.png" in notes[0]


def test_texts_are_compared_composed(tmp_path: Path) -> None:
    class Source:
        key = "x"

        def __iter__(self) -> object:
            yield RawImage("a", unicodedata.normalize("NFD", "가"), striped("가"))
            yield RawImage("b", "", np.zeros((9, 30, 3), np.uint8))

    found = judge_reading(a_reader(), Source(), 9)  # type: ignore[arg-type]
    assert found.scores.accuracy.score == 1.0
    assert found.truth == ("가", "")


def test_the_way_of_reading_is_passed_on(tmp_path: Path) -> None:
    folder = write_words(tmp_path, ["0"], ["0"])
    reader = a_reader()
    judge_reading(reader, open_text_images([folder]), way=Way(fast=True))
    assert reader.model.asked == [{"rows": 1, "fast": True, "sure": 1.0}]


def test_words_that_are_known_are_judged_as_they_are_read_then(tmp_path: Path) -> None:
    Image.fromarray(striped("aXb", sure=[0.9, 0.6, 0.9])).save(tmp_path / "0.png")
    (tmp_path / "labels.txt").write_text("0.png\taab\n")
    source = open_text_images([tmp_path])
    assert judge_reading(a_reader(), source).read == ("aXb",)
    found = judge_reading(a_reader(), source, way=Way(words=KnownWords(["aab"])))
    assert found.read == found.truth == ("aab",)


def test_what_is_kept_does_not_depend_on_what_is_held() -> None:
    _, mistakes = misread(600)
    most = 25
    holder = Misreadings(most)
    for one in mistakes:
        holder.add(one)
    held_all = Misreadings(most)
    held_all._held = mistakes
    assert holder.kept() == held_all.kept()
    kept = holder.kept()
    assert len(kept) == most
    assert [one.confidence for one in kept] == sorted((one.confidence for one in kept), reverse=True)
    kinds = {(script_of(one.truth), one.kind) for one in mistakes}
    shown = {(script_of(one.truth), one.kind) for one in kept}
    assert len(shown) == min(most, len(kinds)), "of every kind there is one, while there is room"
    for script, kind in shown:
        best = max(one.confidence for one in mistakes if (script_of(one.truth), one.kind) == (script, kind))
        assert best in [one.confidence for one in kept]
