"""A folder for other libraries: whole or not there, and never in the place of something that is not ours."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import jumok
from jumok.errors import BadInput
from jumok.files import check_folder_place, disk_errors_named, remove_folder

MARK = ".jumok-export.json"  # by this an export is known: it may be written anew


def check_out(out: Path) -> None:
    """Refuse a place that holds something else, before any work is done for it."""
    check_folder_place(out, "--out")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise BadInput(f"--out {out}: there is something in it that is no export of jumok. Choose another --out")


@contextlib.contextmanager
def new_folder(out: Path, kind: str) -> Iterator[Path]:
    """A fresh folder beside `out` to write into. It takes the place of `out` in the end; after an error nothing is left
    of it, and what was there before still is."""
    check_out(out)
    place = out.absolute()
    temporary = place.with_name(f".exporting-{place.name}-{os.getpid()}")
    before = place.with_name(f".replaced-{place.name}-{os.getpid()}")
    made = [parent for parent in place.parents if not parent.exists()]  # the nearest first
    remove_folder(temporary)
    with disk_errors_named("writing the export", out, "Free some space, or choose another --out."):
        try:
            temporary.mkdir(parents=True)
            yield temporary
            about = {"format": 1, "kind": kind, "jumok": jumok.__version__}
            (temporary / MARK).write_text(json.dumps(about) + "\n", encoding="utf-8")
            if place.is_dir():
                place.rename(before)
            temporary.rename(place)
        except BaseException:
            remove_folder(temporary)
            if before.is_dir() and not place.exists():
                before.rename(place)
            for parent in made:
                with contextlib.suppress(OSError):
                    parent.rmdir()
            raise
        finally:
            remove_folder(before)
