"""A folder for other libraries: whole or not there, and never in the place of something that is not ours.

An export may be written anew over an older one of its kind. What somebody has put into it since, or changed (a model
card, a `.git`), would be lost with that: it is named, and nothing is written.
"""

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
from jumok.files import check_folder_place, disk_errors_named, sha256
from jumok.interop.growing import check_not_here, growing

MARK = ".jumok-export.json"  # by this an export is known


def check_out(out: Path, kind: str) -> None:
    """Refuse a place that holds something else, before any work is done for it."""
    check_folder_place(out, "--out")
    check_not_here(out, "--out")
    if not out.is_dir() or not any(out.iterdir()):
        return
    try:
        about = json.loads((out / MARK).read_text(encoding="utf-8"))
        told, written = str(about["kind"]), dict(about["files"])
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(
            f"--out {out}: there is something in it that is no export of jumok. Choose another --out"
        ) from None
    if told != kind:
        raise BadInput(f"--out {out}: it holds an export of another kind ({told}). Choose another --out")
    if foreign := [name for name, known in _files(out).items() if written.get(name) != known]:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise BadInput(
            f"--out {out}: {foreign[0]}{more} came there, or changed, after the export that is in it, and would be "
            "lost with it. Move it elsewhere, or choose another --out"
        )


def _files(folder: Path) -> dict[str, str]:
    """The sha256 of every file of an export."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name == MARK or (path.is_dir() and not path.is_symlink()):
            continue
        found[name] = sha256(path) if path.is_file() else "no file"
    return found


@contextlib.contextmanager
def new_folder(out: Path, kind: str) -> Iterator[Path]:
    """A fresh folder beside `out` to write into. It takes the place of `out` in the end; after an error nothing is left
    of it, and what was there before still is."""
    check_out(out, kind)
    place = out.resolve()  # where a link leads to: the link stays
    with (
        disk_errors_named("writing the export", out, "Free some space, or choose another --out."),
        growing(place, "exporting") as temporary,
        growing(place, "replaced") as before,
    ):
        temporary.mkdir()
        yield temporary
        about = {"format": 1, "kind": kind, "jumok": jumok.__version__, "files": _files(temporary)}
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
