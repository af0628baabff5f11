"""A file translated by several processes: every line, in order, the same as one process writes."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranks import together
from translating_together import translate

from jumok.data import grammar
from jumok.streaming.sources import Source
from jumok.streaming.together import Share, part_of

OPTIONS = ["--batch", "2", "--max-length", "12"]  # chunks of 32 sentences


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "text.en"
    file.write_text("".join(f"{pair.source}\n" for pair in grammar.pairs("en", "fr", "test", 150)), encoding="utf-8")
    return file


def arguments(source: Path, output: Path, *more: str) -> list[str]:
    return [*OPTIONS, "--input", str(source), "--output", str(output), *more]


@given(sentences=st.integers(0, 100), size=st.integers(1, 20), world=st.integers(1, 6))
def test_every_sentence_has_one_place(sentences: int, size: int, world: int) -> None:
    source = Source([str(number) for number in range(sentences)] or ["nothing"])
    source.chunks = lambda size: (  # type: ignore[method-assign,assignment]  # as of a file
        chunk for first in range(0, sentences, size) for chunk in [range(first, min(first + size, sentences))]
    )
    shares = [Share(rank, world, sentences, size) for rank in range(world)]
    taken = [list(chain.from_iterable(share.chunks(source))) for share in shares]  # type: ignore[arg-type]
    assert sorted(chain.from_iterable(taken)) == list(range(sentences))
    for share, own in zip(shares, taken, strict=True):
        assert share.own == len(own)
        for place, sentence in enumerate(own):
            assert share.place(place) == sentence


@pytest.mark.parametrize(
    ("world", "more"), [(2, []), (3, ["--beam", "2", "--nbest", "2", "--scores"]), (2, ["--sample", "--seed", "7"])]
)
def test_the_lines_are_those_of_one_process(tmp_path: Path, source: Path, world: int, more: list[str]) -> None:
    one, several = tmp_path / "one", tmp_path / "several"
    assert translate(arguments(source, one, *more))[0] == 0
    several.write_text("what was there before\n")
    assert [code for code, _ in together(world, translate, arguments(source, several, *more))] == [0] * world
    assert several.read_bytes() == one.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "several"]


@pytest.mark.parametrize("more", [["--beam", "1"], ["--beam", "2", "--nbest", "2"]])
def test_after_a_kill_it_goes_on_where_each_was(tmp_path: Path, source: Path, more: list[str]) -> None:
    one, several = tmp_path / "one", tmp_path / "several"
    assert translate(arguments(source, one, *more))[0] == 0
    results = together(2, translate, arguments(source, several, *more), (1, 41))
    assert results[1] == ("killed", 9)
    assert results[0][0] == 1
    assert "another process of this run has ended" in results[0][1]
    assert "What is written is safe" in results[0][1]
    assert not several.exists()
    written = part_of(several, 1, 2).read_bytes()
    assert written.endswith(b"half a li")
    for world, options, words in ((2, [], "go on with --resume"), (3, ["--resume"], "was begun by 2 processes")):
        results = together(world, translate, arguments(source, several, *more, *options))
        assert [code for code, _ in results] == [2] * world
        assert words in results[0][1]
        assert results[1][1] == ""
    assert part_of(several, 1, 2).read_bytes() == written, "nothing was touched"
    assert [code for code, _ in together(2, translate, arguments(source, several, *more, "--resume"))] == [0, 0]
    assert several.read_bytes() == one.read_bytes()
    results = together(2, translate, arguments(source, several, *more, "--resume"))
    assert [code for code, _ in results] == [0, 0]
    assert "nothing is left to do" in results[0][1]


def test_a_bad_sentence_is_told_by_who_has_it(tmp_path: Path, source: Path) -> None:
    lines = source.read_text(encoding="utf-8").splitlines()
    lines[40] = "the student " * 400  # in the second chunk: the second process has it
    text, several, one = tmp_path / "text", tmp_path / "several", tmp_path / "one"
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    first, second = together(2, translate, arguments(text, several))
    assert second[0] == 1
    assert "process 1: sentence 41 has" in second[1]
    assert "another process" in first[1]
    assert together(2, translate, arguments(text, several, "--resume", "--too-long", "skip"))[0][0] == 0
    assert translate(arguments(text, one, "--too-long", "skip"))[0] == 0
    assert several.read_bytes() == one.read_bytes()


@pytest.mark.parametrize("more", [["a sentence"], ["--input", "FILE"], ["--input", "FILE", "--output", "-"]])
def test_what_cannot_be_dealt_out_is_refused(source: Path, more: list[str]) -> None:
    results = together(2, translate, [word.replace("FILE", str(source)) for word in more])
    assert [code for code, _ in results] == [2, 2]
    assert "give --input and --output" in results[0][1]
    assert results[1][1] == ""


def test_an_empty_file_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "nothing").touch()
    assert together(2, translate, arguments(tmp_path / "nothing", tmp_path / "output"))[0][0] == 0
    assert (tmp_path / "output").read_bytes() == b""
