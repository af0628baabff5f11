"""Tables for a terminal: columns that stay straight with Hangul in them, which takes two cells a letter."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from rich.cells import cell_len

GAP = "  "
LONGEST = 28  # cells of a name


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """One line for each row. The first `left` columns (names) are flush left, the others (numbers) flush right."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(
            _filled(text, width, place < left) for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def short(name: str, cells: int = LONGEST) -> str:
    """A name from data: on one line, nothing in it that a terminal would obey, and not longer than its column."""
    plain = "".join(" " if unicodedata.category(character)[0] in "CZ" else character for character in name)
    if cell_len(plain) <= cells:
        return plain
    while cell_len(plain) > cells - 1:
        plain = plain[:-1]
    return plain + "…"


def _filled(text: str, width: int, left: bool) -> str:
    spaces = " " * (width - cell_len(text))
    return text + spaces if left else spaces + text
