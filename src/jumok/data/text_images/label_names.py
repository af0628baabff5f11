"""Which files are labels files, by their names: in a folder or an archive, or beside one.

In it a labels file is called `labels.txt`, `gt.txt` or `anything.gt.txt` (`.tsv`, `.csv` and `.jsonl` as well).
Beside a folder or an archive it has the same name as that, up to what tells that it has the labels: `iiit5k_test.zip`
and `iiit5k_test.gt.txt`, `words/` and `words.tsv`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from jumok.data.compression import without_compression
from jumok.data.images.archives import TAR_SUFFIXES
from jumok.data.images.raw import shown
from jumok.errors import BadInput

SUFFIXES = {".txt", ".tsv", ".csv", ".jsonl", ".ndjson"}
NAMES = {"labels", "label", "gt", "metadata"}
MARK = re.compile(r"[._-](gt|labels?)$", re.IGNORECASE)
ARCHIVES = (".zip", *TAR_SUFFIXES)


def is_list_name(name: str) -> bool:
    """Whether a file may have labels in it: a table, or lines of text."""
    return without_compression(name).suffix.lower() in SUFFIXES | {".json"}


def is_labels_name(name: str) -> bool:
    """Whether a file says by its name that it has the labels; `name` may be a path."""
    stem = os.path.basename(os.path.splitext(name)[0])
    return os.path.splitext(name)[1].lower() in SUFFIXES and (stem.lower() in NAMES or bool(MARK.search(stem)))


def stem_of(name: str) -> str:
    """What a labels file and the pictures that belong to it are both called."""
    for suffix in sorted(ARCHIVES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return MARK.sub("", without_compression(name).stem) if is_list_name(name) else name


def labels_beside(place: Path) -> Path | None:
    """The labels file that belongs to a folder or an archive, and lies beside it."""
    found = [name for name in _beside(place) if is_list_name(name) and (place.parent / name).is_file()]
    return place.parent / one_of(found, shown(place.parent)) if found else None


def archive_beside(labels: Path) -> Path | None:
    """The archive that a labels file belongs to."""
    found = [name for name in _beside(labels) if name.lower().endswith(ARCHIVES) and (labels.parent / name).is_file()]
    return labels.parent / one_of(found, shown(labels.parent)) if found else None


def uppermost(names: Iterable[str]) -> list[str]:
    """Those that lie in the fewest folders."""
    found = sorted(names, key=lambda name: (name.count("/"), name))
    return [name for name in found if name.count("/") == found[0].count("/")]


def one_of(names: list[str], where: str) -> str:
    """The one file that is meant; which of several it is, cannot be known."""
    if len(names) > 1:
        listed = ", ".join(shown(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
        raise BadInput(
            f"{where}: there are {len(names)} files that may be meant: {listed}. Name one: {where}/{names[0]}"
        )
    return names[0]


def _beside(place: Path) -> list[str]:
    stem = stem_of(place.name)
    try:
        names = os.listdir(place.parent)
    except OSError:
        return []
    return sorted(name for name in names if name != place.name and stem and stem_of(name) == stem)
