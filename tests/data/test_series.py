"""Series from CSV files: every dialect that is read, and every fault with its line."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.series import Series, read_series, sniff
from jumok.data.series_generated import tides
from jumok.errors import BadInput


@pytest.fixture
def write(tmp_path: Path):
    def make(text: str | bytes, name: str = "a.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a,b\n1,10\n2,20.5\n3,-3e1\n", "b"),
        ("a,b\r\n1,10\r\n2,20.5\r\n3,-3e1\r\n", "b"),
        ("\ufeffb,a\n10,1\n20.5,2\n-30,3\n", "b"),  # a byte order mark before the very name
        ("a;b\n1;10\n2;20,5\n3;-30\n", "b"),  # decimal commas
        ("a\tb\n1\t10\n2\t20,5\n3\t-30\n", 1),
        ('"a, or what","b"\n"x;y","10"\n"x","20.5"\n"x","-30"\n', "b"),
        ("1,10\n2,20.5\n3,-30\n", 1),  # no header
        ("1,10\n2,20.5\n3,-30\n", "1"),
        ("b\n10\n20.5\n-30", None),  # one column, no newline at the end
        ("10\n20,5\n-30\n", None),
        ("when,b\n2024-01-01,10\n2024-01-02,20.5\n2024-01-03,-30\n\n\n", None),  # the only one with numbers
        (" a , b \n1, 10 \n2, 20.5\n3,-30\n", "b"),
        ("a,2024\n1,10\n2,20.5\n3,-30\n", "2024"),  # a name that looks like a number
    ],
)
def test_dialects(write, text: str, column: str | int | None) -> None:
    assert read_series([write(text)], column).values.tolist() == [10.0, 20.5, -30.0]


def test_parts_follow_each_other_and_may_be_compressed(write) -> None:
    one = write("day,x\n2024-01-01,1\n2024-01-02,2\n")
    two = write(gzip.compress(b"day,x\n2024-01-03,3\n"), "b.csv.gz")
    series = read_series([one, two], "x")
    assert series.values.tolist() == [1, 2, 3]
    assert series.times == ("2024-01-01", "2024-01-02", "2024-01-03")
    assert series.name == "x"
    with pytest.raises(BadInput, match=r"a.csv, line 2: the time goes back \(2024-01-03, then 2024-01-01\)"):
        read_series([two, one], "x")


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", "x", ["empty"]),
        ("\n \n", "x", ["empty"]),
        ("x\n", "x", ["header and no value"]),
        ("x,y\n1,2\n,3\n", "x", ["line 3", '"x"', "missing"]),
        ("x,y\n1,2\nNA,3\n", "x", ["line 3", "missing", "NA"]),
        ("x\n1\n\n3\n", "x", ["line 3", "blank"]),
        ("x,y\n1,2\nabc,3\n", "x", ["line 3", '"abc" is not a number']),
        ("x,y\n1,2\n1e400,3\n", "x", ["line 3", "too large"]),
        ("x,y\n1,2\ninf,3\n", "x", ["line 3", "not a number"]),
        ("x;y\n1;2\n1.234,5;3\n", "x", ["line 3", "thousands"]),
        ('x,y\n1,2\n"1,5",3\n', "x", ["line 3", "decimal comma", "semicolon"]),
        ("x,y\n1,2\n1,2,3\n", "x", ["line 3", "3 cells", "2"]),
        ("x,y\n1,2\n1\n", "y", ["line 3", "1 cell ", "2"]),
        ("x,y,x\n1,2,3\n", "x", ["line 1", "0 and 2", "number"]),
        ("total,other\n1,2\n", "totl", ["line 1", 'Did you mean "total"']),
        ("x,y\n1,2\n", "7", ["no column 7", "counted from 0"]),
        ("1,2\n3,4\n", "x", ["no header"]),
        ("x,y\n1,2\n3,4\n", None, ["which column", "--column", "x, y"]),
        ("t,x\n2024-01-02,1\n2024-01-01,2\n", "x", ["line 3", "goes back"]),
        ("t,x\n2024-01-02,1\n2024-01-02,2\n", "x", ["line 3", "stands still"]),
        ('x,y\n1,"2\n3,4\n', "x", ["not CSV"]),
        (b"x\n1\n\xff\n", "x", ["line 3", "UTF-8"]),
    ],
)
def test_faults_are_named_with_their_line(write, text: str | bytes, column: str | None, words: list[str]) -> None:
    path = write(text)
    with pytest.raises(BadInput) as caught:
        read_series([path], column)
    for word in [str(path), *words]:
        assert word in str(caught.value), caught.value


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(BadInput, match=r"nowhere\.csv"):
        read_series(["nowhere.csv"], "x")


def test_a_time_column_can_be_named(write) -> None:
    path = write("quarter,x\nQ1 2024,1\nQ2 2024,2\n")
    assert read_series([path], "x").times == ()
    assert read_series([path], "x", "quarter").times == ("Q1 2024", "Q2 2024")


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=30), st.booleans())
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path_factory, values: list[float], timed: bool) -> None:
    times = tuple(f"week {number}; a, b" for number in range(len(values))) if timed else ()
    series = Series("value", np.array(values), times)
    path = tmp_path_factory.mktemp("series") / "series.csv"
    path.write_text(series.to_csv(), encoding="utf-8", newline="\n")
    again = read_series([path], "value", "time" if timed else None)
    assert again.key == series.key
    assert again.times == times


def test_the_delimiter_is_the_one_that_all_lines_agree_on() -> None:
    assert sniff(["a;b", "1,5;2", "2,5;3"]) == ";"
    assert sniff(["a,b", "x;y,2", "3,4"]) == ","
    assert sniff(["a\tb", "1,0\t2"]) == "\t"
    assert sniff(["a", "1,5", "2"]) == ""


def test_the_embedded_series_is_always_the_same() -> None:
    """Figures in the documentation are about these numbers."""
    assert np.array_equal(tides(5000).values[:3000], tides(3000).values)
    assert tides(3000).key.startswith("9fcced5e6de553ae")


PIECES = [
    "a",
    "x",
    "1",
    "2,5",
    "-3.5",
    "1e9",
    ",",
    ";",
    "\t",
    "\n",
    "\r\n",
    '"',
    " ",
    "2024-01-01",
    "NaN",
    "é",
    "\x00",
    "ﷺ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from([None, "x", "0", 1]))
def test_any_text_is_a_series_or_a_sentence(tmp_path_factory, pieces: list[str], column: str | int | None) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes("".join(pieces).encode())
    with contextlib.suppress(BadInput):
        series = read_series([path], column)
        assert len(series) >= 1
        assert np.isfinite(series.values).all()
        assert len(series.times) in (0, len(series))
