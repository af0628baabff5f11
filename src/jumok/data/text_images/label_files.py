"""A labels file, line by line: the path of a picture, and the text that is to be read in it.

What stands between the two is found out from the beginning of the file:

    images/1.png⇥Tea room        a tab. Further tabs are part of the text, where there are two columns
    images/1.png Tea room        the first blank, so a path with blanks needs a tab after it
    word_1.png, "Tea room"       a comma; quotes around the text are dropped, inside of it are \\" and \\\\ (ICDAR)
    images/1.png,Tea room        in a .csv: RFC 4180, as in `table_rows.py`
    {"file_name": "1.png", "text": "Tea room"}        in a .jsonl

Which columns are meant is found in `label_columns.py`. A text may be empty, which means a picture without text, but
only where it is said so: by a separator with nothing after it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from jumok.data.images.csv_list import PATHS
from jumok.data.images.raw import is_image_name, shown
from jumok.data.json_values import is_json_name, json_objects, json_text
from jumok.data.table_rows import MOST_COLUMNS, Row, beginning, is_csv_name, table_rows
from jumok.data.text_images.label_columns import Columns, find_columns, find_keys
from jumok.errors import BadInput
from jumok.recipe import FieldsSection

LONGEST = 10_000  # characters of a text
LOOKED_AT = 50  # lines, to see how the file is written
ICDAR = re.compile(r'[^",\t]+,\s*".*"\s*')
BLANK = re.compile(r"[ \t]*([^ \t]+)(?:[ \t](.*))?", re.DOTALL)
ESCAPED = re.compile(r'\\(["\\])')
HOW_EMPTY = "(one with nothing after it means a picture without text)"


class Labelled(NamedTuple):
    """A line of a labels file."""

    line: int
    path: str
    text: str | None  # None: the file has no texts, only paths


def read_labels(file: str, lines: Iterator[str], fields: FieldsSection) -> Iterator[Labelled]:
    """The lines of a labels file; `file` is what it is called."""
    found = _from_json(file, lines, fields) if is_json_name(file) else _from_table(file, lines, fields)
    count = 0
    for line, path, text in found:
        where = f"{file}, line {line}"
        if not path.strip():
            raise BadInput(f"{where}: the path of the picture is missing")
        count += 1
        yield Labelled(line, path.strip(), None if text is None else picture_text(text, where))
    if not count:
        raise BadInput(f"{file}: there is no picture in this labels file: it is empty, or has nothing but a header")


def picture_text(text: str, where: str) -> str:
    """A text as it is kept: composed letters, and nothing around it that cannot be seen."""
    kept = unicodedata.normalize("NFC", text.strip())
    if len(kept) > LONGEST:
        raise BadInput(
            f'{where}: a text of {len(kept):,} characters ("{shown(kept[:30])}…"), more than the {LONGEST:,} that one '
            "may have here. Is a quote or the end of a line missing?"
        )
    return kept


# ---------------------------------------------------------------- lines


def _from_table(file: str, lines: Iterator[str], fields: FieldsSection) -> Iterator[Labelled]:
    opening = beginning(lines, LOOKED_AT, len)
    separator, split = _separator(file, [line for line in opening if line.strip()])
    lines = chain(opening, lines)
    rows = table_rows(file, lines) if split is None else _split_rows(file, lines, split)
    head = beginning(rows, LOOKED_AT, lambda row: sum(map(len, row[1])))
    if not head:
        return
    columns = find_columns(file, head, fields, tabs=separator == "tab")
    for line, cells in chain(head[1:] if columns.has_header else head, rows):
        yield _labelled(f"{file}, line {line}", line, cells, columns, separator)


def _labelled(where: str, line: int, cells: list[str], columns: Columns, separator: str) -> Labelled:
    path, text, width = columns.path, columns.text, columns.width
    if len(cells) > width and separator == "tab" and text == width - 1:
        cells = [*cells[: width - 1], "\t".join(cells[width - 1 :])]
    if len(cells) == 1 < width:
        alone = shown(cells[0].strip()[:80])
        raise BadInput(f'{where}: no label: "{alone}" stands alone, without a {separator} after it {HOW_EMPTY}')
    if len(cells) != width:
        raise BadInput(f"{where}: {len(cells)} columns where {width} are expected")
    return Labelled(line, cells[path], None if text is None else cells[text])


Split = Callable[[str, str], list[str]]


def _separator(file: str, head: list[str]) -> tuple[str, Split | None]:
    """What parts a path from its text, and how a line is split there (None: as a CSV)."""
    first = next((line for line in head if re.search(r"[ \t,]", line)), "")
    before, comma, after = first.partition(",")
    word = "".join(first.split(maxsplit=1)[:1])
    is_path = is_image_name(before.strip()) or before.strip().casefold() in PATHS
    by_comma = is_path or not is_image_name(word)  # else the comma stands in a text after a blank
    if ICDAR.fullmatch(first) and by_comma and not (is_csv_name(file) and after.startswith('"')):
        return "comma", _at_comma
    if is_csv_name(file):
        return "comma", None
    has_tabs = "\t" in first or 2 * sum("\t" in line for line in head) > len(head)
    if has_tabs and (is_image_name(first.partition("\t")[0].strip()) or not is_image_name(word)):
        return "tab", lambda line, _: line.split("\t", MOST_COLUMNS)
    if comma and is_path and not is_image_name(word):
        return "comma", _at_comma
    return "blank", _at_blank


def _split_rows(file: str, lines: Iterator[str], split: Split) -> Iterator[Row]:
    blank = 0
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            blank = blank or number
            continue
        if blank:
            raise BadInput(f"{file}, line {blank}: blank, but there are lines after it. Take it out")
        yield number, split(line, f"{file}, line {number}")


def _at_blank(line: str, where: str) -> list[str]:
    found = BLANK.fullmatch(line)
    return [line] if found is None else [cell for cell in found.groups() if cell is not None]


def _at_comma(line: str, where: str) -> list[str]:
    path, comma, text = line.partition(",")
    return [path, _unquoted(text.strip(), where)] if comma else [path]


def _unquoted(text: str, where: str) -> str:
    if not text.startswith('"'):
        return text
    if len(text) < 2 or not text.endswith('"'):
        raise BadInput(f"{where}: a quote is opened before the text and not closed after it: {shown(text[:80])}")
    return ESCAPED.sub(r"\1", text[1:-1])


# ---------------------------------------------------------------- JSON


def _from_json(file: str, lines: Iterator[str], fields: FieldsSection) -> Iterator[Labelled]:
    keys: tuple[str, str | None] | None = None
    for line, row in json_objects(file, lines):
        where = f"{file}, line {line}"
        keys = keys or find_keys(where, row, fields)
        path, text = keys
        if text is None and find_keys(where, row, fields)[1] is not None:
            raise BadInput(f"{where}: here is a text, and before there was none. Give one in every line, or in none")
        if path not in row:
            raise BadInput(f'{where}: the path of the picture is missing: there is no key "{path}"')
        if text is not None and text not in row:
            raise BadInput(f'{where}: no label: there is no key "{text}" ("" means a picture without text)')
        told = None if text is None else json_text(row[text], f'{where}: "{text}"')
        yield Labelled(line, json_text(row[path], f'{where}: "{path}"'), told)
