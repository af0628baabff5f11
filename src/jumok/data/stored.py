"""A folder of files that was built once, kept in a cache, and is read through memory maps.

meta.json, which was written last, says in which format they are and how large (`sharding.py` makes such folders). The
tokens are in the folder itself (format 1) or in the folders of its shards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from jumok.data.folders import META, UNREADABLE, clear_abandoned, disk_trouble, read_meta, reserve
from jumok.errors import BadInput

IntArray = npt.NDArray[Any]
Column = tuple[int, Callable[[IntArray], None]]  # how long an array is, and what writes it


class Stored:
    """What such folders have in common; each kind says what its files mean."""

    formats: ClassVar[tuple[int, ...]]  # that can be read

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder, self.meta, self.key = folder, meta, folder.name

    def map(self, name: str, dtype: npt.DTypeLike) -> IntArray:
        path = self.folder / name
        if not path.stat().st_size:  # nothing cannot be mapped
            return np.empty(0, dtype)
        return np.asarray(np.memmap(path, dtype=dtype, mode="r"))

    def maps(self, name: str, dtype: npt.DTypeLike) -> list[IntArray]:
        """A file of each shard."""
        return [self.map(f"{shard}/{name}", dtype) for shard in self.meta.get("shards", ["."])]

    def kept(self, name: str, make: Callable[[], Sequence[Column]]) -> list[IntArray]:
        """Whole numbers derived from the store, made once, into a file beside it, and mapped from there."""
        path = self.folder / name
        found = _columns(path)
        if found is None:
            clear_abandoned(self.folder)
            columns = make()
            header = np.array([len(columns), *(count for count, _ in columns)], np.int64)
            with disk_trouble(self.folder, name) as temporary:
                reserve(temporary, header.itemsize * int(len(header) + header[1:].sum()))
                whole = np.memmap(temporary, dtype=np.int64, mode="r+")
                whole[: len(header)] = header
                for array, (_, write) in zip(_cut(whole), columns, strict=True):
                    write(array)
                whole.flush()
                del whole, array
                temporary.replace(path)
            found = _columns(path)
            assert found is not None
        return found

    def notes(self) -> list[str]:
        """What a reader should know, in sentences."""
        raise NotImplementedError

    @classmethod
    def open_or_make(cls, folder: Path, make: Callable[[], None], say: Callable[[str], None]) -> Self:
        """The folder, made first when it is not there or not whole. `say` is told, in sentences."""
        if (folder / META).exists():
            try:
                return cls.open(folder)
            except BadInput as error:
                say(f"{error}; encoding again")
        make()
        store = cls.open(folder)
        for note in store.notes():
            say(note)
        return store

    @classmethod
    def open(cls, folder: Path) -> Self:
        """An existing folder. Every file must have the size that was recorded when it was built."""
        try:
            meta, wrong = read_meta(folder)
            if meta["format"] not in cls.formats:
                raise BadInput(f"{folder}: a token store of another version (format {meta['format']})")
        except UNREADABLE as error:
            raise BadInput(f"{folder}: not a whole token store ({error})") from None
        if wrong:
            raise BadInput(f"{folder}: damaged token store ({', '.join(wrong)}: missing or of the wrong size)")
        return cls(folder, meta)


def column(array: IntArray) -> Column:
    """Of what is computed already."""

    def write(out: IntArray) -> None:
        out[:] = array

    return len(array), write


def _columns(path: Path) -> list[IntArray] | None:
    """The arrays in a file of `kept`; None when it is not there or not whole."""
    try:
        whole = np.asarray(np.memmap(path, dtype=np.int64, mode="r"))
    except (OSError, ValueError):
        return None
    header = whole[: 1 + int(whole[0])]
    return _cut(whole) if len(whole) == len(header) + int(header[1:].sum()) else None


def _cut(whole: IntArray) -> list[IntArray]:
    count = int(whole[0])
    ends = 1 + count + np.cumsum(whole[1 : 1 + count])
    return np.split(whole[1 + count :], ends[:-1] - 1 - count) if count else []
