"""A folder for other libraries: whole or not there, and never in the place of something that is not ours."""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

import jumok
from jumok.errors import BadInput
from jumok.files import check_folder_place, disk_errors_named
from jumok.interop.growing import check_not_here, growing

MARK = ".jumok-export.json"  # by this an export is known: it may be written anew


def check_out(out: Path) -> None:
    """Refuse a place that holds something else, before any work is done for it."""
    check_folder_place(out, "--out")
    check_not_here(out, "--out")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise BadInput(f"--out {out}: there is something in it that is no export of jumok. Choose another --out")


@contextlib.contextmanager
def new_folder(out: Path, kind: str) -> Iterator[Path]:
    """A fresh folder beside `out` to write into. It takes the place of `out` in the end; after an error nothing is left
    of it, and what was there before still is."""
    check_out(out)
    place = out.resolve()  # where a link leads to: the link stays
    with (
        disk_errors_named("writing the export", out, "Free some space, or choose another --out."),
        growing(place, "exporting") as temporary,
        growing(place, "replaced") as before,
    ):
        temporary.mkdir()
        yield temporary
        about = {"format": 1, "kind": kind, "jumok": jumok.__version__}
        (temporary / MARK).write_text(json.dumps(about) + "\n", encoding="utf-8")
        if place.is_dir():
            place.rename(before)
        try:
            temporary.rename(place)
        except BaseException:
            if before.is_dir() and not place.exists():
                before.rename(place)
            raise


def save_weights(weights: dict[str, Tensor], file: Path) -> None:
    """As `transformers` reads them. What the disk says to it stays an error of the disk."""
    try:
        save_file(weights, file, metadata={"format": "pt"})
    except SafetensorError as error:  # it wraps the system's error and hides its number
        full = "os error 28" in str(error) or "No space" in str(error)
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from None
