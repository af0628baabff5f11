"""Pictures with their texts on the disk: a folder with a labels file in it or beside it, or the labels file by itself.

The pictures come in the order of the labels file. Those of a folder that no line names are counted and passed over; a
folder without any labels is one for reading, its pictures come sorted by their names and have no text.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jumok.data.images.folders import read_file, stamp_of, walk
from jumok.data.images.raw import RawImage, is_image_name, key_of, shown, stamp
from jumok.data.readers import read_lines
from jumok.data.text_images.in_archives import ArchiveTexts
from jumok.data.text_images.label_files import Labelled, read_labels
from jumok.data.text_images.label_names import (
    archive_beside,
    is_labels_name,
    is_list_name,
    labels_beside,
    one_of,
    stem_of,
    uppermost,
)
from jumok.data.text_images.lmdb_files import DATA, JoinedLmdb, LmdbTexts
from jumok.data.text_images.matching import Root, match, name_below
from jumok.data.text_images.notes import no_labels_note, unnamed_note
from jumok.data.text_images.own_texts import own_texts, read_own_text
from jumok.errors import BadInput
from jumok.recipe import FieldsSection

Located = tuple[str, list[int]]  # a name below the root, and the stamp of the file


class FolderTexts:
    """Files of the disk, each with its text."""

    def __init__(
        self,
        root: Path,
        found: Sequence[tuple[Located, str | None]],
        about: Sequence[object] = (),  # what the texts come from, for the key
        passed_over: int = 0,
        notes: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._found = [(name, text) for (name, _), text in found]
        self.passed_over, self.notes = passed_over, list(notes)
        signs = ([name, signs, text] for (name, signs), text in found)
        self.key = key_of("text-images", [os.path.abspath(root), list(about), *signs])

    def __iter__(self) -> Iterator[RawImage]:
        for name, text in self._found:
            path = self._root / name
            yield RawImage(shown(path), text, read_file(path))


@dataclass(frozen=True)
class _Listing:
    """The files below a folder, named from a root that is the folder itself or the one around it."""

    folder: Path
    pictures: list[str]
    others: list[str]


def one_picture(path: Path) -> FolderTexts:
    return FolderTexts(path.parent, [((path.name, stamp_of(path)), None)])


def open_text_folder(folder: Path, fields: FieldsSection) -> FolderTexts | ArchiveTexts | LmdbTexts | JoinedLmdb:
    """Find out what a folder holds. All files are listed here; what is added later is not seen."""
    if (folder / DATA).is_file():
        return LmdbTexts(folder)
    names = sorted((name for name, is_folder in walk(folder) if not is_folder), key=lambda name: name.split("/"))
    is_picture = [is_image_name(name) and not os.path.basename(name).startswith(".") for name in names]
    pictures = [name for name, is_one in zip(names, is_picture, strict=True) if is_one]
    listing = _Listing(folder, pictures, [name for name, is_one in zip(names, is_picture, strict=True) if not is_one])
    own = own_texts(pictures, listing.others)
    labels = uppermost(set(filter(is_labels_name, listing.others)) - set(own.values()))
    if labels:
        name = one_of(labels, shown(folder))
        base = os.path.dirname(name)
        bases = (base, os.path.join(base, stem_of(os.path.basename(name))), "")
        return open_labels_file(folder / name, fields, folder, bases, listing)
    if own:
        return _with_own_texts(listing, own)
    beside = labels_beside(folder) if folder.name not in ("", "..") else None
    if beside is not None:
        around = _Listing(folder, *([f"{folder.name}/{name}" for name in part] for part in (pictures, listing.others)))
        return open_labels_file(beside, fields, folder.parent, (folder.name, ""), around)
    databases = [name for name in listing.others if os.path.basename(name) == DATA]
    if databases and not pictures:
        return JoinedLmdb([LmdbTexts((folder / name).parent) for name in databases])
    if not pictures:
        others = f" ({len(listing.others)} other files, as {shown(listing.others[0])})" if listing.others else ""
        raise BadInput(
            f"{shown(folder)}: no image in it, and no labels file{others}. Pictures are known by their suffix: .jpg, …"
        )
    lists = [name for name in listing.others if is_list_name(name) and "/" not in name]
    found = [((name, stamp_of(folder / name)), None) for name in pictures]
    notes = [no_labels_note(shown(folder), lists)] if lists else []
    return FolderTexts(folder, found, passed_over=len(listing.others), notes=notes)


def open_labels_file(
    file: Path,
    fields: FieldsSection,
    root: Path | None = None,
    bases: Sequence[str] = (),
    listing: _Listing | None = None,
) -> FolderTexts | ArchiveTexts:
    """The pictures that a labels file names: below `root`, or in the archive of the same name."""
    where = shown(file)
    rows = list(read_labels(where, read_lines(file), fields))
    if root is None:
        stem = stem_of(file.name)
        root, bases = file.parent, ("", stem) if stem and (file.parent / stem).is_dir() else ("",)
    absolute = os.path.abspath(root).replace(os.sep, "/")
    pictures = () if listing is None else listing.pictures
    looked_in = Root("this folder" if str(root) == "." else shown(root), bases, _locator(root), absolute, pictures)
    archive = archive_beside(file)
    if archive is not None and not _any_there(rows, looked_in):
        return ArchiveTexts(archive, (), fields, beside=file, by_name=True)
    found = match(where, rows, looked_in)
    about = [os.path.abspath(file), stamp(file)]
    if listing is None:
        return FolderTexts(root, found, about)
    named = {name for (name, _), _ in found}
    unnamed = [name for name in listing.pictures if name not in named]
    notes = [unnamed_note(where, unnamed, len(listing.pictures), shown(listing.folder))] if unnamed else []
    others = sum(1 for name in listing.others if name not in named and root / name != file)
    return FolderTexts(root, found, about, others, notes)


def _with_own_texts(listing: _Listing, own: dict[str, str]) -> FolderTexts:
    folder = listing.folder
    found: list[tuple[Located, str | None]] = []
    about = []
    for name in listing.pictures:
        if name in own:
            file = folder / own[name]
            text = read_own_text(shown(file), read_lines(file))
            found.append(((name, stamp_of(folder / name)), text))
            about.append([own[name], stamp_of(file)])
    unnamed = [name for name in listing.pictures if name not in own]
    notes = [unnamed_note("the files .gt.txt", unnamed, len(listing.pictures), shown(folder))] if unnamed else []
    return FolderTexts(folder, found, about, len(listing.others) - len(set(own.values())), notes)


def _locator(root: Path) -> Callable[[str], Located | None]:
    def locate(name: str) -> Located | None:
        forms = (name,) if name.isascii() else (name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD")))
        for form in forms:
            path = os.path.join(root, form)
            if os.path.isfile(path):
                return form, stamp(path)
        return None

    return locate


def _any_there(rows: Sequence[Labelled], root: Root[Located]) -> bool:
    names = (name_below(base, row.path, root.absolute) for row in rows for base in root.bases)
    return any(name is not None and root.locate(name) is not None for name in names)
