"""Alignments of many pairs: in order, whatever the chunks; of one direction or two; long and empty lines, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from seeded import seed as seed
from translators import sentences, translator

from jumok.data import grammar
from jumok.errors import BadInput
from jumok.inspect import aligner as module
from jumok.inspect.aligner import Aligner, Scoring, shortened, whole_lines
from jumok.inspect.alignment import READINGS, alignment_error_rate
from jumok.inspect.forced import links_of_views, word_links
from jumok.inspect.symmetric import METHODS, symmetrize, turned
from jumok.inspect.view import View
from jumok.tasks.translator import Translator

PAIRS = list(grammar.pairs("en", "fr", "test", 40))
SOURCES, TARGETS = [pair.source for pair in PAIRS], [pair.target for pair in PAIRS]


def reverse_of(model: Translator) -> Translator:
    """Any model that reads French and writes English."""
    other = translator("transformer", precise=True)
    return Translator(other.model, model.target, model.source, other.search, other.max_length, other.device)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_chunks_and_order_do_not_matter(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = translator(kind, precise=True)
    expected = word_links(model, SOURCES, TARGETS)
    assert Aligner(model).align(SOURCES, TARGETS) == expected
    monkeypatch.setattr(module, "CHUNK", 7)
    assert list(Aligner(model).stream(zip(SOURCES, TARGETS, strict=True))) == expected


def test_streaming_reads_no_more_than_a_chunk_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 5)
    read: list[str] = []

    def pairs():  # type: ignore[no-untyped-def]
        for source, target in zip(SOURCES, TARGETS, strict=True):
            read.append(source)
            yield source, target

    stream = Aligner(translator("lstm")).stream(pairs())
    next(stream)
    assert len(read) == 5


@pytest.mark.parametrize("method", METHODS)
def test_two_directions_are_symmetrised(method: str) -> None:
    model = translator("transformer", precise=True)
    back = reverse_of(model)
    views = View(1, 2, shift=True), View(0)
    both = Aligner(model, views[0], back, views[1], method)
    forward = [links for (links,) in links_of_views(model, SOURCES, TARGETS, [views[0]])]
    backward = [turned(links) for (links,) in links_of_views(back, TARGETS, SOURCES, [views[1]])]
    assert both.align(SOURCES, TARGETS) == [
        symmetrize(one, other, method) for one, other in zip(forward, backward, strict=True)
    ]
    assert method in both.name


def test_the_best_view_of_each_model_is_found() -> None:
    """Gold links made from one head of either: each model is read there."""
    model = translator("transformer", precise=True)
    view = View(1, 3, shift=True)
    gold = [(links, links) for (links,) in links_of_views(model, SOURCES, TARGETS, [view])]
    assert Aligner.best(model, SOURCES, TARGETS, gold).forward.view == view
    back = reverse_of(model)
    other = View(0, 1, reading="both")
    backward = [turned(links) for (links,) in links_of_views(back, TARGETS, SOURCES, [other])]
    truth = [symmetrize(one, two, "union") for (one, _), two in zip(gold, backward, strict=True)]
    found = Aligner.best(model, SOURCES, TARGETS, [(links, links) for links in truth], back, "union")
    every = [(View(reading=one), View(reading=two)) for one in READINGS for two in READINGS]
    score = alignment_error_rate(found.align(SOURCES, TARGETS), truth, truth).error_rate
    for one, two in every:
        worse = Aligner(model, one, back, two, "union").align(SOURCES, TARGETS)
        assert score <= alignment_error_rate(worse, truth, truth).error_rate


def test_what_is_too_long_is_cut_at_whole_words() -> None:
    model = translator("transformer", precise=True)
    long_source, long_target = " ".join(["The cat sees the dog."] * 60), " ".join(["Le chat voit."] * 90)
    aligner = Aligner(model)
    short, cut, empty, *_ = aligner.align(
        ["The cat.", long_source, "", "The cat."], ["Le chat.", long_target, "Oui.", ""]
    )
    assert aligner.cut == 1
    assert short == word_links(model, ["The cat."], ["Le chat."])[0]
    assert empty == set()
    words = max(source for source, _ in cut), max(target for _, target in cut)
    assert words[0] < len(shortened(long_source, model.source, 200).split()) < len(long_source.split())
    assert words[1] == len(shortened(long_target, model.target, 200).split()) - 1
    assert len(model.target.encode([shortened(long_target, model.target, 200)])[0]) <= 200
    assert shortened("a b", model.source, 200) == "a b"


def test_counting_on_the_way_is_counting_at_the_end() -> None:
    gold = [(set(pair.sure), set(pair.possible)) for pair in PAIRS]
    links = Aligner(translator("lstm")).align(SOURCES, TARGETS)
    scoring = Scoring(gold)
    assert list(scoring.passed(links)) == links
    assert scoring.total == alignment_error_rate(links, *zip(*gold, strict=True))


def test_a_file_is_there_when_all_its_lines_are(tmp_path: Path) -> None:
    file = tmp_path / "links.txt"
    file.write_text("before\n", encoding="utf-8")

    def broken() -> None:
        with whole_lines(file) as write:
            write("0-0")
            raise BadInput("the files do not pair up")

    with pytest.raises(BadInput, match="pair up"):
        broken()
    assert file.read_text(encoding="utf-8") == "before\n"
    with whole_lines(file) as write:
        write("0-0 1-2")
        write("")
    assert file.read_bytes() == b"0-0 1-2\n\n"
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(BadInput, match="no folder"), whole_lines(tmp_path / "no" / "x"):
        pass


def test_wrong_calls_are_answered() -> None:
    model = translator("transformer")
    with pytest.raises(BadInput, match="layers 0 to 1"):
        Aligner(model, View(7))
    with pytest.raises(BadInput, match="balanced"):
        Aligner(model, View(reading="balance"))
    with pytest.raises(BadInput, match="takes lists"):
        Aligner(model).align("The cat.", "Le chat.")
    with pytest.raises(BadInput, match="pair up"):
        Aligner(model).align(sentences(2), ["Oui."])
