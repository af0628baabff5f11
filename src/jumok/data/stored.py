"""A folder of files that was built once, kept in a cache, and is read through memory maps.

meta.json, which was written last, says in which format they are and how large (store_build.py makes such folders).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from jumok.data.store_build import sizes_of
from jumok.errors import BadInput

IntArray = npt.NDArray[Any]


class Stored:
    """What such folders have in common; each kind says what its files mean."""

    format: ClassVar[int]

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder, self.meta, self.key = folder, meta, folder.name

    def map(self, name: str, dtype: npt.DTypeLike) -> IntArray:
        return np.asarray(np.memmap(self.folder / name, dtype=dtype, mode="r"))

    def notes(self) -> list[str]:
        """What a reader should know, in sentences."""
        raise NotImplementedError

    @classmethod
    def open_or_make(cls, folder: Path, make: Callable[[], None], say: Callable[[str], None]) -> Self:
        """The folder, made first when it is not there or not whole. `say` is told, in sentences."""
        if folder.exists():
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
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            if meta["format"] != cls.format:
                raise BadInput(f"{folder}: a token store of another version (format {meta['format']})")
            wrong = [name for name, size in meta["sizes"].items() if sizes_of(folder, [name]).get(name) != size]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{folder}: not a whole token store ({error})") from None
        if wrong:
            raise BadInput(f"{folder}: damaged token store ({', '.join(wrong)}: missing or of the wrong size)")
        return cls(folder, meta)

    @classmethod
    def is_whole(cls, folder: Path) -> bool:
        try:
            cls.open(folder)
        except BadInput:
            return False
        return True
