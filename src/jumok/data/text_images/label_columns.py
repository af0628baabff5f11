"""Which column of a labels file is the path of a picture, and which its text.

By what the recipe's `fields` say, by name or by number from 0 (as for images with classes, `text` is what is looked at,
the path, and `label` is what is to be answered, the text); else by the names in a header (`PATHS`, `TEXTS`). Without a
header the first of two columns is the path, unless only the second one looks like paths. A file of more columns must
have a header or say the numbers. A header without a column of texts is that of a file for reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jumok.data.images.csv_list import KEY, PATHS, Unasked, known_place, place_of, shown_cells
from jumok.data.images.raw import is_image_name
from jumok.data.json_values import named_items
from jumok.data.table_rows import Row
from jumok.errors import BadInput, did_you_mean
from jumok.recipe import FieldsSection

TEXTS = (
    "text", "label", "word", "words", "transcription", "transcript", "ground_truth", "gt", "string", "caption",
    "labels", "target", "텍스트", "글자", "단어", "라벨", "레이블", "정답",
)  # fmt: skip


class Columns(NamedTuple):
    has_header: bool
    path: int
    text: int | None  # None: there are no texts
    width: int


def find_columns(file: str, head: Sequence[Row], fields: FieldsSection, tabs: bool) -> Columns:
    """The columns of a file by its first rows. `tabs`: cells are parted by tabs, which a text may have too."""
    line, first = head[0]
    where = f"{file}, line {line}"
    rows = [cells for _, cells in head]
    names = [cell.strip().casefold() for cell in first] if _is_header(first, fields) else None
    is_said = fields.text is not None or fields.label is not None
    width = len(first)
    if names is None and not is_said and tabs:
        width = _width(rows)
    path = None if fields.text is None else place_of(where, fields.text, first, names, "text")
    text = None if fields.label is None else place_of(where, fields.label, first, names, "label")
    if path is None:
        path = _path_by_cells(rows, width, text) if names is None else known_place(where, PATHS, names, "text", fields)
    if path is None:
        raise BadInput(
            f"{where}: which column is the path of the picture? There are: {shown_cells(first)}. {_how(fields)}"
        )
    if text is None and names is not None:
        text = known_place(where, TEXTS, names, "label", fields)
    elif text is None:
        if width > 2:
            raise BadInput(f"{where}: which column is the text? There are: {shown_cells(first)}. {_how(fields)}")
        text, width = 1 - path, 2
    if path == text:
        raise BadInput(f"{where}: path and text are the same column, {path}. There are: {shown_cells(first)}")
    return Columns(names is not None, path, text, width)


def find_keys(where: str, row: dict[str, Any], fields: FieldsSection) -> tuple[str, str | None]:
    """The keys of path and text in the first object of a JSONL file."""
    known = [key for key, _ in named_items(row)]
    for role, said in (("text", fields.text), ("label", fields.label)):
        if said is not None and str(said) not in row:
            raise BadInput(f'{where}: {KEY}.{role}: there is no key "{said}".{did_you_mean(str(said), known)}')
    path = _known_key(PATHS, known) if fields.text is None else str(fields.text)
    text = _known_key(TEXTS, known) if fields.label is None else str(fields.label)
    if path is None:
        by_name = (
            "" if isinstance(fields, Unasked) else f", or name it: {KEY}.text=NAME (and {KEY}.label=NAME, the text)"
        )
        raise BadInput(
            f"{where}: which key is the path of the picture? There are: {', '.join(known[:20])}. Call it path{by_name}"
        )
    if path == text:
        raise BadInput(f'{where}: path and text are the same key, "{path}"')
    return path, text


def _how(fields: FieldsSection) -> str:
    told = "Name the columns path and text in a first line"
    if isinstance(fields, Unasked):
        return told
    return f"{told}, or say their numbers, from 0: {KEY}.text=N (the path) and {KEY}.label=N (the text)"


def _is_header(first: Sequence[str], fields: FieldsSection) -> bool:
    if any(is_image_name(cell.strip()) for cell in first):
        return False
    said = any(isinstance(column, str) and not column.strip().isdecimal() for column in (fields.text, fields.label))
    return said or any(cell.strip().casefold() in PATHS for cell in first)


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Of lines with tabs: where one has more of them than another, they stand in a text."""
    widths = {len(cells) for cells in rows}
    return widths.pop() if len(widths) == 1 and len(rows) > 1 else 2


def _path_by_cells(rows: Sequence[Sequence[str]], width: int, text: int | None) -> int:
    """The first column that looks like paths, else the first at all."""
    places = [place for place in range(width) if place != text]
    for place in places:
        looks = [is_image_name(cells[place].strip()) for cells in rows if len(cells) > place]
        if looks and all(looks):
            return place
    return places[0] if places else 0


def _known_key(known: Sequence[str], keys: Sequence[str]) -> str | None:
    return next((key for name in known for key in keys if key.casefold() == name), None)
