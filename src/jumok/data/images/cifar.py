"""CIFAR's own files: 32 × 32 pictures in colour, stored as planes (3, 32, 32).

    binary   data_batch_1.bin …  records of 3073 bytes: label, pixels       names: batches.meta.txt
             train.bin           3074 bytes: coarse label, label, pixels    names: fine_label_names.txt
    Python   data_batch_1 …      pickle: data (N, 3072), labels             names: batches.meta
             train               pickle: data, fine_labels                  names: meta

in a folder, in an archive as their authors pack them, or one file alone. Both sets lie in one place, so it is named
with the one that is meant: `cifar-10-python.tar.gz/train`. Pickles are read, not run (`pickled.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jumok.data.images.folders import read_file, stamp_of
from jumok.data.images.pickled import read_pickled
from jumok.data.images.raw import Member, Pixels, RawImage, class_name, key_of
from jumok.errors import BadInput

AREA = 3 * 32 * 32
NAMES = ("batches.meta", "batches.meta.txt", "meta", "fine_label_names.txt")
SURELY = re.compile(r"(data_batch(_\d+)?|test_batch)(\.bin)?|(train|test)\.bin")
PERHAPS = re.compile(r"train|test")  # of CIFAR-100, as files and not as folders


class CifarImages:
    """The pictures of some batches. `members` gives the files around them, `part` is what was named among them."""

    passed_over = 0

    def __init__(
        self, where: str, key: str, members: Callable[[], Iterable[Member]], part: tuple[str, ...], at_once: bool
    ) -> None:
        self.where, self.key = where, key
        self._members, self._part = members, part
        if at_once:
            self._chosen()

    def __iter__(self) -> Iterator[RawImage]:
        chosen, names = self._chosen()
        for member in self._members():
            if member.parts in chosen and not member.is_folder:
                yield from _batch("/".join((self.where, *member.parts)), member.read(), names)

    def _chosen(self) -> tuple[set[tuple[str, ...]], list[str]]:
        """The batches that are meant, and the names of the classes, where there is a file with them."""
        batches: list[tuple[str, ...]] = []
        names: list[str] = []
        for member in self._members():
            if member.is_folder or not member.parts:
                continue
            if batch_of(member.parts[-1]):
                batches.append(member.parts)
            elif member.parts[-1] in NAMES:
                names = _names("/".join((self.where, *member.parts)), member.parts[-1], member.read())
        return set(_choose(batches, self._part, self.where)), names


def batch_of(name: str) -> str | None:
    """ "train" or "test", for the name of a file with pictures."""
    if SURELY.fullmatch(name) or PERHAPS.fullmatch(name):
        return "test" if name.startswith("test") else "train"
    return None


def is_cifar(names: Iterable[str]) -> bool:
    """Whether a folder with these files is one of CIFAR's."""
    known = set(names)
    return any(SURELY.fullmatch(name) for name in known) or ("meta" in known and bool(known & {"train", "test"}))


def cifar_in_folder(folder: Path, names: Sequence[str], part: tuple[str, ...], where: str) -> CifarImages:
    """A folder of the disk, or one file in it."""
    files = [name for name in sorted(names) if (batch_of(name) or name in NAMES) and (folder / name).is_file()]
    key = key_of("cifar", [os.path.abspath(folder), list(part), *([name, stamp_of(folder / name)] for name in files)])

    def members() -> Iterator[Member]:
        for name in files:
            yield Member((name,), False, 0, partial(read_file, folder / name))

    return CifarImages(where, key, members, part, at_once=True)


def _choose(batches: list[tuple[str, ...]], part: tuple[str, ...], where: str) -> list[tuple[str, ...]]:
    """Those below the folder that was named, or the file; else `train` or `test` of the folder around."""
    below = [parts for parts in batches if parts[: len(part)] == part]
    if not below and part and part[-1] in ("train", "test"):
        around = part[:-1]
        below = [p for p in batches if p[: len(around)] == around and batch_of(p[-1]) == part[-1]]
    sets = sorted({batch_of(parts[-1]) or "" for parts in below})
    if len(sets) > 1:
        start = "/".join((where, *part))
        raise BadInput(f"{start}: pictures to train with and to test with. Say which: {start}/train or {start}/test")
    if not below:
        there = ", ".join("/".join(parts) for parts in batches[:10]) or "none"
        raise BadInput(f'{where}: no batch of pictures "{"/".join(part)}" in it. There is: {there}')
    return below


# ---------------------------------------------------------------- one file


def _batch(where: str, data: bytes, names: list[str]) -> Iterator[RawImage]:
    planes, labels = _binary(where, data) if where.endswith(".bin") else _python(where, data)
    highest = int(labels.max())
    if names and highest >= len(names):
        raise BadInput(f"{where}: the label {highest}, but there are {len(names)} names of classes (from 0)")
    pixels = np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    for number, label in enumerate(labels.tolist()):
        yield RawImage(f"{where}#{number}", names[label] if names else str(label), pixels[number])


def _binary(where: str, data: bytes) -> tuple[Pixels, Pixels]:
    """Records of either set. The size tells which; where it fits both, the name."""
    of_hundred = where.rsplit("/", 1)[-1] in ("train.bin", "test.bin")
    for width in (AREA + 2, AREA + 1) if of_hundred else (AREA + 1, AREA + 2):
        if data and len(data) % width == 0:
            records = np.frombuffer(data, np.uint8).reshape(-1, width)
            highest = (10,) if width == AREA + 1 else (20, 100)
            heads = records[:, :-AREA]
            if (heads >= np.array(highest)).any():
                record = int((heads >= np.array(highest)).any(axis=1).argmax())
                raise BadInput(
                    f"{where}: the label {heads[record].max()} in record {record}, where CIFAR-{highest[-1]} has "
                    f"{highest[-1]} classes: damaged, or not one of its files"
                )
            return records[:, -AREA:], heads[:, -1]
    raise BadInput(
        f"{where}: {len(data):,} bytes are not whole records of {AREA + 1} (CIFAR-10) or {AREA + 2} bytes (CIFAR-100): "
        "cut off, or not one of CIFAR's files. Download it again"
    )


def _python(where: str, data: bytes) -> tuple[Pixels, Pixels]:
    content = read_pickled(data, where)
    found = content if isinstance(content, dict) else {}
    pixels = found.get("data")
    labels = found.get("fine_labels", found.get("labels"))
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != AREA or not len(pixels):
        raise BadInput(f'{where}: no "data" of {AREA} numbers a picture: not one of CIFAR\'s files')
    if not isinstance(labels, list) or not all(isinstance(label, int) and 0 <= label < 256 for label in labels):
        raise BadInput(f'{where}: no "labels" or "fine_labels" that are a list of numbers: not one of CIFAR\'s files')
    if len(labels) != len(pixels):
        raise BadInput(f"{where}: {len(labels)} labels for {len(pixels)} pictures: damaged")
    return pixels, np.array(labels, np.uint8)


def _names(where: str, name: str, data: bytes) -> list[str]:
    """The names of the classes in the order of their numbers."""
    names: Any
    if name.endswith(".txt"):
        names = data.decode("utf-8", "replace").split("\n")
    else:
        content = read_pickled(data, where)
        found = content if isinstance(content, dict) else {}
        names = found.get("fine_label_names", found.get("label_names"))
    names = [text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in names or []]
    if not names or not all(isinstance(text, str) for text in names):
        raise BadInput(f"{where}: no names of classes in it: not one of CIFAR's files")
    while not names[-1].strip() and len(names) > 1:
        names.pop()
    return [class_name(text, f"{where}, name {number}") for number, text in enumerate(names)]
