"""What is in a tar (also compressed) or a zip, one file after the other, without unpacking anything to the disk.

A tar is read from its beginning to its end; the files of a zip are found through its table of contents. Names in an
archive are only names, and nothing is written anywhere; still, one with names that lead out of it (`../x.png`,
`/etc/x.png`) was made to harm whoever unpacks it, and is refused. An archive that was cut off or damaged is refused,
not read up to there: Python's `tarfile` takes a broken header in the middle for the end.
"""

from __future__ import annotations

import bz2
import contextlib
import lzma
import posixpath
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import zstandard

from jumok.data.compression import open_bytes, open_file
from jumok.data.images.raw import Member, shown
from jumok.errors import BadInput, did_you_mean

MOST_BYTES = 1 << 30  # of one file in an archive; what claims to be larger is no picture
TAR_SUFFIXES = (".tar", ".tgz", ".txz", ".tbz", ".tbz2", ".tzst", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst")
BLOCK = 1 << 17
DAMAGE = (
    EOFError, OSError, ValueError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError, zstandard.ZstdError,
    tarfile.TarError, zipfile.BadZipFile,
)  # fmt: skip
LEADS_OUT = re.compile(r"^[/\\]|^[A-Za-z]:[/\\]|(?:^|[/\\])\.\.(?:$|[/\\])")
MOST_NAMES = 1000  # that a message chooses the nearest from


def archive_kind(path: str | Path) -> str | None:
    """ "tar" or "zip", by what is in the file (by its name only for a tar of the old kind, which has no mark)."""
    with open_file(path) as raw:
        if raw.peek(4)[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            return "zip"
    if str(path).lower().endswith(TAR_SUFFIXES):
        return "tar"
    return "tar" if beginning(path)[257:262] == b"ustar" else None


def beginning(path: str | Path) -> bytes:
    """The first bytes of a file, decompressed."""
    with _told(path, "at its start"), _stream(path) as stream:
        return stream.read(512)


def members(path: str | Path) -> Iterator[Member]:
    """All files and folders of an archive in its order."""
    return _zip_members(path) if archive_kind(path) == "zip" else _tar_members(path)


def under(found: Iterator[Member], part: tuple[str, ...], where: str) -> Iterator[Member]:
    """What lies below a folder of the archive, named from there; or the one file of that name, then without parts."""
    if not part:
        yield from found
        return
    is_there = False
    beside: set[str] = set()
    depth = len(part)
    for member in found:
        parts = member.parts
        if parts[:depth] == part:
            is_there = True
            if len(parts) > depth or not member.is_folder:
                yield member._replace(parts=parts[depth:])
        elif not is_there and parts[: depth - 1] == part[:-1] and len(parts) >= depth and len(beside) < MOST_NAMES:
            beside.add(parts[depth - 1])
    if not is_there:
        raise BadInput(
            f'{where}: no "{shown("/".join(part))}" in the archive.{did_you_mean(part[-1], map(shown, beside))}'
        )


# ---------------------------------------------------------------- tar


class _Strict(tarfile.TarInfo):
    """A header that is neither whole nor the mark of the end is an error, wherever it stands."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> _Strict:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # two blocks of zeros: the end as it should be
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"a header of a file in it is missing or broken: {error}") from None


class _Forward:
    """A stream that only goes forward, for a reader that asks where it is."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._place = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._place += len(data)
        return data

    def tell(self) -> int:
        return self._place

    def seek(self, place: int, whence: int = 0) -> int:
        if whence or place < self._place:
            raise tarfile.ReadError("its headers point backwards")
        while self._place < place and self.read(min(BLOCK, place - self._place)):
            pass
        return self._place


def _tar_members(path: str | Path) -> Iterator[Member]:
    last = ""
    with contextlib.ExitStack() as stack:
        with _told(path, "at its start"):
            stream = stack.enter_context(_stream(path))
            if not _is_plain_tar(path):  # else what is not wanted can be skipped
                stream = cast(IO[bytes], _Forward(stream))
            archive = stack.enter_context(tarfile.open(fileobj=stream, mode="r:", tarinfo=_Strict))
        while True:
            with _told(path, f"after {last}" if last else "at its start"):
                header = archive.next()
                while header is None and stream.read(BLOCK):  # to where a compressed file has its checksum
                    pass
            if header is None:
                return
            archive.members.clear()  # type: ignore[attr-defined]  # it would keep all of them
            last = shown(header.name)
            parts = _parts(header.name, path)
            if not parts:
                continue

            def read(header: tarfile.TarInfo = header, name: str = last) -> bytes:
                where = f"{path}/{name}"
                if not header.isreg() or header.issparse():
                    raise BadInput(
                        f"{where}: a link, which cannot be followed in a stream. Pack the archive with the files "
                        "themselves: tar --dereference --hard-dereference"
                    )
                _check_size(where, header.size)
                with _told(path, f"in {name}"):
                    stream.seek(header.offset_data)
                    data = stream.read(header.size)
                    if len(data) < header.size:
                        raise EOFError("the file ends in the middle of it")
                    return data

            yield Member(parts, header.isdir(), header.size, read)


def _is_plain_tar(path: str | Path) -> bool:
    with open_file(path) as raw:
        return raw.read(512)[257:262] == b"ustar"


def _stream(path: str | Path) -> IO[bytes]:
    with open_file(path) as raw:
        is_bzip = raw.peek(3)[:3] == b"BZh"
    return cast(IO[bytes], bz2.BZ2File(path)) if is_bzip else open_bytes(path)


# ---------------------------------------------------------------- zip


def _zip_members(path: str | Path) -> Iterator[Member]:
    with contextlib.ExitStack() as stack:
        with _told(path, "at its end, where the table of contents is"):
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(open_file(path))))
        for entry in archive.infolist():
            name = _zip_name(entry)
            parts = _parts(name, path)
            if not parts:
                continue

            def read(entry: zipfile.ZipInfo = entry, name: str = shown(name)) -> bytes:
                where = f"{path}/{name}"
                _check_size(where, entry.file_size)
                if entry.flag_bits & 1:
                    raise BadInput(f"{where}: locked with a password. Unpack the archive and pack it without one")
                with _told(path, f"in {name}"):
                    return archive.read(entry)

            yield Member(parts, entry.is_dir(), entry.file_size, read)


