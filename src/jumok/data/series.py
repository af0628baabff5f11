"""A series of numbers: one column of one or several CSV files, with its times where there are any.

Text is strict UTF-8 (a byte order mark, Windows line ends and compression are fine). The delimiter is a comma, a
semicolon or a tab, whichever the first lines agree on; where it is not a comma, `1,5` is a number too. Nothing is
filled in or left out: a value that is missing or is no number is refused with its line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jumok.data.readers import read_lines
from jumok.data.series_time import is_date, moments
from jumok.errors import BadInput, did_you_mean

Values = npt.NDArray[np.float64]
Column = int | str

DELIMITERS = "\t;,"  # a comma last: where the others part the cells, it stands inside numbers or text
LOOKED_AT = 50  # lines that must agree on the delimiter
LARGEST = 1e100  # beyond this squares and sums are no longer numbers
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
MISSING = {"", "na", "n/a", "nan", "null", "none", "nil", "-", "--", "?", ".", "#n/a", "missing"}


@dataclass(frozen=True)
class Series:
    """Numbers in the order of time. `times` is empty where the file has none."""

    name: str
    values: Values
    times: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def key(self) -> str:
        """Equal keys, equal numbers."""
        return hashlib.sha256(np.ascontiguousarray(self.values, "<f8").tobytes()).hexdigest()

    def to_csv(self) -> str:
        """As `read_series` reads it back, to the last bit."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((["time"] if self.times else []) + ["value"])
        for number, value in enumerate(self.values.tolist()):
            writer.writerow(([self.times[number]] if self.times else []) + [repr(value)])
        return file.getvalue()


def read_series(files: Sequence[str | Path], column: Column | None = None, time: Column | None = None) -> Series:
    """One column of CSV files; several files are parts of one series that follow each other."""
    if not files:
        raise BadInput("no CSV file was given")
    parts = [_read_part(Path(file), column, time) for file in files]
    if len({bool(part.times) for part in parts}) > 1:
        without = next(file for file, part in zip(files, parts, strict=True) if not part.times)
        raise BadInput(f"{without}: no time column, but the other files have one")
    values = np.concatenate([part.values for part in parts])
    times = tuple(chain.from_iterable(part.times for part in parts))
    _check_order(times, [(Path(file), part) for file, part in zip(files, parts, strict=True)])
    return Series(parts[0].name, values, times)


@dataclass(frozen=True)
class _Part:
    name: str
    values: Values
    times: tuple[str, ...]
    lines: tuple[int, ...]


def _read_part(file: Path, column: Column | None, time: Column | None) -> _Part:
    lines = read_lines(file)
    head = list(islice(lines, LOOKED_AT))
    delimiter = sniff(head)
    rows = _rows(file, chain(head, lines), delimiter)
    beginning = next(rows, None)
    if beginning is None:
        raise BadInput(f"{file}: the file is empty")
    first_line, first = beginning
    second = next(rows, None)
    header = _header(first, second, column, delimiter)
    if header is not None and second is None:
        raise BadInput(f"{file}: there is a header and no value")
    if header is None:
        rows = chain([(first_line, first)], [second] if second else [], rows)
    else:
        rows = chain([second] if second else [], rows)
    cells = first if header is None else second[1] if second else []
    if second is not None and len(second[1]) != len(first):  # before its cells are taken for the file's columns
        raise BadInput(_ragged(file, second[0], len(second[1]), len(first), delimiter))
    wanted = _find(file, first_line, header, len(first), column, cells, delimiter)
    when = _find_time(file, first_line, header, len(first), time, wanted, cells)
    values: list[float] = []
    times: list[str] = []
    numbers: list[int] = []
    name = header[wanted] if header is not None else f"column {wanted}"
    for line, row in rows:
        if len(row) != len(first):
            raise BadInput(_ragged(file, line, len(row), len(first), delimiter))
        values.append(_number(row[wanted], f'{file}, line {line}, column "{name}"', delimiter))
        numbers.append(line)
        if when is not None:
            if not row[when].strip():
                raise BadInput(f"{file}, line {line}: the time is missing")
            times.append(row[when].strip())
    return _Part(name, np.array(values), tuple(times), tuple(numbers))


def sniff(lines: Sequence[str]) -> str:
    """The delimiter that every line has equally often, outside of quotes; a comma where none has."""
    texts = [re.sub(r'"[^"]*"', "", line) for line in lines if line.strip()]
    for delimiter in DELIMITERS:
        counts = {text.count(delimiter) for text in texts}
        if len(counts) == 1 and counts != {0}:
            return delimiter
    if not texts:
        return ","
    # they disagree: some row is damaged, and the header knows best
    found = [delimiter for delimiter in DELIMITERS if delimiter in texts[0]]
    return found[0] if found else "" if all(text.count(",") <= 1 for text in texts) else ","


