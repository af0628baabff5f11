"""Word alignments as text, in the Pharaoh format: one line per sentence pair.

`i-j` when source word i surely corresponds to target word j, `i?j` (some published sets: `ipj`) when it possibly does.
Words are those between spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from jumok.data.readers import read_lines
from jumok.errors import BadInput

Link = tuple[int, int]  # (source word, target word), from 0

_LINK = re.compile(r"([0-9]{1,9})([-?p])([0-9]{1,9})")


def parse_pharaoh(line: str, one_based: bool = False, where: str = "alignment") -> tuple[set[Link], set[Link]]:
    """The sure links, and the possible ones; a sure link is also possible (Och and Ney 2003)."""
    sure: set[Link] = set()
    possible: set[Link] = set()
    for item in line.split():
        match = _LINK.fullmatch(item)
        if match is None:
            raise BadInput(f'{where}: "{item[:40]}" is not a link; write 0-0 for a sure link, 0?0 for a possible one')
        source, target = int(match[1]) - one_based, int(match[3]) - one_based
        if min(source, target) < 0:
            raise BadInput(f'{where}: "{item}" has the index 0, but the words of this file are counted from 1')
        possible.add((source, target))
        if match[2] == "-":
            sure.add((source, target))
    return sure, possible


def format_pharaoh(sure: Iterable[Link], possible: Iterable[Link] = (), one_based: bool = False) -> str:
    """One line of the Pharaoh format, in reading order; the links of `possible` that are not sure are written `i?j`."""
    certain = set(sure)
    links = sorted(certain | set(possible))
    marks = ["-" if link in certain else "?" for link in links]
    return " ".join(f"{i + one_based}{mark}{j + one_based}" for (i, j), mark in zip(links, marks, strict=True))


def read_pharaoh(path: str | Path, one_based: bool = False) -> list[tuple[set[Link], set[Link]]]:
    """A whole file of alignments (compressed, too); what is wrong is named with its line."""
    return [
        parse_pharaoh(line, one_based, f"{path}, line {number}")
        for number, line in enumerate(read_lines(path), start=1)
    ]


FROM_ONE = "If the file counts words from 1, say so (one_based)."


def check_range(
    links: Iterable[Link], source_words: int, target_words: int, where: str = "alignment", advice: str = FROM_ONE
) -> None:
    """Refuse links to words that the sentences do not have."""
    for source, target in sorted(links):
        for side, index, count in (("source", source, source_words), ("target", target, target_words)):
            if not 0 <= index < count:
                raise BadInput(
                    f"{where}: the link {source}-{target} names {side} word {index}, but the {side} sentence has "
                    f"{count} word(s), counted from 0. Are the files of the same sentences? {advice}"
                )
