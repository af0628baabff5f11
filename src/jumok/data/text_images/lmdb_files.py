"""Pictures of words in an LMDB, in the layout that the field shares its data sets in (CLOVA's
deep-text-recognition-benchmark, MMOCR, PARSeq): a folder with `data.mdb`, and in it

    num-samples      how many, as decimal digits
    image-%09d       the bytes of a picture file, counted from 1
    label-%09d       its text, in UTF-8

LMDB maps the file into memory, so what was cut off is looked for before anything is read: a page that is missing would
end the process without a word. (It keeps no sums, so of bytes that were changed inside it finds most, but not all.) A
process may open a database only once at a time, so iterators share it; a forked process may go on with it, because
nothing is locked and nothing written.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.data.images.folders import stamp_of
from jumok.data.images.raw import RawImage, key_of, shown
from jumok.data.text_images.label_files import picture_text
from jumok.errors import BadInput

if TYPE_CHECKING:
    import lmdb

DATA = "data.mdb"
COUNT, IMAGE, LABEL = b"num-samples", b"image-%09d", b"label-%09d"
MISSING = 'LMDB files are read with a package that is not installed: pip install "jumok[lmdb]"'
AGAIN = "Copy or download it again, or make it anew"

_open: weakref.WeakValueDictionary[tuple[int, int], lmdb.Environment] = weakref.WeakValueDictionary()
_lock = threading.Lock()


class LmdbTexts:
    """The pictures of one database, in the order of their numbers."""

    passed_over = 0
    notes: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self._folder, self.where = folder, shown(folder)
        signs = stamp_of(folder / DATA)
        self.key = key_of("text-lmdb", [os.path.abspath(folder), signs])
        with _reading(folder) as found:
            self.count = _count(found, self.where)
            with found.cursor() as cursor:
                self._is_labelled = cursor.set_range(b"label-") and bytes(cursor.key()).startswith(b"label-")
            for pattern in (IMAGE, LABEL) if self._is_labelled else (IMAGE,):
                self._check_last(found, pattern)
            if found.get(beyond := IMAGE % (self.count + 1)) is not None:
                self.notes = [
                    f"{self.where}: num-samples says {self.count:,}, but {beyond.decode()} is there too: only the "
                    f"first {self.count:,} are read"
                ]

    def __iter__(self) -> Iterator[RawImage]:
        with _reading(self._folder) as found:
            for number in range(1, self.count + 1):
                image = self._value(found, IMAGE, number)
                yield RawImage(f"{self.where}/{(IMAGE % number).decode()}", self._text(found, number), image)

    def _text(self, found: lmdb.Transaction, number: int) -> str | None:
        if not self._is_labelled:
            return None
        where = f"{self.where}: {(LABEL % number).decode()}"
        try:
            return picture_text(self._value(found, LABEL, number).decode("utf-8"), where)
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{where}: not valid UTF-8 (byte {error.start + 1}). Make the LMDB again, with its texts in UTF-8"
            ) from None

    def _value(self, found: lmdb.Transaction, pattern: bytes, number: int) -> bytes:
        value = found.get(pattern % number)
        if value is None:
            raise BadInput(
                f"{self.where}: there is no {(pattern % number).decode()}, though num-samples says {self.count:,}. "
                "Numbers go from 1 without gaps; make the LMDB again"
            )
        return bytes(value)

    def _check_last(self, found: lmdb.Transaction, pattern: bytes) -> None:
        """That there are as many as num-samples says; else how many there are, where they have no gaps."""
        if found.get(pattern % self.count) is not None:
            return
        first, last = 0, self.count  # the first is there, or 0; the last is not
        while last - first > 1:
            middle = (first + last) // 2
            first, last = (middle, last) if found.get(pattern % middle) is not None else (first, middle)
        there = f"the last is {(pattern % first).decode()}" if first else f"not even {(pattern % 1).decode()} is there"
        raise BadInput(
            f"{self.where}: num-samples says {self.count:,}, but {there}. It was not written to its end, or in another "
            f"layout. {AGAIN}"
        )


class JoinedLmdb:
    """Several databases, one after the other."""

    passed_over = 0

    def __init__(self, parts: Sequence[LmdbTexts]) -> None:
        self._parts = parts
        self.notes = [note for part in parts for note in part.notes]
        self.key = key_of("text-lmdbs", [part.key for part in parts])

    def __iter__(self) -> Iterator[RawImage]:
        return chain.from_iterable(self._parts)


@contextlib.contextmanager
def _reading(folder: Path) -> Iterator[lmdb.Transaction]:
    """The keys and values; what LMDB itself says of damage is told as all other faults are."""
    try:
        import lmdb
    except ImportError:
        raise BadInput(f"{shown(folder)}: {MISSING}") from None
    file = folder / DATA
    try:
        with _environment(file).begin() as found:
            yield found
    except lmdb.Error as error:
        reason = str(error).removeprefix(f"{folder}: ")
        raise BadInput(f"{shown(file)}: no LMDB, or a damaged one ({reason}). {AGAIN}") from None


def _environment(file: Path) -> lmdb.Environment:
    """The database, opened for reading without touching its lock; the same one as long as somebody holds it."""
    import lmdb

    size = stamp_of(file)[0]
    itself = os.stat(file)
    with _lock:
        opened = _open.get((itself.st_dev, itself.st_ino))
        if opened is None:
            opened = lmdb.open(str(file.parent), readonly=True, lock=False, create=False, readahead=False)
            _open[itself.st_dev, itself.st_ino] = opened
    needed = (opened.info()["last_pgno"] + 1) * opened.stat()["psize"]
    if size < needed:
        raise BadInput(f"{shown(file)}: cut off: {size:,} bytes of {needed:,}. {AGAIN}")
    return opened


def _count(found: lmdb.Transaction, where: str) -> int:
    value = found.get(COUNT)
    if value is None:
        raise BadInput(
            f"{where}: an LMDB without num-samples, so of another layout. Pictures of words have the keys num-samples, "
            "image-000000001 and label-000000001, and so on"
        )
    text = bytes(value).strip()
    if not text.isdigit() or len(text) > 9:
        raise BadInput(f"{where}: num-samples is {shown(repr(text[:40])[1:])}, not a number. {AGAIN}")
    if not int(text):
        raise BadInput(f"{where}: num-samples is 0: there are no pictures in this LMDB")
    return int(text)
