"""The lines of a labels file, and the pictures that they name.

Names are paths below a root, with `/` between folders. A labels file may count them from its own folder or from the
root, which is found out: what finds the most pictures is meant. A path that leads out of the root is refused, wherever
it leads to.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from jumok.data.images.raw import is_image_name, shown
from jumok.data.text_images.label_files import Labelled
from jumok.errors import BadInput

SHOWN = 5  # pictures that are named
SHOWN_LETTERS = 60

Handle = TypeVar("Handle")


class Root(NamedTuple, Generic[Handle]):
    """Where pictures are looked for."""

    place: str  # what it is called
    bases: Sequence[str]  # folders of it that paths may begin in; "" is the root itself
    locate: Callable[[str], Handle | None]  # what is there under a name
    absolute: str | None = None  # its own path on the disk: what begins with it lies in it
    pictures: Iterable[str] = ()  # all that are there, where that is known: for advice


def match(file: str, rows: Sequence[Labelled], root: Root[Handle]) -> list[tuple[Handle, str | None]]:
    """What each line names, with its text."""
    best: list[Handle | None] | None = None
    paths: list[str | None] = []
    for base in dict.fromkeys(root.bases):
        names = [name_below(base, row.path, root.absolute) for row in rows]
        found = [None if name is None else root.locate(name) for name in names]
        if best is None or found.count(None) < best.count(None):
            best, paths = found, names
        if None not in found:
            break
    assert best is not None, "a root has at least one base"
    _check_inside(file, rows, paths, root.place)
    if None in best:
        raise _missing(file, [row for row, handle in zip(rows, best, strict=True) if handle is None], len(rows), root)
    _check_twice(file, rows, paths)
    return [(handle, row.text) for row, handle in zip(rows, best, strict=True) if handle is not None]


def name_below(base: str, path: str, absolute: str | None) -> str | None:
    """The name of a picture below the root; None: it leads out of it."""
    if "\\" in path and "/" not in path:  # written on Windows
        path = path.replace("\\", "/")
    if absolute is not None and path.startswith(absolute.rstrip("/") + "/"):
        base, path = "", path[len(absolute.rstrip("/")) + 1 :]
    if path.startswith("/") or re.match(r"[A-Za-z]:/", path):
        return None
    name = posixpath.normpath(posixpath.join(base, path))
    return None if name == ".." or name.startswith("../") else name


def composed(name: str) -> str:
    """A Mac writes names of files in decomposed letters, others do not; they are the same picture."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _check_inside(file: str, rows: Sequence[Labelled], paths: Sequence[str | None], place: str) -> None:
    for row, path in zip(rows, paths, strict=True):
        if path is None:
            raise BadInput(
                f"{file}, line {row.line}: {shown(row.path[:200])} leads out of {place}. Write paths that begin in the "
                "folder of the labels file, and put the pictures below it"
            )


def _check_twice(file: str, rows: Sequence[Labelled], paths: Sequence[str | None]) -> None:
    seen: dict[str, Labelled] = {}
    for row, path in zip(rows, paths, strict=True):
        before = seen.setdefault(composed(path or ""), row)
        if before.text != row.text:
            texts = [f'"{shown((text or "")[:SHOWN_LETTERS])}"' for text in (before.text, row.text)]
            raise BadInput(
                f"{file}, line {row.line}: {shown(row.path)} has another text on line {before.line}: {texts[0]} there, "
                f"{texts[1]} here. Take one of the two lines out"
            )


def _missing(file: str, missing: Sequence[Labelled], count: int, root: Root[Handle]) -> BadInput:
    named = "; ".join(f"line {row.line}: {shown(row.path[:200])}" for row in missing[:SHOWN])
    more = f"; and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
    if len(missing) == count:
        what = f"none of the {count:,} pictures that it names is there ({named}{more})"
        advice = f"Most likely this is the wrong folder: they were looked for in {root.place}"
    else:
        what = f"{len(missing):,} of the {count:,} pictures that it names are not there: {named}{more}"
        advice = f"They were looked for in {root.place}"
    return BadInput(f"{file}: {what}. {advice}.{_advice(missing, count, root.pictures)}")


def _advice(missing: Sequence[Labelled], count: int, pictures: Iterable[str]) -> str:
    """What is most likely meant by the first that is missing."""
    first = missing[0]
    last_name = composed(first.path.replace("\\", "/").rsplit("/", 1)[-1])
    other = next((name for name in pictures if composed(name.rsplit("/", 1)[-1]) == last_name), None)
    if other is not None:
        return f" There is {shown(other)}: write paths so that they lead there from the labels file"
    if is_image_name(first.path):
        return ""
    if len(missing) == 1 and first.line == 1 and count > 1:
        return " If the first line has the names of columns, call them path and text"
    return " If paths have blanks in them, part path and text by a tab; if texts come first, name the columns"
