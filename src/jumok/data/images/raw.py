"""A picture as a reader gives it, before it is decoded; and what the readers share: which names are pictures, how a
name is shown and a label written, and what a file's key is made of."""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumok.errors import BadInput

Pixels = NDArray[np.uint8]  # (H, W, C)

# HEIC is not read, but it is a picture: one among others is named, and not passed over without a word.
SUFFIXES = {
    ".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm",
    ".pnm", ".avif", ".jp2", ".heic", ".heif",
}  # fmt: skip


@dataclass(frozen=True)
class RawImage:
    """A file's bytes, or pixels where the file has nothing to decode."""

    name: str  # as `shown` gives it: to be told, not to be opened
    label: str | None  # None: not told, as for what is to be predicted
    data: bytes | Pixels


class Member(NamedTuple):
    """A file in a folder or in an archive. Of an archive it is to be read before the next one is asked for."""

    parts: tuple[str, ...]  # below the folder or archive: ("train", "cat", "1.jpg")
    is_folder: bool
    size: int
    read: Callable[[], bytes]


def is_image_name(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def shown(path: str | Path) -> str:
    """A name as it can be told and written. What is no UTF-8, as a zip of a Korean Windows leaves it on the disk, is
    kept by Python as lone surrogates, which no file and no terminal takes: its bytes are told, `\\xb0\\xed.png`. So
    are ends of lines and other letters that would steer a terminal."""
    name = str(path)
    return name if name.isprintable() else "".join(map(_shown_letter, name))


def _shown_letter(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":  # a byte, by PEP 383
        return f"\\x{ord(letter) - 0xDC00:02x}"
    if unicodedata.category(letter) in ("Cs", "Cc", "Zl", "Zp"):  # what joins an emoji, or is a wide space, stays
        return letter.encode("unicode_escape").decode()
    return letter


def class_name(text: str, where: str) -> str:
    """A label as it is kept. Names of folders come from a Mac in decomposed letters and from elsewhere in composed
    ones; they are one class."""
    label = unicodedata.normalize("NFC", text.strip())
    if not label:
        raise BadInput(f"{where}: the label is missing")
    if not label.isprintable():  # also what is no UTF-8, which Python keeps as lone surrogates
        raise BadInput(f"{where}: the label {label!a} has letters that cannot be shown. Give it another name")
    return label


def stamp(path: str | Path) -> list[int]:
    """Numbers that change when a file is written to."""
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def key_of(kind: str, parts: Iterable[object]) -> str:
    """A short name for what these say; `parts` are strings and numbers, in lists or not."""
    digest = hashlib.sha256(kind.encode())
    for part in parts:
        digest.update(json.dumps(part).encode() + b"\n")
    return f"{kind}-{digest.hexdigest()[:32]}"
