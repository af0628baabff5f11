"""Texts with a label from what people bring: TSV, CSV or JSONL, each also compressed.

By the name of the file: `.jsonl`, `.ndjson` and `.json` have one object a line, `.csv` has quoting, everything else is
TSV without it. Columns are said by their name or by their number from 0; what is not said is guessed by the rules of
`labelled_columns.py`, and refused where they leave a doubt. A second text is looked for only where the first one was
not said either, so `Fields(text="sentence1")` is one text. A dotted name is a path into JSON: `labels.label`.

Several files must agree: the columns found in the first are looked for in the others (their order may differ).

A text may be empty or blank, as a few reviews of NSMC are, and is given as it is: leaving it out in training, or
answering it in prediction, is for the caller to decide. A label may not; spaces around it are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from jumok.data.examples import Example
from jumok.data.json_values import is_json_name, json_objects, json_text, named_items
from jumok.data.labelled_columns import choose_by_cells, choose_by_names, is_header, plain
from jumok.data.table_rows import beginning, table_rows
from jumok.errors import BadInput, did_you_mean

Column = int | str
LOOKED_AT = 200  # rows that a guess is made from
DEEPEST = 3  # objects inside of each other that a dotted name goes into
HOW = "data.train.fields"


@dataclass(frozen=True)
class Fields:
    """Which columns are what, by name or by number from 0; None is to be guessed, or is not there."""

    text: Column | None = None
    second: Column | None = None
    label: Column | None = None


def read_examples(
    files: Sequence[str | Path], fields: Fields | None = None, labelled: bool = True
) -> Iterator[Example]:
    """All rows of the files in order. Where they are not `labelled`, a label is neither needed nor read."""
    if not files:
        raise BadInput("no file with examples was given")
    fields = fields or Fields()
    for file in files:
        table = _open(file, fields)
        fields = _resolve(table, fields, labelled)
        text, second, label = (
            None if column is None else table.place(column) for column in (fields.text, fields.second, fields.label)
        )
        name = str(file)
        for line, row in table.rows:
            yield Example(
                table.cell(line, row, text),
                None if second is None else table.cell(line, row, second),
                None if label is None else _label(table, line, row, label),
                line,
                name,
            )


def resolve_fields(files: Sequence[str | Path], fields: Fields | None = None, labelled: bool = True) -> Fields:
    """The columns that `read_examples` would take, with nothing left to guess; only the beginnings of the files are
    read. Resolving what it gives gives the same."""
    if not files:
        raise BadInput("no file with examples was given")
    fields = fields or Fields()
    for file in files:
        fields = _resolve(_open(file, fields), fields, labelled)
    return fields


def describe_fields(fields: Fields) -> str:
    """For a person: `text: column "document", label: column "label"`."""
    columns = {"text": fields.text, "second text": fields.second, "label": fields.label}
    return ", ".join(f"{role}: column {_quoted(name)}" for role, name in columns.items() if name is not None)


# ---------------------------------------------------------------- a file, opened


@dataclass
class _Table:
    """A file of which the beginning has been looked at. Cells of a table are found by number, those of JSON by key."""

    file: str | Path
    names: list[str] | None  # its header, or the keys of its first objects
    sample: list[list[str]]  # the cells of the first rows, as far as they are text
    rows: Iterator[tuple[int, Any]]
    is_json: bool
    line: int  # where the names are

    def place(self, column: Column) -> Any:
        """Where the cells of a column are; refused where there is none."""
        where = f"{self.file}, line {self.line}"
        name = str(column)
        names = self.names or []
        same = [place for place, known in enumerate(names) if known == name]
        same = same or [place for place, known in enumerate(names) if plain(known) == plain(name)]
        if len(same) > 1:
            places = " and ".join(map(str, same))
            raise BadInput(f'{where}: columns {places} are both called "{name}": say which by its number')
        if same and (isinstance(column, str) or self.is_json):
            return names[same[0]] if self.is_json else same[0]
        if self.is_json:
            raise BadInput(f'{where}: no key "{name}".{did_you_mean(name, names)}')
        if _is_number(column):
            if 0 <= int(column) < len(self.sample[0]):
                return int(column)
            raise BadInput(f"{where}: no column {column}: there are {len(self.sample[0])}, counted from 0")
        if self.names is None:
            raise BadInput(
                f'{where}: no header, so the column "{name}" cannot be found: say its number, from 0. '
                f"There are: {self.columns()}"
            )
        raise BadInput(f'{where}: the header has no column "{name}".{did_you_mean(name, names)}')

    def name_of(self, place: int) -> Column:
        """How a column that was guessed is written down."""
        if self.names is None or self.names.count(self.names[place]) > 1 or not self.names[place].strip():
            return place
        return place if not self.is_json and self.names[place].isdecimal() else self.names[place]

    def cell(self, line: int, row: Any, place: Any) -> str:
        if not self.is_json:
            return str(row[place])
        where = f"{self.file}, line {line}"
        leaves = row if place in row else dict(_leaves(row))
        if place not in leaves:
            raise BadInput(f'{where}: no key "{place}".{did_you_mean(place, leaves)}')
        return json_text(leaves[place], f'{where}: "{place}"')

    def columns(self) -> str:
        """What there is to choose from, for a message."""
        if self.names is not None:
            shown = [f"{_short(name)}" if self.is_json else f"{n} {_short(name)}" for n, name in enumerate(self.names)]
        else:
            shown = [f"{number} (as {_short(cell)})" for number, cell in enumerate(self.sample[0])]
        return ", ".join(shown[:30]) + (f", and {len(shown) - 30} more" if len(shown) > 30 else "")


def _open(file: str | Path, fields: Fields) -> _Table:
    """The file with its header and a sample of its rows; what is wrong with those is told here."""
    if is_json_name(file):
        return _open_json(file)
    rows = table_rows(file)
    head = beginning(rows, LOOKED_AT + 1, lambda row: sum(map(len, row[1])))
    if not head:
        raise BadInput(f"{file}: the file is empty")
    line, first = head[0]
    sample = [cells for _, cells in head[1:]]
    asked = [
        column
        for column in (fields.text, fields.second, fields.label)
        if isinstance(column, str) and not _is_number(column)
    ]
    if not is_header(first, sample, asked):
        return _Table(file, None, [first, *sample], chain(head, rows), False, line)
    if not sample:
        raise BadInput(f"{file}: there is a header and no row")
    return _Table(file, [cell.strip() for cell in first], sample, chain(head[1:], rows), False, line)


def _open_json(file: str | Path) -> _Table:
    rows = json_objects(file)
    head = beginning(rows, LOOKED_AT, lambda row: sum(len(str(value)) for value in row[1].values()))
    if not head:
        raise BadInput(f"{file}: the file is empty")
    leaves = [dict(_leaves(row)) for _, row in head]
    names = list(dict.fromkeys(name for row in leaves for name in row))
    if not names:
        raise BadInput(f"{file}, line {head[0][0]}: an object without keys")
    sample = [[_sampled(row.get(name)) for name in names] for row in leaves]
    return _Table(file, names, sample, chain(head, rows), True, head[0][0])


def _sampled(value: Any) -> str:
    return str(value) if isinstance(value, str | bool) else ""  # numbers are text here, as they are written


def _leaves(row: dict[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    for key, value in named_items(row):
        if isinstance(value, dict) and value and depth < DEEPEST:
            yield from _leaves(value, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}", value


# ---------------------------------------------------------------- columns


def _resolve(table: _Table, fields: Fields, labelled: bool) -> Fields:
    """What was said, and what follows for the rest."""
    if not labelled:
        fields = replace(fields, label=None)
    _different(table, fields)
    if fields.text is None or (labelled and fields.label is None):
        text, second, label = _guess(table, fields, labelled)
        if fields.text is None:
            fields = replace(fields, text=text, second=second if fields.second is None else fields.second)
        if labelled and fields.label is None:
            fields = replace(fields, label=label)
    missing = ["text"] * (fields.text is None) + ["label"] * (labelled and fields.label is None)
    if missing:
        _unclear(table, fields, missing)
    return fields


def _guess(table: _Table, fields: Fields, labelled: bool) -> list[Column | None]:
    said = [table.place(column) for column in (fields.text, fields.second, fields.label) if column is not None]
    if table.names is not None:
        guess = choose_by_names(table.names, table.sample, labelled)
    elif labelled and len(table.sample[0]) == 2 and len(said) == 1 and fields.second is None:
        guess = (1 - said[0], None, 1 - said[0])  # of two columns one was said, so the other is the other
    else:
        guess = choose_by_cells(table.sample, labelled)
    names = [None if place is None else table.name_of(place) for place in guess]
    return [None if name is None or table.place(name) in said else name for name in names]


def _unclear(table: _Table, fields: Fields, missing: list[str]) -> None:
    example, kind = ("N", " (N: its number)") if table.names is None else ("NAME", "")
    found = describe_fields(fields)
    raise BadInput(
        f"{table.file}, line {table.line}: which column is the {' and which is the '.join(missing)}? "
        f"There are: {table.columns()}{'' if table.names is not None else '; no header was recognised'}. "
        f"Say it: {' '.join(f'{HOW}.{role}={example}' for role in missing)}{kind}"
        + (f". Found: {found}" if found else "")
    )


def _different(table: _Table, fields: Fields) -> None:
    """Every column that was said is there, and none is two things."""
    taken: dict[Any, str] = {}
    for role, column in (("text", fields.text), ("second", fields.second), ("label", fields.label)):
        if column is None:
            continue
        place = table.place(column)
        if place in taken:
            raise BadInput(
                f"{table.file}: {HOW}.{taken[place]} and {HOW}.{role} are the same column, {_quoted(column)}. "
                f"There are: {table.columns()}"
            )
        taken[place] = role


def _label(table: _Table, line: int, row: Any, place: Any) -> str:
    label = table.cell(line, row, place).strip()
    if not label:
        name = place if table.names is None or table.is_json else table.names[place]
        raise BadInput(f"{table.file}, line {line}: the label is missing (column {_quoted(name)} is empty)")
    return label


def _is_number(column: Column) -> bool:
    return isinstance(column, int) or column.strip().lstrip("-").isdecimal()


def _quoted(name: Column) -> str:
    return f'"{name}"' if isinstance(name, str) and not _is_number(name) else str(name)


def _short(cell: str) -> str:
    return f'"{cell[:30]}…"' if len(cell) > 30 else f'"{cell}"'
