"""A table of pictures: a CSV or TSV with a path and a label in each row.

The columns are found by their names in the header (`PATHS`, `LABELS`), or said by name or number from 0 through the
recipe's `fields` (`text` is the path). Without a header the path is the column that looks like one, by the suffix of a
picture; of two columns the other one is the label. A table without labels is for prediction. Paths are relative to the
table; all are looked for when it is opened, and one that is not there is told with its line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from jumok.data.compression import without_compression
from jumok.data.images.folders import read_file
from jumok.data.images.raw import RawImage, class_name, is_image_name, key_of, stamp
from jumok.data.table_rows import table_rows
from jumok.errors import BadInput, did_you_mean
from jumok.recipe import FieldsSection

TABLES = {".csv", ".tsv", ".txt"}
PATHS = (
    "path", "file", "image", "filename", "file_name", "filepath", "file_path", "image_path", "image_file", "img",
    "img_path", "image_name", "picture", "경로", "파일", "이미지", "사진",
)  # fmt: skip
LABELS = ("label", "class", "target", "labels", "class_name", "category", "label_name", "라벨", "레이블", "분류")


class ListedImages:
    """The pictures of a table, in its order."""

    passed_over = 0

    def __init__(self, table: Path, where: str, fields: FieldsSection | None) -> None:
        self._table, self.where = table, where
        self._rows: list[tuple[str, str | None]] = []
        signs = []
        for line, name, label in _cells(table, fields or FieldsSection()):
            signs.append(self._checked(line, name))
            self._rows.append((name, label))
        self.key = key_of("list", [os.path.abspath(table), stamp(table), *signs, *self._rows])

    def __iter__(self) -> Iterator[RawImage]:
        for name, label in self._rows:
            path = self._table.parent / name
            yield RawImage(str(path), label, read_file(path))

    def _checked(self, line: int, name: str) -> list[int]:
        path = self._table.parent / name
        try:
            if path.is_dir():
                raise BadInput(f"{self._table}, line {line}: {path} is a folder, not an image")
            return stamp(path)
        except (OSError, ValueError) as error:
            reason = "" if isinstance(error, FileNotFoundError) else f" ({getattr(error, 'strerror', None) or error})"
            raise BadInput(
                f"{self._table}, line {line}: no image {path}{reason}. Paths are relative to the table"
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
    is_header = not any(_is_picture(table, cell) for cell in first)
    names = [cell.strip().casefold() for cell in first] if is_header else None
    path, label = _columns(f"{table}, line {first_line}", first, names, fields)
    count = 0
    for line, cells in rows if is_header else chain([head], rows):
        name = cells[path].strip()
        if not name:
            raise BadInput(f"{table}, line {line}: the path is missing (column {path} is empty)")
        count += 1
        yield line, name, None if label is None else class_name(cells[label], f"{table}, line {line}")
    if not count:
        raise BadInput(f"{table}: there is a header and no row")


def _is_picture(table: Path, cell: str) -> bool:
    """Whether a cell is a path, by its suffix or because the file is there (names of columns are in no folder)."""
    name = cell.strip()
    try:
        return is_image_name(name) or (bool(name) and (table.parent / name).is_file())
    except (OSError, ValueError):
        return False


def _columns(
    where: str, first: Sequence[str], names: list[str] | None, fields: FieldsSection
) -> tuple[int, int | None]:
    """The places of the path and of the label."""
    path = None if fields.text is None else _place(where, fields.text, first, names, "text")
    label = None if fields.label is None else _place(where, fields.label, first, names, "label")
    if path is None and names is not None:
        path = _known(where, PATHS, names, "text")
    if path is None:
        looks = [place for place, cell in enumerate(first) if names is None and is_image_name(cell.strip())]
        if len(looks) != 1 and len(first) > 1:
            raise BadInput(
                f"{where}: which column is the path of the image? There are: {_shown(first)}. Name it path in a "
                "header, or say its number: fields.text=N"
            )
        path = looks[0] if looks else 0
    if label is None and names is not None:
        label = _known(where, LABELS, names, "label")
    if label is None and len(first) == 2:
        label = 1 - path
    if label == path:
        raise BadInput(f"{where}: path and label are the same column, {path}. There are: {_shown(first)}")
    return path, label


def _place(where: str, column: int | str, first: Sequence[str], names: list[str] | None, role: str) -> int:
    if isinstance(column, str) and names is not None and column.strip().casefold() in names:
        return names.index(column.strip().casefold())
    if isinstance(column, int) or column.strip().isdecimal():
        if 0 <= int(column) < len(first):
            return int(column)
        raise BadInput(f"{where}: fields.{role}: no column {column}: there are {len(first)}, counted from 0")
    if names is None:
        raise BadInput(f'{where}: fields.{role}: no header, so "{column}" cannot be found: say its number, from 0')
    raise BadInput(f'{where}: fields.{role}: the header has no column "{column}".{did_you_mean(column, names)}')


def _known(where: str, known: Sequence[str], names: list[str], role: str) -> int | None:
    """The best known name among the columns."""
    for name in known:
        if names.count(name) > 1:
            raise BadInput(f'{where}: two columns are called "{name}": say which by its number: fields.{role}=N')
        if name in names:
            return names.index(name)
    return None


def _shown(first: Sequence[str]) -> str:
    return ", ".join(f'{place} "{cell.strip()[:30]}"' for place, cell in enumerate(first[:20]))
