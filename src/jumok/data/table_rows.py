"""Rows of cells: TSV without quoting, and CSV with it (RFC 4180; a semicolon may stand for the comma).

Files of GLUE and NSMC have single quotes in their texts that mean themselves, so in a TSV a quote is a character like
any other. In a CSV a cell may be quoted, and a quoted cell may hold delimiters, line ends, and `""` for a quote. (The
`csv` module has a size limit for cells that is one for the whole process, and does not say where a quote was opened.)

All rows must have as many cells as the first. Rows without anything in them are nothing at the end of a file, and are
refused before it: whether they are an example that was lost cannot be known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TypeVar

from jumok.data.compression import without_compression
from jumok.data.readers import read_lines
from jumok.data.series import sniff
from jumok.errors import BadInput

Row = tuple[int, list[str]]  # the number of its (first) line, from 1, and its cells

MOST_COLUMNS = 1000  # more is no table of texts; a line of 100 MB of tabs must not become a hundred million cells
MOST_LINES_IN_A_CELL = 10_000  # beyond that the quote was not meant, or was forgotten at the end
SNIFFED_LINES = 50
LONGEST_SNIFFED = 100_000
LOOKED_AT_CHARACTERS = 1 << 22

Item = TypeVar("Item")

_QUOTED = re.compile(r'"(?:[^"]++|"")*+"')  # possessive, so that a cell of 100 MB needs no stack


def is_csv_name(file: str | Path) -> bool:
    return without_compression(file).suffix.lower() == ".csv"


def table_rows(file: str | Path, lines: Iterator[str] | None = None) -> Iterator[Row]:
    """The rows of a table, all of the same width. `lines`: those of the file, where it lies in an archive."""
    width = 0
    blank = 0
    lines = read_lines(file) if lines is None else lines
    delimiter, rows = _csv_rows(file, lines) if is_csv_name(file) else ("\t", _tab_rows(file, lines))
    for line, cells in rows:
        if not any(cells) or all(not cell or cell.isspace() for cell in cells):
            blank = blank or line
            continue
        if blank:
            raise BadInput(f"{file}, line {blank}: blank, but there are rows after it. Take it out")
        width = width or len(cells)
        if len(cells) != width:
            name = {"\t": "tabs", ",": "commas", ";": "semicolons"}[delimiter]
            raise BadInput(
                f"{file}, line {line}: {_columns(len(cells))} where the first row has {_columns(width)} "
                f"(separated by {name})"
            )
        yield line, cells


def beginning(items: Iterator[Item], most: int, size: Callable[[Item], int]) -> list[Item]:
    """The first items, as many as there may be in memory to look at; the iterator goes on after them."""
    head: list[Item] = []
    characters = 0
    while len(head) < most and characters < LOOKED_AT_CHARACTERS:
        item = next(items, None)
        if item is None:
            break
        head.append(item)
        characters += size(item)
    return head


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"


def _tab_rows(file: str | Path, lines: Iterator[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        cells = line.split("\t", MOST_COLUMNS)
        _check_width(file, number, cells)
        yield number, cells


def _csv_rows(file: str | Path, lines: Iterator[str]) -> tuple[str, Iterator[Row]]:
    head = beginning(lines, SNIFFED_LINES, len)
    delimiter = sniff([line for line in head if len(line) <= LONGEST_SNIFFED] or head[:1]) or ","
    return delimiter, _quoted_rows(file, enumerate(chain(head, lines), 1), delimiter)


def _quoted_rows(file: str | Path, lines: Iterator[tuple[int, str]], delimiter: str) -> Iterator[Row]:
    for first, line in lines:
        cells = split_quoted(line, delimiter, f"{file}, line {first}")
        parts = [line]
        while cells is None:
            following = next(lines, None)
            if following is None or len(parts) > MOST_LINES_IN_A_CELL:
                raise BadInput(
                    f"{file}, line {first}: a quote is opened and not closed again. A quoted cell ends with a quote; "
                    'a quote inside of it is written twice: ""'
                )
            parts.append(following[1])
            if following[1].count('"') % 2:  # else what was open before the line is open after it
                cells = split_quoted("\n".join(parts), delimiter, f"{file}, line {first}")
        _check_width(file, first, cells)
        yield first, cells


def split_quoted(text: str, delimiter: str, where: str) -> list[str] | None:
    """The cells of a CSV row; None where its last cell is quoted and goes on. A quote inside of a cell that does not
    begin with one is a character like any other."""
    cells: list[str] = []
    place = 0
    while True:
        if text.startswith('"', place):
            match = _QUOTED.match(text, place)
            if match is None:
                return None
            cell = text[place + 1 : match.end() - 1].replace('""', '"')
            place = match.end()
            if place < len(text) and not text.startswith(delimiter, place):
                raise BadInput(
                    f'{where}: after the closing quote of cell {len(cells)} stands "{text[place : place + 20]}". '
                    'A quote inside of a quoted cell is written twice: ""'
                )
        else:
            end = text.find(delimiter, place)
            end = len(text) if end < 0 else end
            cell = text[place:end]
            place = end
        cells.append(cell)
        if place >= len(text) or len(cells) > MOST_COLUMNS:
            return cells
        place += 1


def _check_width(file: str | Path, line: int, cells: list[str]) -> None:
    if len(cells) > MOST_COLUMNS:
        raise BadInput(f"{file}, line {line}: more than {MOST_COLUMNS} columns. This is no table of texts")
