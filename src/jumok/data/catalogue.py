"""Public corpora by name: where they are, their SHA-256, their licence; fetched and verified through `pooch`.

A file gets its name only after its hash was verified, so an interrupted download leaves nothing that looks whole, and
calling again fetches only what is missing.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jumok.errors import BadInput, Failure, did_you_mean

MIRROR = "JUMOK_MIRROR"  # environment variable: a base address that has <folder>/<file> for every set
TIMEOUT = 30.0  # seconds without a byte

Report = Callable[[str, int, bool], None]  # file name, bytes, whether it was there already


@dataclass(frozen=True)
class RemoteFile:
    name: str
    url: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """A parallel corpus of the catalogue, in one direction."""

    name: str
    title: str
    folder: str
    languages: tuple[str, str]
    lines: dict[str, int]
    licence: str
    licence_note: str
    homepage: str
    files: dict[str, tuple[RemoteFile, RemoteFile]]  # split -> source, target

    @property
    def size(self) -> int:
        return sum(file.size for file in self.remote_files())

    def remote_files(self) -> Iterator[RemoteFile]:
        for pair in self.files.values():
            yield from pair

    def reversed(self) -> Dataset:
        """The same files, the other way round: multi30k-de-en."""
        values = dict(vars(self))
        source, target = self.languages
        values["name"] = f"{self.name.removesuffix(f'-{source}-{target}')}-{target}-{source}"
        values["languages"] = (target, source)
        values["files"] = {split: (right, left) for split, (left, right) in self.files.items()}
        return Dataset(**values)


def datasets(mirror: str | None = None) -> list[Dataset]:
    """All sets. `mirror` (or the environment variable JUMOK_MIRROR) replaces the addresses of the catalogue."""
    mirror = mirror or os.environ.get(MIRROR) or None
    if mirror is not None and not mirror.startswith(("http://", "https://")):
        raise BadInput(f'{MIRROR}: "{mirror}" is no address; it starts with http:// or https://')
    return [_dataset(group, pair, mirror) for group in _table() for pair in group["pairs"]]


def find(name: str, mirror: str | None = None) -> Dataset:
    """A set by its name; either direction of a language pair may be named."""
    known = {dataset.name: dataset for dataset in datasets(mirror)}
    known |= {turned.name: turned for turned in [dataset.reversed() for dataset in known.values()]}
    if name not in known:
        raise BadInput(f'no data set "{name}" in the catalogue.{did_you_mean(name, known)} See: jumok data list')
    return known[name]


def get(
    dataset: Dataset, folder: Path, report: Report = lambda name, size, reused: None
) -> dict[str, tuple[Path, Path]]:
    """Fetch what is missing into `folder`; the verified paths of each split's source and target."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise BadInput(f"{folder}: is a file; name a folder to put the data in") from None
    except OSError as error:
        raise BadInput(f"{folder}: cannot be made: {error.strerror or error}") from None
    for file in dataset.remote_files():
        reused = _verified(file, folder / file.name)
        if not reused:
            _fetch(file, folder)
        report(file.name, file.size, reused)
    return {split: (folder / left.name, folder / right.name) for split, (left, right) in dataset.files.items()}


# ---------------------------------------------------------------- the table


@cache
def _table() -> list[dict[str, Any]]:
    text = (resources.files("jumok") / "data" / "catalogue.json").read_text(encoding="utf-8")
    table: list[dict[str, Any]] = json.loads(text)
    return table


def _dataset(group: dict[str, Any], pair: dict[str, Any], mirror: str | None) -> Dataset:
    base = group["base"] if mirror is None else f"{mirror.rstrip('/')}/{group['folder']}"

    def remote(pattern: str, language: str) -> RemoteFile:
        name = pattern.format(language=language)
        entry = group["files"][name]
        return RemoteFile(name, f"{base}/{name}", entry["bytes"], entry["sha256"])

    source, target = pair["languages"]
    return Dataset(
        name=pair["name"],
        title=group["title"],
        folder=group["folder"],
        languages=(source, target),
        lines=pair["lines"],
        licence=group["licence"],
        licence_note=group["licence_note"],
        homepage=group["homepage"],
        files={split: (remote(name, source), remote(name, target)) for split, name in pair["splits"].items()},
    )


# ---------------------------------------------------------------- fetching


def _verified(file: RemoteFile, path: Path) -> bool:
    """Whether the file is there already. Another file of that name is the user's, and is not written over."""
    if not path.exists():
        return False
    actual = _hash(path)
    if actual != file.sha256:
        raise BadInput(
            f"{path}: there is already a file of this name, and it is not the catalogue's\n"
            f"  SHA-256 expected {file.sha256}\n  SHA-256 found    {actual}\n"
            "Move it away, or name another folder with --to."
        )
    return True


def _hash(path: Path) -> str:
    import pooch

    try:
        return str(pooch.file_hash(str(path), alg="sha256"))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None


def _fetch(file: RemoteFile, folder: Path) -> None:
    import pooch
    import requests

    pooch.get_logger().setLevel(logging.WARNING)
    try:
        pooch.retrieve(file.url, file.sha256, fname=file.name, path=str(folder), downloader=_download(file))
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else "an error"
        moved = " The file is no longer (or not yet) there." if status == 404 else " Try again later."
        raise Failure(f"{file.url}: the server answered {status}.{moved} A mirror can be named in {MIRROR}") from None
    except (requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError):
        raise Failure(_interrupted(file)) from None
    except requests.Timeout:
        raise Failure(f"{file.url}: no answer for {TIMEOUT:g} seconds. Try again; whole files are kept") from None
    except requests.ConnectionError as error:
        if "IncompleteRead" in str(error) or "Connection broken" in str(error):
            raise Failure(_interrupted(file)) from None
        raise Failure(
            f"{file.url}: the server cannot be reached. Is there a network? A mirror can be named in {MIRROR}"
        ) from None
    except requests.RequestException as error:
        raise Failure(f"{file.url}: {error}") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Failure(f"{folder}: the disk is full; {file.name} needs {file.size:,} bytes") from None
        raise Failure(f"{folder / file.name}: cannot be written: {error.strerror or error}") from None


def _interrupted(file: RemoteFile) -> str:
    return f"{file.url}: the connection broke before the end. Call again: whole files are kept, this one starts anew"


def _download(file: RemoteFile) -> Callable[[str, Any, Any], None]:
    """Fetch to pooch's temporary file, and say both hashes when it is not the right one."""
    import pooch

    # Without "identity" a server may compress once more, or the client may unpack the .gz: other bytes, other hash.
    fetch = pooch.HTTPDownloader(timeout=TIMEOUT, headers={"Accept-Encoding": "identity"})

    def download(url: str, output: Any, owner: Any) -> None:
        fetch(url, output, owner)
        actual = _hash(Path(output))
        if actual != file.sha256:
            raise Failure(
                f"{url}: what came is not the file of the catalogue\n"
                f"  SHA-256 expected {file.sha256}\n  SHA-256 received {actual}\n"
                "It was removed. Try again; if it stays so, the set was changed at its source."
            )

    return download
