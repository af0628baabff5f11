"""Where the shards of a corpus begin: lines counted before anything is encoded, with the byte of every shard's first.

Files that are not compressed can then be read from any shard on; compressed ones are read past what comes before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jumok.data.compression import byte_lines, compression, open_file
from jumok.errors import Failure

BLOCK = 1 << 20


@dataclass(frozen=True)
class Shard:
    """Items (pairs, or lines of text) that follow each other in a corpus."""

    number: int
    first: int  # its first item, counted over the whole corpus
    count: int
    file: int  # which of the corpus's files that is in …
    before: int  # … and how many items of the file come before it
    at: tuple[int, ...] = ()  # the byte it begins at, in each of the files that are read side by side; () is not known

    @property
    def name(self) -> str:
        return f"shard-{self.number:05}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Shard:
        return cls(**{**raw, "at": tuple(raw["at"])})


def survey(
    files: Sequence[tuple[str, ...]],
    headers: Sequence[int],
    size: int,
    refuse: Callable[[int], None],
) -> list[Shard]:
    """Shards of `size` items over all files; those that are read side by side are in one tuple.

    `headers` are the lines before a file's first item. `refuse(number)` says what is wrong with a file that has no
    items, or with two that do not pair up.
    """
    starts: list[tuple[int, int, int, tuple[int, ...]]] = []
    total = 0
    for number, sides in enumerate(files):
        begin = -total % size  # items of this file that still belong to a shard begun before
        scans = [scan(side, headers[number] + begin, size) for side in sides]
        counts = {lines - headers[number] for lines, _ in scans}
        count = counts.pop()
        if counts or count < 1:
            refuse(number)
            raise Failure(f"{', '.join(sides)}: changed while being read")
        for index, before in enumerate(range(begin, count, size)):
            at = tuple(marks[index] for _, marks in scans if marks is not None)
            starts.append((total + before, number, before, at if len(at) == len(sides) else ()))
        total += count
    ends = [*(start[0] for start in starts[1:]), total]
    return [
        Shard(index, first, end - first, number, before, at)
        for index, ((first, number, before, at), end) in enumerate(zip(starts, ends, strict=True))
    ]


def scan(path: str, first: int, step: int) -> tuple[int, list[int] | None]:
    """How many lines a file has, and the bytes at which lines `first`, `first + step`, … (from 0) begin.

    Of a compressed file no bytes are given: they could not be gone to.
    """
    if compression(path) != "none":
        return sum(1 for _ in byte_lines(path)), None
    lines = position = 0
    wanted, last = first, b"\n"
    marks = []
    if wanted == 0:
        marks, wanted = [0], step
    with open_file(path) as stream:
        while block := stream.read(BLOCK):
            inside = block.count(b"\n")
            if wanted <= lines + inside:
                ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
                while wanted <= lines + inside:
                    marks.append(position + int(ends[wanted - lines - 1]) + 1)
                    wanted += step
            lines, position, last = lines + inside, position + len(block), block[-1:]
    return lines + (last != b"\n"), marks
