"""Translations as lines: in order, each sentence its own, wherever the work begins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from translators import sentences, translator

from jumok.streaming.lines import Columns, Written, stream
from jumok.streaming.sources import Chunk, Source
from jumok.tasks.translator import TooLong, Translation
from jumok.tasks.wishes import BadSentence, Sentence, Wishes


def chunks(texts: list[str], size: int) -> list[Chunk]:
    parts = [texts[start : start + size] for start in range(0, len(texts), size)]
    return [Chunk(place * size, [Sentence(text) for text in part], 10) for place, part in enumerate(parts)]


def gather(lines: Iterable[Written], into: list[str]) -> None:
    for written in lines:
        into.append(written.lines[0])


def test_lines_do_not_depend_on_where_the_work_begins() -> None:
    model: Any = translator(precise=True)
    texts = [*sentences(7), "", *sentences(4, "valid")]
    whole = list(stream(model, chunks(texts, 5), Wishes(), Columns(scores=True)))
    assert [written.lines[0].split("\t")[0] for written in whole] == model.translate(texts)
    assert [written.sentences for written in whole] == list(range(1, 13))
    assert [written.size for written in whole if written.size] == [10, 20, 30]
    for done in (0, 3, 5, 9, 12):
        told: list[tuple[int, int]] = []

        def skipped(sentences: int, size: int, told: list[tuple[int, int]] = told) -> None:
            told.append((sentences, size))

        rest = list(stream(model, chunks(texts, 5), Wishes(), Columns(scores=True), done, skipped))
        assert [written.lines for written in rest] == [written.lines for written in whole[done:]]
        assert told == ([] if done == 12 else [(done, done // 5 * 10)])


def test_nbest_lists_are_numbered_through_all_chunks() -> None:
    model: Any = translator(wordy=True)
    found = list(stream(model, chunks(sentences(4), 3), Wishes(nbest=2), Columns(scores=True, alignments=True)))
    rows = [line.split("\t") for written in found for line in written.lines]
    assert [row[0] for row in rows] == ["1", "1", "2", "2", "3", "3", "4", "4"]
    assert all(float(better[2]) >= float(worse[2]) for better, worse in zip(rows[::2], rows[1::2], strict=True))
    for row in rows:
        assert {int(link.split("-")[1]) for link in row[3].split()} == set(range(len(row[1].split())))


def test_a_head_can_be_chosen_for_alignments() -> None:
    model: Any = translator(kind="word", wordy=True)  # so many words that two heads cannot agree on all
    texts = chunks(sentences(5), 5)
    views = [Columns(alignments=True, layer=layer, head=head) for layer, head in ((0, 0), (1, 3), (1, None))]
    found = [[written.lines for written in stream(model, texts, Wishes(), view)] for view in views]
    assert found[0] != found[1]
    with pytest.raises(Exception, match="head 9"):
        list(stream(model, texts, Wishes(), Columns(alignments=True, head=9)))


@pytest.mark.parametrize("bad", [0, 3, 6])
def test_what_came_before_a_bad_sentence_is_not_lost(bad: int) -> None:
    model: Any = translator(precise=True)
    texts = sentences(8)
    good = model.translate([*texts[:bad], ""])[:bad]
    texts[bad] = "the student " * 300
    texts[7] = "the student " * 300
    written: list[str] = []
    with pytest.raises(TooLong, match=f"sentence {bad + 1} has"):
        gather(stream(model, chunks(texts, 4), Wishes(), Columns()), written)
    assert written == good
    asked = [Sentence(texts[1]), Sentence(texts[2], prefix="le chat " * 40)]
    with pytest.raises(BadSentence, match="sentence 2: its prefix"):
        list(stream(model, [Chunk(0, asked, 1)], Wishes(), Columns()))


def test_a_translation_is_one_line_whatever_the_model_writes() -> None:
    class Writer:
        def found(self, sentences: list[Sentence], wishes: Wishes) -> list[list[Translation]]:
            return [[Translation("a\nb\r\tc", -1.0, -1.0, (7,))] for _ in sentences]

    model: Any = Writer()
    parts = list(Source(["x"]).chunks(1))
    assert next(iter(stream(model, parts, Wishes(), Columns()))).lines == ["a b \tc"]
    assert next(iter(stream(model, parts, Wishes(), Columns(scores=True)))).lines == ["a b  c\t-1.0000"]