def _rows(file: Path, lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of their line. Blank lines at the end are nothing, others are kept as a missing row."""
    # without a delimiter a line is one cell; the separator then is a character that no text holds
    reader = csv.reader(lines, delimiter=delimiter or "\x1f", strict=True)
    blank: int | None = None
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                blank = blank or reader.line_num
                continue
            if blank is not None and blank > 1:
                raise BadInput(f"{file}, line {blank}: blank, but there are values after it. Fill it in or take it out")
            blank = None
            yield reader.line_num, row
    except csv.Error as error:
        raise BadInput(f"{file}, line {reader.line_num}: not CSV ({error})") from None


# ---------------------------------------------------------------- columns


def _header(
    first: list[str], second: tuple[int, list[str]] | None, column: Column | None, delimiter: str
) -> list[str] | None:
    """The first row where it names the columns: it holds the name asked for, or no number and no date at all, or text
    in a place where the row below it has a number or a date."""
    names = [cell.strip() for cell in first]
    below = [] if second is None else second[1]
    has_text = [cell != "" and not _measured(cell, delimiter) for cell in names]
    over_numbers = any(text and _measured(cell, delimiter) for text, cell in zip(has_text, below, strict=False))
    asked_for = isinstance(column, str) and not column.strip().isdecimal() and column.strip() in names
    return names if asked_for or over_numbers or all(has_text) else None


def _measured(cell: str, delimiter: str) -> bool:
    return _plain(cell, delimiter) is not None or is_date(cell.strip())


def _find(
    file: Path,
    line: int,
    header: list[str] | None,
    width: int,
    column: Column | None,
    cells: list[str],
    delimiter: str,
) -> int:
    """Which column is meant: by its name, else by its number, else the only one with numbers."""
    if column is None:
        numeric = [place for place, cell in enumerate(cells) if _plain(cell, delimiter) is not None]
        if width == 1:
            return 0
        if len(numeric) == 1:
            return numeric[0]
        names = ", ".join(header) if header else f"0 to {width - 1}"
        raise BadInput(f"{file}, line {line}: which column? Say it with --column. There are: {names}")
    return _place(file, line, header, width, column)


def _place(file: Path, line: int, header: list[str] | None, width: int, column: Column) -> int:
    name = str(column).strip()
    same = [place for place, known in enumerate(header or []) if known == name]
    if len(same) > 1:
        places = " and ".join(map(str, same))
        raise BadInput(f'{file}, line {line}: columns {places} are both called "{name}": say which by its number')
    if same:
        return same[0]
    if name.isdecimal():
        if int(name) < width:
            return int(name)
        raise BadInput(f"{file}, line {line}: no column {name}: there are {width}, counted from 0")
    if header is None:
        raise BadInput(f'{file}, line {line}: no header, so "{name}" cannot be found: give a number from 0')
    raise BadInput(f'{file}, line {line}: the header has no column "{name}".{did_you_mean(name, header)}')


def _find_time(
    file: Path,
    line: int,
    header: list[str] | None,
    width: int,
    time: Column | None,
    wanted: int,
    cells: list[str],
) -> int | None:
    """The time column: the one named, else the first whose cells are dates."""
    if time is not None:
        return _place(file, line, header, width, time)
    return next((place for place, cell in enumerate(cells) if place != wanted and is_date(cell.strip())), None)


# ---------------------------------------------------------------- cells


def _plain(cell: str, delimiter: str) -> float | None:
    text = cell.strip()
    if delimiter != "," and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    return float(text) if NUMBER.fullmatch(text) else None


def _number(cell: str, where: str, delimiter: str) -> float:
    value = _plain(cell, delimiter)
    if value is not None and math.isfinite(value) and abs(value) <= LARGEST:
        return value
    text = cell.strip()
    if value is not None:
        raise BadInput(f"{where}: {text} is too large to compute with: use larger units")
    if text.lower() in MISSING:
        said = f'"{text}"' if text else "nothing"
        raise BadInput(
            f"{where}: the value is missing ({said} there). Fill the gaps first; guessing them would change the result"
        )
    hint = ""
    if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", text):
        hint = ". A decimal comma needs another delimiter: a semicolon or a tab"
    elif re.fullmatch(r"[+-]?[0-9]{1,3}([., ' ][0-9]{3})+([.,][0-9]+)?", text):
        hint = ". Take the thousands separators out"
    raise BadInput(f'{where}: "{text[:40]}" is not a number{hint}')


def _ragged(file: Path, line: int, found: int, needed: int, delimiter: str) -> str:
    names = {"\t": "a tab", "": "nothing"}
    cells = f"{found} cell{'s' * (found > 1)}"
    return (
        f"{file}, line {line}: {cells} where the first row has {needed} (parted by {names.get(delimiter, delimiter)})"
    )


# ---------------------------------------------------------------- order


def _check_order(times: tuple[str, ...], parts: Sequence[tuple[Path, _Part]]) -> None:
    """Time runs forwards; a series that is stored newest first would be learned backwards."""
    known = moments(times)
    if known is None:
        return
    places = [(file, line) for file, part in parts for line in part.lines]
    for number in range(1, len(known)):
        if not known[number] > known[number - 1]:
            file, line = places[number]
            same = "the time stands still" if known[number] == known[number - 1] else "the time goes back"
            raise BadInput(
                f"{file}, line {line}: {same} ({times[number - 1]}, then {times[number]}). "
                "Sort the rows (and the files) by time, one row for each"
            )
