"""Pictures in folders, one folder for each class: on the disk, or in an archive.

The class is the first folder below the one that was named; pictures may lie deeper in it. Pictures that lie in no
folder have no label, as those that are to be predicted. Hidden files and files that are no pictures by their suffix
are passed over and counted. A folder without pictures beside others that have some is refused, and so are folders that
are no classes: `train` and `test`, or one folder around all others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from jumok.data.compression import open_file
from jumok.data.images.raw import Member, RawImage, class_name, is_image_name, key_of, shown, stamp
from jumok.errors import BadInput

SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval", "evaluation"}
NOT_SHOWN = "__MACOSX"  # what a Mac puts beside the files of a zip
SHOWN = 5


class FolderImages:
    """The pictures among some files. Where it costs nothing (`at_once`), the folders are checked before any is read."""

    def __init__(self, where: str, key: str, members: Callable[[], Iterable[Member]], at_once: bool) -> None:
        self.where, self.key = shown(where), key
        self._members = members
        self.passed_over = 0  # files that are no pictures; of a tar, known when it has been read
        if at_once:
            for _ in self._images():
                pass

    def __iter__(self) -> Iterator[RawImage]:
        for member, label in self._images():
            yield RawImage(shown("/".join((self.where, *member.parts))), label, member.read())

    def _images(self) -> Iterator[tuple[Member, str | None]]:
        layout = _Layout(self.where)
        for member in self._members():
            if layout.has_image(member):
                yield member, layout.label(member)
        layout.check()
        self.passed_over = layout.passed_over


def open_folder(path: Path, where: str) -> FolderImages:
    """A folder of the disk. All files are listed here; what is added later is not seen."""
    found = sorted(walk(path), key=lambda entry: entry[0].split("/"))
    signs = [[name, stamp_of(path / name)] for name, is_folder in found if not is_folder and is_image_name(name)]
    folders = [name for name, is_folder in found if is_folder and "/" not in name]
    key = key_of("folder", [os.path.abspath(path), folders, *signs])

    def members() -> Iterator[Member]:
        for name, is_folder in found:
            yield Member(tuple(name.split("/")), is_folder, 0, partial(read_file, path / name))

    return FolderImages(where, key, members, at_once=True)


def read_file(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read()


def stamp_of(path: Path) -> list[int]:
    try:
        return stamp(path)
    except OSError as error:
        what = "a link to something that is not there" if path.is_symlink() else error.strerror or str(error)
        raise BadInput(f"{shown(path)}: {what}. Take it out, or put the picture in its place") from None


def is_hidden(name: str) -> bool:
    return name.startswith(".") or name == NOT_SHOWN


class _Layout:
    """Which folders there are, and which of them have pictures."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.passed_over = 0
        self._labels: dict[str, str] = {}
        self._without: set[str] = set()
        self._below: set[str] = set()  # folders in the first folder
        self._images = 0
        self._directly = 0  # pictures in a first folder and not deeper, or in none
        self._example = ""

    def has_image(self, member: Member) -> bool:
        parts = member.parts
        folders = parts if member.is_folder else parts[:-1]
        if any(map(is_hidden, folders)):
            return False
        if folders and folders[0] not in self._labels:
            self._without.add(folders[0])
        if member.is_folder:
            return False
        name = parts[-1] if parts else self.where  # no parts: the one file that was named
        if is_hidden(os.path.basename(name)) or not is_image_name(name):
            self.passed_over += 1
            self._example = self._example or shown("/".join(parts))
            return False
        self._images += 1
        if len(folders) < 2:
            self._directly += 1
        else:
            self._below.add(folders[1])
        return True

    def label(self, member: Member) -> str | None:
        if len(member.parts) < 2:
            return None
        folder = member.parts[0]
        if folder not in self._labels:
            self._labels[folder] = class_name(folder, f"{self.where}/{ascii(folder)[1:-1]}")
            self._without.discard(folder)
        return self._labels[folder]

    def check(self) -> None:
        """What can be told when all is seen."""
        if not self._images:
            others = f" ({self.passed_over} other files, as {self._example})" if self.passed_over else ""
            raise BadInput(f"{self.where}: no image in it{others}. Pictures are known by their suffix: .jpg, .png, …")
        classes = sorted(self._labels)
        if not classes:
            return
        if self._without:
            empty = sorted(map(shown, self._without))
            raise BadInput(
                f"{self.where}/{empty[0]}: a class folder without an image{_more(empty)}. Take it out, or put its "
                "images into it"
            )
        if all(name.lower() in SPLITS for name in classes):
            raise BadInput(
                f"{self.where}: {_listed(classes)} {'is no class' if len(classes) == 1 else 'are no classes'}. Say "
                f"which part is meant: {' or '.join(f'{self.where}/{name}' for name in classes[:SHOWN])}"
            )
        if not self._directly and len(classes) == 1 and len(self._below) > 1:
            raise BadInput(
                f'{self.where}: all images lie in folders of "{classes[0]}", which would be the only class. Name that '
                f"folder: {self.where}/{classes[0]}"
            )


def _more(names: list[str]) -> str:
    return f", as are {len(names) - 1} others" if len(names) > 2 else f", as is {names[1]}" if len(names) == 2 else ""


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]


def walk(root: Path) -> Iterator[tuple[str, bool]]:
    """Everything below a folder that is not hidden, through links too; a link back up is not followed."""
    waiting: list[tuple[str, frozenset[tuple[int, int]]]] = [("", frozenset())]
    while waiting:
        prefix, above = waiting.pop()
        folder = root / prefix
        try:
            itself = folder.stat()
            inside = above | {(itself.st_dev, itself.st_ino)}
            if len(inside) == len(above):
                continue
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = prefix + entry.name
                    is_folder = entry.is_dir()
                    yield name, is_folder
                    if is_folder and not is_hidden(entry.name):
                        waiting.append((name + "/", inside))
        except OSError as error:
            raise BadInput(f"{shown(folder)}: cannot be read: {error.strerror or error}") from None