def _zip_name(entry: zipfile.ZipInfo) -> str:
    """Archives of a Mac are in UTF-8 without saying so, those of a Korean Windows in its code page (949); some of
    Windows have the wrong strokes."""
    name = entry.filename
    if not entry.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):  # where the name comes from a field of its own, it is right
            stored = name.encode("cp437")
            try:
                name = stored.decode("utf-8")
            except UnicodeError:
                name = _korean(stored) or name
    return name if "/" in name else name.replace("\\", "/")


def _korean(stored: bytes) -> str | None:
    """The name, if it is one of Korean Windows. "Müller" would be one too, by letters of the code page that hardly
    anybody writes; so there must be one of the 2350 syllables of KS X 1001, whose bytes no name of western letters has.
    """
    try:
        name = stored.decode("cp949")
    except UnicodeError:
        return None
    is_korean = any("가" <= letter <= "힣" and min(letter.encode("cp949")) > 0xA0 for letter in name)
    return name if is_korean else None


# ---------------------------------------------------------------- both


def _parts(name: str, path: str | Path) -> tuple[str, ...]:
    if LEADS_OUT.search(name):
        raise BadInput(
            f'{path}: its file "{shown(name)}" would lie outside of the folder that it is unpacked to. Such an archive '
            "is not read: pack it again, from within the folder"
        )
    return tuple(part for part in posixpath.normpath("/" + name).split("/") if part)


def _check_size(where: str, size: int) -> None:
    if size > MOST_BYTES:
        raise BadInput(f"{where}: {size:,} bytes, more than a picture may have here ({MOST_BYTES:,})")


@contextlib.contextmanager
def _told(path: str | Path, where: str) -> Iterator[None]:
    """Whatever reading an archive raises, said in words."""
    try:
        yield
    except BadInput:
        raise
    except DAMAGE as error:
        reason = str(error).strip().rstrip(".") or type(error).__name__
        raise BadInput(f"{path}: damaged or cut off {where} ({reason}). Download or pack it again") from None
