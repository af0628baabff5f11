"""Running text as stretches that a model reads at once: whole sentences of one document, as many as fit.

A document is a line, or all lines up to a blank one. Stretches never reach over the end of a document. A line that is
longer than a stretch may be is cut where it is full. The lines' own ends (an <eos> in the store) are not read.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumok.data.layout import derived_name
from jumok.data.stored import column
from jumok.data.text_store import TextStore

VERSION = 2
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stretches:
    """Stretch n is tokens `begin[n]` … `end[n]` of the store, without the lines' ends; `lengths` of them are words."""

    begin: Integers
    end: Integers
    lengths: Integers
    document: Integers  # its number

    def __len__(self) -> int:
        return len(self.begin)


def stretches(store: TextStore, room: int, documents: str, lines: tuple[int, int] | None = None) -> Stretches:
    """All stretches of at most `room` tokens in lines `lines[0]` … `lines[1]` of a store. Found once, and kept beside
    the store."""
    low, high = lines if lines is not None else (0, store.lines)

    def make() -> list[tuple[int, object]]:
        # how documents are parted is told by the whole text: a few lines kept back may have no blank one among them
        blank = documents == "blank" or (documents == "auto" and bool((np.diff(store.starts[:-1]) == 1).any()))
        return [column(part) for part in _cut(np.asarray(store.starts[low : high + 1]), room, blank)]

    name = derived_name("stretches", [VERSION, room, ["auto", "lines", "blank"].index(documents), low, high], _NOTHING)
    return Stretches(*store.kept(name, make))  # type: ignore[arg-type]


_NOTHING = np.empty(0, np.int64)


def _cut(starts: Integers, room: int, blank: bool) -> tuple[Integers, Integers, Integers, Integers]:
    """`starts`: where lines begin, and the end. Every line has one token more than words: its end. `blank`: documents
    end at blank lines, not at each."""
    words = np.diff(starts) - 1
    begin = array("q")
    end = array("q")
    lengths = array("q")
    numbers = array("q")
    document, held = 0, 0  # words in the stretch that is being filled

    def close(at: int) -> None:
        nonlocal held
        if held:
            end.append(at)
            lengths.append(held)
            numbers.append(document)
            held = 0

    for line, count in enumerate(words.tolist()):
        at = int(starts[line])
        if not count or not blank:
            close(at)
            document += 1
            if not count:
                continue
        if held and held + count > room:
            close(at)
        for start in range(0, count, room):  # more than once for a line that is too long
            part = min(room, count - start)
            if held + part > room:
                close(at + start)
            if not held:
                begin.append(at + start)
            held += part
    close(int(starts[-1]))
    return tuple(np.array(part, np.int64) for part in (begin, end, lengths, numbers))  # type: ignore[return-value]


def words_of(store: TextStore, found: Stretches, chosen: Integers, line_end: int) -> tuple[Integers, Integers]:
    """The words of some stretches, end to end, and how many each has."""
    spans = [np.asarray(store.ids[int(found.begin[n]) : int(found.end[n])], np.int64) for n in chosen]
    flat = np.concatenate(spans) if spans else _NOTHING
    return flat[flat != line_end], found.lengths[chosen]
