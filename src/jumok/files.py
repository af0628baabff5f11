"""Files that are either whole or not there, and the disk's errors in words."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from jumok.errors import BadInput, Failure


def replace_file(path: Path, content: bytes | str) -> None:
    """Write under a temporary name, flush to disk, rename: a reader never sees half a file."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    flush_folder(path.parent)


def check_file_place(path: Path, option: str = "--out") -> None:
    """Refuse a place where no file can be written, before any work is done for it."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise BadInput(f"{option} {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise BadInput(f"{option} {path}: it is a folder, name a file")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise BadInput(f"{option} {path}: no permission to write there. Choose another place")


def check_folder_place(path: Path, option: str = "--out") -> None:
    """Refuse a place where no folder can be, or be written to."""
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise BadInput(f"{option} {path}: {nearest} is a file, not a folder. Choose another {option}")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise BadInput(f"{option} {path}: {nearest} cannot be written to. Choose another {option}")


def flush_file(path: Path) -> None:
    """Make sure that a file's bytes are on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def flush_folder(path: Path) -> None:
    """Make a rename durable where the system can do that (folders cannot be opened on Windows)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def disk_errors_named(what: str, where: Path, advice: str) -> Iterator[None]:
    """Turn the system's disk errors into a sentence with the place and the way out."""
    try:
        yield
    except TimeoutError:  # a lock that somebody holds is no trouble of the disk
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Failure(f"no space left on the disk while {what} ({where}). {advice}") from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise Failure(f"no permission to write while {what} ({where}). {advice}") from None
        raise Failure(f"{error.strerror or error} while {what} ({where}). {advice}") from None


def remove_folder(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
