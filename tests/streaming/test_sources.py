"""Sentences from files, standard input and the command, with what is asked of each."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import BadInput
from jumok.streaming.sources import Source, Survey
from jumok.tasks.wishes import Sentence

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\ufeff\0"), max_size=8), max_size=30)


@given(lines=LINES, size=st.integers(1, 40), zipped=st.booleans())
def test_a_file_comes_in_full_chunks_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], size: int, zipped: bool
) -> None:
    path = tmp_path_factory.mktemp("source") / "text"
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if zipped else content)
    source = Source(path=path)
    chunks = list(source.chunks(size))
    assert [one.text for chunk in chunks for one in chunk.sentences] == lines
    assert all(len(chunk.sentences) == size for chunk in chunks[:-1])
    assert [chunk.first for chunk in chunks] == list(range(0, len(lines), size))
    survey = Survey.of(path)
    assert (survey.lines, survey.size) == (len(lines), len(content))
    assert sum(chunk.size for chunk in chunks) == len(content)
    if not zipped:
        assert source.size == len(content)


def test_wishes_of_each_line_go_with_its_sentence(tmp_path: Path) -> None:
    for name, text in {"text": "a\nb\nc\n", "prefixes": "Le\n\nLa\n", "phrases": "un chat\tdeux\n\n\ttrois\n"}.items():
        (tmp_path / name).write_text(text)
    (chunk,) = Source((), tmp_path / "text", tmp_path / "prefixes", tmp_path / "phrases").chunks(10)
    assert chunk.sentences == [
        Sentence("a", "Le", ("un chat", "deux")),
        Sentence("b", None, ()),
        Sentence("c", "La", ("trois",)),
    ]


def test_files_that_do_not_pair_up_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a\nb\n")
    (tmp_path / "phrases").write_text("x\n")
    with pytest.raises(BadInput, match=r"phrases has 1 lines and .*text has 2"):
        Source((), tmp_path / "text", None, tmp_path / "phrases")


def typed(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("lines", "message"), [("x\n", "there are more sentences"), ("x\ny\nz\n", "more lines than")])
def test_on_standard_input_it_is_noticed_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, message: str
) -> None:
    (tmp_path / "prefixes").write_text(lines)
    monkeypatch.setattr("sys.stdin", typed(b"a\nb\n"))
    with pytest.raises(BadInput, match=message):
        list(Source(prefixes=tmp_path / "prefixes").chunks(10))


def test_standard_input_is_also_called_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", typed("a\nü\n".encode()))
    source = Source(path=Path("-"))
    assert not source.is_file
    assert [one.text for chunk in source.chunks(10) for one in chunk.sentences] == ["a", "ü"]


def test_sentences_of_the_command_are_one_chunk_and_exclude_a_file(tmp_path: Path) -> None:
    (chunk,) = Source(["a", "b"]).chunks(1)
    assert [one.text for one in chunk.sentences] == ["a", "b"]
    with pytest.raises(BadInput, match="not both"):
        Source(["a"], tmp_path)
