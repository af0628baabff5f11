"""The JSON files of other people's folders: an object, or a sentence about what is wrong with the file.

They are strangers' files, so they are read strictly. A key that stands there twice means one thing to one program and
another to the next; NaN and infinity are no numbers of JSON, and no size; and what is too large, or holds too many
things, is refused before memory is spent on it.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from jumok.errors import BadInput

MOST_BYTES = 1 << 25  # 32 MiB; a vocabulary of half a million tokens has 15
MOST_THINGS = 1 << 20  # objects and lists: each takes much more memory than its two brackets
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def read_object(file: Path) -> dict[str, Any]:
    """The object that a file holds."""
    try:
        return parse_object(_bytes(file))
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise BadInput(f"{file}: {_reason(error)}; fetch the file again") from None


def read_object_if_there(file: Path) -> dict[str, Any]:
    """An empty object, where there is no such file."""
    return read_object(file) if file.is_file() else {}


def parse_object(data: bytes) -> dict[str, Any]:
    """The object that these bytes are. `ValueError` or `RecursionError` where they are none."""
    if data.count(b"{") + data.count(b"[") > MOST_THINGS:
        raise _Told(f"more than {MOST_THINGS:,} objects and lists")
    found = json.loads(
        data.decode("utf-8"), object_pairs_hook=_without_doubles, parse_constant=_constant, parse_float=_finite
    )
    if not isinstance(found, dict):
        raise _Told("not a JSON object")
    if SURROGATE.search(data):  # half a pair cannot be written again
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


class _Told(ValueError):
    """Its words are for people."""


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, _Told) else f"not JSON ({error})"


def _bytes(file: Path) -> bytes:
    with file.open("rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise _Told(f"more than {MOST_BYTES:,} bytes, which no such file has")
    return data


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Told(f"the key {twice[:80]!r} stands there twice")
    return found


def _constant(name: str) -> float:
    raise _Told(f"{name} is not a number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Told(f"{text[:40]} is not a number that can be computed with")
    return number
