"""Pictures with their texts in a zip or tar: the labels file is inside, or beside it under the same name.

Nothing is unpacked to the disk. The pictures come in the order of the archive, because a tar can only be read from its
beginning to its end. Its labels may stand behind its pictures, so it is gone through once to list it (when the first
picture is asked for; a zip, which has a table of contents, when it is opened), and again for the pictures.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from jumok.data.images.archives import archive_kind, members, under
from jumok.data.images.folders import is_hidden
from jumok.data.images.raw import Member, RawImage, is_image_name, key_of, shown, stamp
from jumok.data.readers import read_lines, text_lines
from jumok.data.text_images.label_files import read_labels
from jumok.data.text_images.label_names import is_labels_name, is_list_name, one_of, uppermost
from jumok.data.text_images.matching import Root, composed, match
from jumok.data.text_images.notes import no_labels_note, unnamed_note
from jumok.data.text_images.own_texts import own_texts, read_own_text
from jumok.errors import BadInput
from jumok.recipe import FieldsSection

VERSION = 1  # of how texts are found: part of the key
MOST_LABELS = 1 << 30  # bytes of all labels files of an archive, which are held together


@dataclass
class _Listing:
    """What is in an archive, or in the part of it that was named."""

    names: list[str] = field(default_factory=list)
    labels: dict[str, bytes] = field(default_factory=dict)  # what files say that are labels by their name

    @cached_property
    def pictures(self) -> list[str]:
        return [name for name in self.names if is_image_name(name)]

    @property
    def top(self) -> str:
        """The one folder around all files, or "" """
        folders = {name.split("/", 1)[0] if "/" in name else "" for name in self.names}
        return folders.pop() if len(folders) == 1 else ""


@dataclass(frozen=True)
class _Plan:
    """Which files are given out, and how often each; what is said about the others."""

    wanted: dict[str, tuple[str | None, int]]
    passed_over: int
    notes: list[str]


class ArchiveTexts:
    """The pictures of an archive with their texts. `part`: the folder, picture or labels file in it that was named;
    `beside`: the labels file that lies beside the archive, which counts where there is none in it, or `by_name` if
    it is the one that was named. Not `labelled`: for reading, all pictures are given out, whatever labels say."""

    def __init__(
        self,
        path: Path,
        part: tuple[str, ...],
        fields: FieldsSection,
        beside: Path | None,
        by_name: bool = False,
        labelled: bool = True,
    ) -> None:
        self._path, self._fields, self._beside, self._by_name = path, fields, beside, by_name
        self._is_labelled = labelled
        self._chosen = "/".join(part) if part and is_list_name(part[-1]) else None  # paths may then lead anywhere in it
        self._part = () if self._chosen else part
        self.where = shown("/".join((str(path), *self._part)))
        labels = None if beside is None else [os.path.abspath(beside), stamp(beside)]
        said = [fields.text, fields.label, by_name, *["pictures alone"] * (not labelled)]
        self.key = key_of("text-archive", [VERSION, os.path.abspath(path), stamp(path), list(part), labels, said])
        if archive_kind(path) == "zip":
            _ = self._plan

    def __iter__(self) -> Iterator[RawImage]:
        wanted = self._plan.wanted
        for name, member in self._files():
            text, times = wanted.get(name, (None, 0))
            if times:
                image = RawImage(self._told(name) if member.parts else self.where, text, member.read())
                yield from [image] * times

    @property
    def passed_over(self) -> int:
        """Files that are neither pictures nor labels."""
        return self._plan.passed_over

    @property
    def notes(self) -> list[str]:
        return self._plan.notes

    def _files(self) -> Iterator[tuple[str, Member]]:
        for member in under(members(self._path), self._part, shown(self._path)):
            if not member.is_folder and not any(map(is_hidden, member.parts)):
                yield "/".join(member.parts or self._part[-1:]), member

    @cached_property
    def _plan(self) -> _Plan:
        listing = _Listing()
        held = 0
        for name, member in self._files():
            listing.names.append(name)
            if not self._is_labelled:
                continue
            if name == self._chosen or (self._chosen is None and not self._by_name and is_labels_name(name)):
                held += member.size
                if held > MOST_LABELS:
                    raise BadInput(
                        f"{self._told(name)}: with it the labels files of the archive have {held:,} bytes, more than "
                        f"can be held together ({MOST_LABELS:,}). Unpack it, or name a folder in it: {self.where}/…"
                    )
                listing.labels[name] = member.read()
        if not self._is_labelled:
            return self._unlabelled(listing)
        own = own_texts(listing.pictures, listing.labels) if self._chosen is None else {}
        labels = uppermost(set(listing.labels) - set(own.values()))
        if self._chosen is not None and not labels:
            for _ in under(members(self._path), tuple(self._chosen.split("/")), shown(self._path)):
                pass  # it is not there: told with what is near
        if labels:
            return self._labelled(listing, one_of(labels, self.where))
        if own:
            texts = {name: read_own_text(self._told(file), self._lines(listing, file)) for name, file in own.items()}
            wanted: dict[str, tuple[str | None, int]] = {name: (text, 1) for name, text in texts.items()}
            return self._planned(listing, wanted, "the files .gt.txt", set(own.values()))
        if self._beside is not None:
            return self._labelled(listing, None)
        return self._unlabelled(listing)

    def _labelled(self, listing: _Listing, inside: str | None) -> _Plan:
        """By a labels file in the archive, or by the one beside it."""
        if inside is None:
            assert self._beside is not None, "labels are inside or beside"
            told = shown(self._beside)
            lines: Iterator[str] = read_lines(self._beside)
            bases = ["", listing.top]
        else:
            told, lines = self._told(inside), self._lines(listing, inside)
            bases = [os.path.dirname(inside), "", listing.top]
        rows = list(read_labels(told, lines, self._fields))
        there = {composed(name): name for name in listing.names}
        found = match(
            told, rows, Root(self.where, bases, lambda name: there.get(composed(name)), None, listing.pictures)
        )
        times = Counter(name for name, _ in found)
        wanted = {name: (text, times[name]) for name, text in found}
        return self._planned(listing, wanted, told, {inside})

    def _planned(
        self,
        listing: _Listing,
        wanted: dict[str, tuple[str | None, int]],
        told: str,
        labels: set[str | None] | set[str],
    ) -> _Plan:
        unnamed = [name for name in listing.pictures if name not in wanted]
        notes = [unnamed_note(told, unnamed, len(listing.pictures), self.where)] if unnamed else []
        others = [
            name for name in listing.names if not is_image_name(name) and name not in wanted and name not in labels
        ]
        return _Plan(wanted, sum(not (self._by_name and is_labels_name(name)) for name in others), notes)

    def _unlabelled(self, listing: _Listing) -> _Plan:
        """Pictures for reading."""
        pictures = listing.names if self._is_one_picture(listing) else listing.pictures
        if not pictures:
            databases = any(name.endswith("data.mdb") for name in listing.names)
            advice = (
                "Unpack it: an LMDB cannot be read inside of an archive"
                if databases
                else "They are known by .jpg, .png, …"
            )
            nor = ", and no labels file" * self._is_labelled
            raise BadInput(f"{self.where}: no image in it{nor}. {advice}")
        lists = [name for name in listing.names if is_list_name(name) and "/" not in name]
        notes = [no_labels_note(self.where, lists)] if lists and self._is_labelled else []
        return _Plan(dict.fromkeys(pictures, (None, 1)), len(listing.names) - len(pictures), notes)

    def _is_one_picture(self, listing: _Listing) -> bool:
        """Whether the part that was named is a file."""
        return bool(self._part) and listing.names == [self._part[-1]] and is_image_name(self._part[-1])

    def _told(self, name: str) -> str:
        return shown(f"{self.where}/{name}")

    def _lines(self, listing: _Listing, name: str) -> Iterator[str]:
        return text_lines(io.BytesIO(listing.labels[name]), self._told(name))
