"""JSON that people bring, with everything that can be wrong with it told by its place: `jsonl` objects one a line, and
the texts inside of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jumok.data.compression import without_compression
from jumok.data.readers import JSON_SUFFIXES, json_kind, read_lines
from jumok.errors import BadInput

ONE_A_LINE = "JSONL has one whole object on each line (from a JSON array: jq -c '.[]' file.json > file.jsonl)"


def is_json_name(file: str | Path) -> bool:
    """Whether a name ends as those of JSON do, before the suffix of a compression."""
    return without_compression(file).suffix.lower() in JSON_SUFFIXES


def parse_json(text: str, where: str, advice: str = "", as_written: bool = False) -> Any:
    """A JSON value. `as_written`: numbers stay the text they are, so that `5.000` does not become `5.0`."""
    try:
        if as_written:
            return json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if error.lineno > 1 else ""
        raise BadInput(f"{where}{line}, column {error.colno}: not JSON ({error.msg}). {advice}".rstrip()) from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, brackets a thousand deep
        reason = "too many brackets inside each other" if isinstance(error, RecursionError) else error
        raise BadInput(f"{where}: not JSON ({reason}). {advice}".rstrip()) from None


def json_objects(
    file: str | Path, lines: Iterable[str] | None = None, as_written: bool = True
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with the numbers of their lines. Blank lines at the end are nothing."""
    blank = 0
    for number, line in enumerate(read_lines(file) if lines is None else lines, 1):
        if not line or line.isspace():
            blank = blank or number
            continue
        if blank:
            raise BadInput(f"{file}, line {blank}: blank, but there are lines after it. Take it out")
        where = f"{file}, line {number}"
        value = parse_json(line, where, ONE_A_LINE, as_written)
        if not isinstance(value, dict):
            raise BadInput(f"{where}: an object is needed, this is {json_kind(value)}. {ONE_A_LINE}")
        yield number, value


def json_text(value: Any, where: str) -> str:
    """A string as it is, a boolean as JSON writes it, a number as its text; anything else is refused."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return json.dumps(value)
    if not isinstance(value, str):
        raise BadInput(f"{where} is {json_kind(value)}, not text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput(f"{where} has half of a surrogate pair (\\uD800 to \\uDFFF alone)") from None
    return value


def named_items(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys with their values, but those that have half of a surrogate pair: no one can say them or print them."""
    for key, value in row.items():
        if key.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in key):
            yield key, value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
