from __future__ import annotations

import io
import itertools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from jumok.inspect.attention import Attention
from jumok.inspect.terminal import draw, show

Make = Callable[..., Attention]


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def column_at(line: str, cell: int) -> str:
    """The character that stands at this cell of a line."""
    used = 0
    for character in line:
        if used <= cell < used + cell_len(character):
            return character
        used += cell_len(character)
    return " "


def test_a_name_is_told_where_there_is_one(make_attention: Make) -> None:
    picture = make_attention()
    named = replace(picture, name="decoder.1.cross, head 3")
    assert draw(named) == draw(picture).replace("query ↓", "decoder.1.cross, head 3\nquery ↓")


def test_the_strongest_cell_is_under_its_word_whatever_the_script() -> None:
    source, target = ("the", "학생", "read", "漢字"), ("학생은", "lut", "책을")
    weights = np.full((3, 4), 0.01)
    strongest = [1, 2, 3]
    for row, column in enumerate(strongest):
        weights[row, column] = 0.97
    lines = draw(Attention(source, target, weights)).split("\n")
    for row, column in enumerate(strongest):
        line = lines[1 + row]
        assert line.lstrip().startswith(target[row])
        start = cell_len(lines[0][: lines[0].index(source[column])])
        assert column_at(line, start) == "█"
        assert line.count("█") == max(cell_len(source[column]), 3)


@given(
    st.lists(st.text(max_size=20), min_size=1, max_size=12),
    st.lists(st.text(max_size=20), min_size=1, max_size=4),
    st.integers(40, 120),
    st.booleans(),
    st.sampled_from(["utf-8", "ascii", "cp949"]),
)
def test_never_wider_than_the_terminal_and_never_a_raw_control(
    source: list[str], target: list[str], width: int, colour: bool, encoding: str
) -> None:
    weights = np.random.default_rng(len(source)).dirichlet(np.ones(len(source)), len(target))
    picture = draw(Attention(tuple(source), tuple(target), weights), width=width, colour=colour, encoding=encoding)
    picture.encode(encoding)
    shown = plain(picture)
    assert "\x1b" not in shown
    assert all(c.isprintable() or c == "\n" or unicodedata.category(c) == "Zs" for c in shown)
    assert max(map(cell_len, shown.split("\n"))) <= width


def test_long_sentences_are_folded_and_every_word_is_there(make_attention: Make) -> None:
    picture = draw(make_attention(30, 3), width=60)
    assert [int(word) for word in re.findall(r"key(\d+)", picture)] == list(range(30))
    marks = re.findall(r"… source words (\d+)-(\d+) of 30", picture)
    assert marks[0][0] == "1"
    assert marks[-1][1] == "30"
    assert all(int(end) + 1 == int(start) for (_, end), (start, _) in itertools.pairwise(marks))
    assert "source words" not in draw(make_attention(3, 3), width=60)


def test_too_many_rows_are_counted(make_attention: Make) -> None:
    assert "… 20 more rows" in draw(make_attention(2, 100))


def test_long_words_end_in_a_mark(make_attention: Make) -> None:
    picture = draw(make_attention(["가" * 30, "b"], ["a" * 30]))
    assert "가가가가가가… " in picture
    assert "aaaaaaaaaaaaa… " in picture


def test_colours_carry_the_number() -> None:
    attention = Attention(("aa", "bb", "cc"), ("x",), np.array([[0.93, 0.07, 0.0]]))
    row = draw(attention, colour=True).split("\n")[1]
    cells = re.findall(r"\x1b\[48;5;(\d+);38;5;\d+m(.*?)\x1b\[0m", row)
    assert [text.strip() for _, text in cells] == ["93", "7", ""]
    assert len({code for code, _ in cells}) == 2


def test_plain_ascii_where_there_is_nothing_else() -> None:
    attention = Attention(("a", "é"), ("학",), np.array([[0.9, 0.1]]))
    picture = draw(attention, encoding="ascii")
    assert "###" in picture
    assert "..." in picture
    assert "\\ud559" in picture


def test_no_number_and_no_words(make_attention: Make) -> None:
    assert " ? " in draw(Attention(("a", "b"), ("x",), np.array([[np.nan, 0.5]])))
    assert "empty" in draw(make_attention(0, 1))


@pytest.mark.parametrize("colour", [True, False])
def test_show_asks_the_terminal(make_attention: Make, monkeypatch: pytest.MonkeyPatch, colour: bool) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    file = io.StringIO()
    console = Console(file=file, width=50, force_terminal=colour, color_system="256" if colour else None)
    show(make_attention(12, 2), console)
    assert ("\x1b[48;5;" in file.getvalue()) == colour
    assert max(cell_len(plain(line)) for line in file.getvalue().split("\n")) <= 50
    if colour:
        monkeypatch.setenv("NO_COLOR", "1")
        file.truncate(0)
        show(make_attention(3, 2), console)
        assert "\x1b[48" not in file.getvalue()
