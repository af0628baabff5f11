"""Pictures of words with their texts, from what people have, undecoded. What a path is, is found out here:

- a folder with a labels file in it or beside it, or with a `.gt.txt` for each picture; a labels file (`in_folders.py`)
- a zip or tar with a labels file in it or beside it, or a part of one: `words.zip/test` (`in_archives.py`)
- an LMDB, or a folder of them (`lmdb_files.py`)
- pictures without labels, for reading

It is an `ImageSource` as those of `data/images`, whose labels are the texts: None where they are not told, and "" for a
picture without text. Files are written in these ways by `writing.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from jumok.data.compression import open_file
from jumok.data.images.archives import archive_kind, beginning
from jumok.data.images.csv_list import Unasked
from jumok.data.images.picture import is_picture
from jumok.data.images.raw import is_image_name
from jumok.data.images.sources import CountingSource, OpenedImages, existing
from jumok.data.text_images.in_archives import ArchiveTexts
from jumok.data.text_images.in_folders import one_picture, open_labels_file, open_text_folder
from jumok.data.text_images.label_names import is_list_name, labels_beside
from jumok.data.text_images.lmdb_files import DATA, LmdbTexts
from jumok.errors import BadInput
from jumok.recipe import FieldsSection


class TextSource(CountingSource, Protocol):
    @property
    def notes(self) -> Sequence[str]: ...


class OpenedTextImages(OpenedImages):
    """The pictures of several paths, joined."""

    def __init__(self, sources: Sequence[TextSource]) -> None:
        super().__init__(sources)
        self._noted = sources

    def notes(self) -> list[str]:
        """What is to be said once: pictures without a label that are passed over, and the like."""
        return [note for source in self._noted for note in source.notes]


def open_text_images(paths: Sequence[str | Path], fields: FieldsSection | None = None) -> OpenedTextImages:
    """Find out what the paths are. Labels are read and their pictures looked for; no picture is decoded."""
    if not paths:
        raise BadInput("no pictures were given: name a folder or zip with a labels file, an LMDB, or a picture")
    return OpenedTextImages([_open(Path(path), fields or Unasked()) for path in paths])


def _open(path: Path, fields: FieldsSection) -> TextSource:
    place, part = existing(path)
    if place.is_dir():
        if part:
            open_file(path).close()  # it is not there: told as of any other file
        return open_text_folder(place, fields)
    kind = None if is_image_name(place.name) else archive_kind(place)
    if kind is not None:
        return ArchiveTexts(place, part, fields, None if part else labels_beside(place))
    if part:
        raise BadInput(f"{path}: {place} is a file and no archive, so there is nothing in it. Name the file itself")
    if place.name == DATA:
        return LmdbTexts(place.parent)
    if is_image_name(place.name):
        return one_picture(place)
    if is_list_name(place.name):
        return open_labels_file(place, fields)
    head = beginning(place)
    if is_picture(head):
        return one_picture(place)
    if not head:
        raise BadInput(f"{path}: the file is empty")
    raise BadInput(
        f"{path}: neither an image, an archive (tar, zip), an LMDB ({DATA}) nor a labels file (txt, tsv, csv, jsonl)"
    )
