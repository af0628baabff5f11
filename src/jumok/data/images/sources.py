"""Pictures from what people have, one after the other, undecoded. What a path is, is found out here:

- a folder with a folder for each class, or just pictures (`folders.py`)
- a tar or zip with such folders, or a part of one: `cifar10.tar.xz/train` (`archives.py`)
- a CSV or TSV of paths and labels (`csv_list.py`)
- MNIST's idx files (`idx.py`), CIFAR's own files (`cifar.py`); a folder or archive of them with the set that is meant:
  `fashion-mnist/train`, `cifar-10-python.tar.gz/test`
- a picture

Several paths are read one after the other. A source's key says which files these are, by their sizes and times: equal
keys, equal pictures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

from jumok.data.compression import open_file
from jumok.data.images.archives import archive_kind, beginning, members, under
from jumok.data.images.cifar import CifarImages, batch_of, cifar_in_folder, is_cifar
from jumok.data.images.csv_list import ListedImages, is_table
from jumok.data.images.folders import SPLITS, FolderImages, open_folder, read_file
from jumok.data.images.idx import IMAGES, LABELS, IdxImages, idx_in_folder, is_idx_name
from jumok.data.images.picture import is_picture
from jumok.data.images.raw import RawImage, is_image_name, key_of, shown, stamp
from jumok.errors import BadInput
from jumok.recipe import FieldsSection

__all__ = ["CountingSource", "ImageSource", "OpenedImages", "RawImage", "existing", "open_images"]

LOOKED_AT = 1000  # files of an archive, until one of them tells what it holds


class ImageSource(Protocol):
    """Pictures in an order that stays."""

    @property
    def key(self) -> str: ...

    def __iter__(self) -> Iterator[RawImage]: ...


class CountingSource(ImageSource, Protocol):
    """One that says how many files it left out."""

    @property
    def passed_over(self) -> int: ...


class _OneImage:
    """A picture by itself, whatever it is called."""

    passed_over = 0

    def __init__(self, path: Path) -> None:
        self._path = path
        self.key = key_of("image", [os.path.abspath(path), stamp(path)])

    def __iter__(self) -> Iterator[RawImage]:
        yield RawImage(shown(self._path), None, read_file(self._path))


class OpenedImages:
    """The pictures of several paths, joined."""

    def __init__(self, sources: Sequence[CountingSource]) -> None:
        self._sources = sources
        keys = [source.key for source in sources]
        self.key = keys[0] if len(keys) == 1 else key_of("joined", keys)

    def __iter__(self) -> Iterator[RawImage]:
        return chain.from_iterable(self._sources)

    @property
    def passed_over(self) -> int:
        """Files in folders and archives that are no pictures; of a tar, known when it has been read."""
        return sum(source.passed_over for source in self._sources)


def open_images(paths: Sequence[str | Path], fields: FieldsSection | None = None) -> OpenedImages:
    """Find out what the paths are. Nothing is decoded, and of archives only the beginning is read."""
    if not paths:
        raise BadInput("no images were given: name a folder, an archive, a table of paths, or a picture")
    return OpenedImages([_open(Path(path), fields) for path in paths])


def _open(path: Path, fields: FieldsSection | None) -> CountingSource:
    place, part = existing(path)
    if place.is_dir():
        return _open_directory(path, place, part)
    kind = None if is_image_name(place.name) else archive_kind(place)
    if kind is not None:
        return _open_archive(place, part, kind)
    if part:
        raise BadInput(f"{path}: {place} is a file and no archive, so there is nothing in it. Name the file itself")
    return _open_file(place, fields)


def existing(path: Path) -> tuple[Path, tuple[str, ...]]:
    """What is there on the disk, and what is to be found inside of it."""
    for place in (path, *path.parents):
        try:
            is_there = place.exists()
        except (OSError, ValueError):  # a name that is too long, or has a NUL byte in it
            is_there = False
        if is_there:
            return place, path.parts[len(place.parts) :]
    return path, ()


def _open_directory(path: Path, folder: Path, part: tuple[str, ...]) -> CountingSource:
    """A folder; or a set of one, which is no path on the disk."""
    if len(part) <= 1:
        try:
            names = os.listdir(folder)
        except OSError as error:
            raise BadInput(f"{folder}: cannot be read: {error.strerror or error}") from None
        images = idx_in_folder(folder, names, part[0] if part else None)
        if images is not None:
            return IdxImages(images, shown(images))
        is_set = not part or part[0].lower() in SPLITS
        if is_set and is_cifar(name for name in names if (folder / name).is_file()):
            return cifar_in_folder(folder, names, part, shown(folder))
    if part:
        open_file(path).close()  # it is not there: told as of any other file
    return open_folder(folder, str(folder))


def _open_archive(path: Path, part: tuple[str, ...], kind: str) -> CountingSource:
    key = key_of("archive", [os.path.abspath(path), stamp(path), list(part)])
    if _holds_cifar(path):
        return CifarImages(shown(path), key, lambda: members(path), part, at_once=False)
    where = "/".join((str(path), *part))
    return FolderImages(where, key, lambda: under(members(path), part, shown(path)), at_once=kind == "zip")


def _holds_cifar(path: Path) -> bool:
    """The first file that is a picture or a batch of pictures decides."""
    for _, member in zip(range(LOOKED_AT), members(path), strict=False):
        if member.is_folder:
            continue
        if is_image_name(member.parts[-1]):
            return False
        if batch_of(member.parts[-1]):
            return True
    return False


def _open_file(path: Path, fields: FieldsSection | None) -> CountingSource:
    if is_image_name(path.name):
        return _OneImage(path)
    if is_table(path):
        return ListedImages(path, shown(path), fields)
    head = beginning(path)
    if is_idx_name(path.name) or head[:4] in (number.to_bytes(4, "big") for number in (IMAGES, LABELS)):
        return IdxImages(path, shown(path))
    if is_picture(head):
        return _OneImage(path)
    if batch_of(path.name):
        names = os.listdir(path.parent)
        return cifar_in_folder(path.parent, names, (path.name,), shown(path.parent))
    if not head:
        raise BadInput(f"{path}: the file is empty")
    raise BadInput(
        f"{path}: neither an image, an archive (tar, zip), a table of paths (csv, tsv), an idx file of MNIST's kind "
        "nor a batch of CIFAR"
    )
