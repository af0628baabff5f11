"""How far two words are from each other: the fewest characters to substitute, insert or drop (Levenshtein 1966).

With D(i, j) for the first i characters of the truth and the first j of what was read:

    D(i, j) = min( D(i−1, j−1) + [truth_i ≠ read_j],  D(i−1, j) + 1 (dropped),  D(i, j−1) + 1 (inserted) )

rapidfuzz counts it a hundred times faster; where it is not installed, the equation is computed as it stands. Which
characters were edited is always found here, so that all machines name the same ones where several ways are as short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Kind = Literal["substituted", "inserted", "dropped"]


class Edit(NamedTuple):
    """What happened to one character. Nothing was at its place in the truth ("") where it was inserted, and nothing is
    in what was read where it was dropped."""

    kind: Kind
    truth: str
    read: str
    truth_place: int  # of the character in the truth, or of the one that an inserted one stands before
    read_place: int


def written_out(truth: str, read: str) -> int:
    """D(|truth|, |read|), a row of the table at a time."""
    above = list(range(len(read) + 1))
    for number, wanted in enumerate(truth, 1):
        row = [number]
        for place, given in enumerate(read):
            row.append(min(above[place] + (wanted != given), above[place + 1] + 1, row[place] + 1))
        above = row
    return above[-1]


def _fastest() -> Callable[[str, str], int]:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        return written_out
    return Levenshtein.distance


edit_distance: Callable[[str, str], int] = _fastest()


def edits(truth: str, read: str) -> list[Edit]:
    """The fewest edits that lead from one to the other, from left to right. Of ways that are as short, the one that
    substitutes rather than drops and inserts."""
    table = [list(range(len(read) + 1))]
    for number, wanted in enumerate(truth, 1):
        above, row = table[-1], [number]
        for place, given in enumerate(read):
            row.append(min(above[place] + (wanted != given), above[place + 1] + 1, row[place] + 1))
        table.append(row)
    found: list[Edit] = []
    i, j = len(truth), len(read)
    while i or j:
        if i and j and table[i][j] == table[i - 1][j - 1] + (truth[i - 1] != read[j - 1]):
            i, j = i - 1, j - 1
            if truth[i] != read[j]:
                found.append(Edit("substituted", truth[i], read[j], i, j))
        elif i and table[i][j] == table[i - 1][j] + 1:
            i -= 1
            found.append(Edit("dropped", truth[i], "", i, j))
        else:
            j -= 1
            found.append(Edit("inserted", "", read[j], i, j))
    return found[::-1]
