"""Pictures and labels as MNIST has them: idx files, plain or compressed.

    train-images-idx3-ubyte    0x00000803, count, height, width (32 bit, big-endian), then the pixels
    train-labels-idx1-ubyte    0x00000801, count, then a byte for each label

The images are named; the labels lie beside them, under the name with `labels` and `idx1`. A folder with both sets is
named with the one that is meant: `mnist/train`, `mnist/test`. Labels are the numbers as they stand, or lines of a file
with names beside them (`NAMES`).
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import zstandard

from jumok.data.compression import SUFFIXES, open_bytes, without_compression
from jumok.data.images.folders import SPLITS
from jumok.data.images.picture import MOST_PIXELS
from jumok.data.images.raw import RawImage, class_name, key_of, stamp
from jumok.data.readers import read_lines
from jumok.errors import BadInput

IMAGES, LABELS = 0x803, 0x801
NAMES = ("names.txt", "classes.txt", "class_names.txt", "label_names.txt", "labels.txt")
AT_ONCE = 1 << 22  # bytes of pixels that are read together
DAMAGE = (EOFError, OSError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zstandard.ZstdError)
TEST = ("t10k", "test")
_NAME = re.compile(r"(?P<set>.*?)([-_.]?)images([-.])idx3([-.])ubyte", re.IGNORECASE)


class IdxImages:
    """The pictures of one idx file. Labels are read and counts compared when it is opened."""

    passed_over = 0

    def __init__(self, path: Path, where: str | None = None) -> None:
        self.where = where or str(path)
        self._path = path
        with _told(path), open_bytes(path) as file:
            self._count, self._height, self._width = _header(file, path, IMAGES, 3)
        if not self._count:
            raise BadInput(f"{path}: it says that it has no image")
        if not 0 < self._height * self._width <= MOST_PIXELS:
            raise BadInput(f"{path}: damaged: its images would have {self._height} × {self._width} pixels")
        beside = _labels_file(path)
        names = next((path.with_name(name) for name in NAMES if path.with_name(name).is_file()), None)
        self._labels = None if beside is None else _labels(beside, path, self._count, names)
        files = [file for file in (path, beside, names) if file is not None]
        self.key = key_of("idx", [[os.path.abspath(file), stamp(file)] for file in files])

    def __iter__(self) -> Iterator[RawImage]:
        area = self._height * self._width
        together = max(1, AT_ONCE // area)
        with _told(self._path), open_bytes(self._path) as file:
            _header(file, self._path, IMAGES, 3)
            for start in range(0, self._count, together):
                count = min(together, self._count - start)
                data = file.read(count * area)
                if len(data) < count * area:
                    raise BadInput(
                        f"{self._path}: cut off: it ends in image {start + len(data) // area} of {self._count}. "
                        "Download it again"
                    )
                pixels = np.frombuffer(data, np.uint8).reshape(count, self._height, self._width, 1)
                for place in range(count):
                    number = start + place
                    label = None if self._labels is None else self._labels[number]
                    yield RawImage(f"{self.where}#{number}", label, pixels[place])
            if file.read(1):
                raise BadInput(f"{self._path}: there is more in it than the {self._count} images that its start says")


def is_idx_name(name: str) -> bool:
    return _NAME.fullmatch(without_compression(name).name) is not None


def idx_in_folder(folder: Path, names: Sequence[str], part: str | None) -> Path | None:
    """The images file among the files of a folder; of `part`, where a set is named. None: there is no such file."""
    found: dict[str, Path] = {}
    for name in sorted(names):
        match = _NAME.fullmatch(without_compression(name).name)
        if match and (folder / name).is_file():
            found.setdefault(match["set"], folder / name)  # plain before compressed: they sort so
    if not found:
        return None
    if part is not None:
        same = [name for name in found if name == part or (name in TEST and part in TEST)]
        if not same and part.lower() not in SPLITS:
            return None  # a file that was meant, not a set
        if not same:
            raise BadInput(f"{folder}: no {part} in it. There is: {_choice(folder, found)}")
        return found[same[0]]
    if len(found) > 1:
        raise BadInput(f"{folder}: more than one set of images. Say which is meant: {_choice(folder, found)}")
    return next(iter(found.values()))


def _choice(folder: Path, found: dict[str, Path]) -> str:
    return " or ".join(f"{folder}/{name}" if name else str(path) for name, path in found.items())


def _labels_file(images: Path) -> Path | None:
    """By the name of the images, compressed or not."""
    match = _NAME.fullmatch(without_compression(images).name)
    if match is None:
        return None
    name = f"{match['set']}{match[2]}labels{match[3]}idx1{match[4]}ubyte"
    tries = [images.with_name(name + suffix) for suffix in ("", *SUFFIXES)]
    return next((path for path in tries if path.is_file()), None)


def _labels(path: Path, images: Path, count: int, names_file: Path | None) -> list[str]:
    with _told(path), open_bytes(path) as file:
        (labels,) = _header(file, path, LABELS, 1)
        if labels != count:
            raise BadInput(f"{path}: {labels} labels for the {count} images of {images}. They do not belong together")
        data = file.read(count + 1)
    if len(data) != count:
        what = f"cut off after {len(data)} of {count} labels" if len(data) < count else "longer than its start says"
        raise BadInput(f"{path}: {what}. Download it again")
    numbers = list(data)
    if names_file is None:
        return [str(number) for number in numbers]
    names = read_names(names_file)
    if max(numbers) >= len(names):
        raise BadInput(f"{path}: the label {max(numbers)}, but {names_file} has {len(names)} names (from 0)")
    return [names[number] for number in numbers]


def read_names(path: Path) -> list[str]:
    """One name a line, in the order of their numbers."""
    lines = list(read_lines(path))
    while lines and not lines[-1].strip():
        lines.pop()
    names: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        name = class_name(line, f"{path}, line {number}")
        if names.setdefault(name, number) != number:
            raise BadInput(f'{path}, line {number}: "{name}" stands in line {names[name]} too')
    return list(names)


def _header(file: IO[bytes], path: Path, magic: int, sides: int) -> tuple[int, ...]:
    start = file.read(4 + 4 * sides)
    found = int.from_bytes(start[:4], "big")
    if len(start) >= 4 and found != magic:
        kinds = {IMAGES: "images", LABELS: "labels"}
        is_other = f" This one has {kinds[found]}: name the file with the {kinds[magic]}." if found in kinds else ""
        raise BadInput(f"{path}: an idx file of {kinds[magic]} begins with 0x{magic:08x}, not 0x{found:08x}.{is_other}")
    if len(start) < 4 + 4 * sides:
        raise BadInput(f"{path}: cut off: it ends before its first image. Download it again")
    return struct.unpack(f">{sides}I", start[4:])


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGE as error:
        reason = str(error).strip().rstrip(".") or type(error).__name__
        raise BadInput(f"{path}: damaged or cut off ({reason}). Download it again") from None
