"""A table of pictures: a CSV or TSV with a path and a label in each row.

The columns are found by their names in the header (`PATHS`, `LABELS`), or said by name or number from 0 through the
recipe's `fields` (`text` is the path); a column that is called otherwise is never taken for the label. Without a header
the path is the column that looks like one, by the suffix of a picture; of two columns the other one is the label. A
table without labels is for prediction. Paths are relative to the table; all are looked for when it is opened, and one
that is not there is told with its line. So that a mistake in the first row is told too, a first row is a header only if
it names a column, or if nothing in it looks like a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from jumok.data.compression import without_compression
from jumok.data.images.folders import read_file
from jumok.data.images.raw import RawImage, class_name, is_image_name, key_of, shown, stamp
from jumok.data.table_rows import Row, beginning, table_rows
from jumok.errors import BadInput, did_you_mean
from jumok.recipe import FieldsSection

TABLES = {".csv", ".tsv", ".txt"}
PATHS = (
    "path", "file", "image", "filename", "file_name", "filepath", "file_path", "image_path", "image_file", "img",
    "img_path", "image_name", "picture", "경로", "파일", "이미지", "사진",
)  # fmt: skip
LABELS = (
    "label", "class", "target", "labels", "class_name", "category", "label_name", "category_name",
    "라벨", "레이블", "분류", "클래스",
)  # fmt: skip
KEY = "data.train.fields"
LOOKED_AT = 50  # rows, to see whether the first is one of them
PATH_LIKE = re.compile(r"[/\\]|\.[^\W\d_]\w*$")


class Unasked(FieldsSection):
    """Of commands that only look at images: they have no key that says which column is which."""


class ListedImages:
    """The pictures of a table, in its order."""

    passed_over = 0

    def __init__(self, table: Path, where: str, fields: FieldsSection | None) -> None:
        self._table, self.where = table, where
        self._rows: list[tuple[str, str | None]] = []
        signs = []
        for line, name, label in _cells(table, fields or Unasked()):
            signs.append(self._checked(line, name))
            self._rows.append((name, label))
        self.key = key_of("list", [os.path.abspath(table), stamp(table), *signs, *self._rows])

    def __iter__(self) -> Iterator[RawImage]:
        for name, label in self._rows:
            path = self._table.parent / name
            yield RawImage(shown(path), label, read_file(path))

    def _checked(self, line: int, name: str) -> list[int]:
        path = self._table.parent / name
        try:
            if path.is_dir():
                raise BadInput(f"{self.where}, line {line}: {shown(path)} is a folder, not an image")
            return stamp(path)
        except (OSError, ValueError) as error:
            reason = "" if isinstance(error, FileNotFoundError) else f" ({getattr(error, 'strerror', None) or error})"
            raise BadInput(
                f"{self.where}, line {line}: no image {shown(path)}{reason}. Paths are relative to the table"
            ) from None


def is_table(path: Path) -> bool:
    return without_compression(path).suffix.lower() in TABLES


def _cells(table: Path, fields: FieldsSection) -> Iterator[tuple[int, str, str | None]]:
    """The line, the path and the label of each row."""
    rows = table_rows(table)
    head = next(rows, None)
    if head is None:
        raise BadInput(f"{table}: the file is empty")
    first_line, first = head
    where = f"{table}, line {first_line}"
    following = beginning(rows, LOOKED_AT, _length)
    for line, cells in (head, *following[:1]):
        _check_parted(table, f"{table}, line {line}", cells)
    is_header = _is_header(table, first, [cells for _, cells in following], fields)
    names = [cell.strip().casefold() for cell in first] if is_header else None
    path, label = _columns(where, first, names, fields, [cells for _, cells in following])
    count = 0
    for line, cells in chain([] if is_header else [head], following, rows):
        name = cells[path].strip()
        if not name:
            raise BadInput(f"{table}, line {line}: the path is missing (column {path} is empty)")
        count += 1
        yield line, name, None if label is None else class_name(cells[label], f"{table}, line {line}")
    if not count:
        raise BadInput(f"{table}: there is a header and no row")


def _length(row: Row) -> int:
    return sum(map(len, row[1]))


def _check_parted(table: Path, where: str, cells: Sequence[str]) -> None:
    """A row of one cell that holds a path and a label with something else between them than is known here."""
    if len(cells) > 1 or _is_there(table, cells[0]):
        return
    words = re.split(r"[\s,;|]+", cells[0].strip())
    if len(words) > 1 and (
        any(map(is_image_name, words[:-1]))
        or _is_there(table, words[-1])
        or all(word.casefold() in (*PATHS, *LABELS) for word in words)
    ):
        raise BadInput(
            f'{where}: "{cells[0].strip()[:60]}" is one column. Part the path and the label by a comma (.csv) or a tab '
            "(.tsv, .txt)"
        )


def _is_header(table: Path, first: Sequence[str], following: Sequence[Sequence[str]], fields: FieldsSection) -> bool:
    """Whether the first row names the columns."""
    known = [cell.strip().casefold() in (*PATHS, *LABELS) for cell in first]
    if any(_is_picture(table, cell) for cell, is_name in zip(first, known, strict=True) if not is_name):
        return False  # though a label may be called "photo" or "class"
    if any(known) or any(_is_name(column) for column in (fields.text, fields.label)):
        return True
    numbers = range(len(first))
    places = numbers if fields.text is None else [place for place in numbers if place == int(fields.text)]
    return not any(
        PATH_LIKE.search(first[place].strip()) or _is_alike(first[place], [cells[place] for cells in following])
        for place in places
    )


def _is_name(column: int | str | None) -> bool:
    return isinstance(column, str) and not column.strip().isdecimal()


def _is_alike(cell: str, others: Sequence[str]) -> bool:
    """Whether a cell begins as others do, up to a number of as many digits: `IMG_0001png` beside `IMG_0002.png`."""
    start = _start(cell)
    return start is not None and any(start == _start(other) for other in others)


def _start(cell: str) -> tuple[str, int] | None:
    found = re.match(r"(\D*)(\d+)", cell.strip())
    return None if found is None else (found[1], len(found[2]))


def _is_there(table: Path, cell: str) -> bool:
    name = cell.strip()
    try:
        return bool(name) and (table.parent / name).is_file()
    except (OSError, ValueError):
        return False


def _is_picture(table: Path, cell: str) -> bool:
    """Whether a cell is a path, by its suffix or because the file is there (names of columns are in no folder)."""
    return is_image_name(cell.strip()) or _is_there(table, cell)


def _columns(
    where: str,
    first: Sequence[str],
    names: list[str] | None,
    fields: FieldsSection,
    following: Sequence[Sequence[str]],
) -> tuple[int, int | None]:
    """The places of the path and of the label."""
    path = None if fields.text is None else place_of(where, fields.text, first, names, "text")
    label = None if fields.label is None else place_of(where, fields.label, first, names, "label")
    if path is None and names is not None:
        path = known_place(where, PATHS, names, "text", fields)
    if path is None:
        looks = _paths(first, following) if names is None else []
        if len(looks) != 1 and len(first) > 1:
            by_number = "" if isinstance(fields, Unasked) else f", or say its number: {KEY}.text=N"
            raise BadInput(
                f"{where}: which column is the path of the image? There are: {shown_cells(first)}. Name it path in a "
                f"header{by_number}"
            )
        path = looks[0] if looks else 0
    if label is None and names is not None:
        label = known_place(where, LABELS, names, "label", fields)
    if label is None and names is None and len(first) == 2:
        label = 1 - path
    if label == path:
        raise BadInput(f"{where}: path and label are the same column, {path}. There are: {shown_cells(first)}")
    return path, label


def _paths(first: Sequence[str], following: Sequence[Sequence[str]]) -> list[int]:
    """The columns that look like paths: by the first row, or by others where the first is mistaken."""
    for rows in ([first], following):
        looks = [place for place in range(len(first)) if any(is_image_name(cells[place].strip()) for cells in rows)]
        if looks:
            return looks
    return [place for place, cell in enumerate(first) if PATH_LIKE.search(cell.strip())]


def place_of(where: str, column: int | str, first: Sequence[str], names: list[str] | None, role: str) -> int:
    if isinstance(column, str) and names is not None and column.strip().casefold() in names:
        return names.index(column.strip().casefold())
    if isinstance(column, int) or column.strip().isdecimal():
        if 0 <= int(column) < len(first):
            return int(column)
        raise BadInput(f"{where}: {KEY}.{role}: no column {column}: there are {len(first)}, counted from 0")
    if names is None:
        raise BadInput(f'{where}: {KEY}.{role}: no header, so "{column}" cannot be found: say its number, from 0')
    raise BadInput(f'{where}: {KEY}.{role}: the header has no column "{column}".{did_you_mean(column, names)}')


def known_place(where: str, known: Sequence[str], names: list[str], role: str, fields: FieldsSection) -> int | None:
    """The best known name among the columns."""
    for name in known:
        if names.count(name) > 1:
            by_number = "" if isinstance(fields, Unasked) else f", or say which by its number: {KEY}.{role}=N"
            raise BadInput(f'{where}: two columns are called "{name}": let one only be called so{by_number}')
        if name in names:
            return names.index(name)
    return None


def shown_cells(first: Sequence[str]) -> str:
    return ", ".join(f'{place} "{cell.strip()[:30]}"' for place, cell in enumerate(first[:20]))
