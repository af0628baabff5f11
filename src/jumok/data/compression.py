"""Files as lines of bytes: plain, `.gz`, `.xz` or `.zst`, streamed, with errors that say which file and about where.

A line ends at `\\n` and nowhere else. `str.splitlines` and text-mode universal newlines also cut at U+2028, U+0085, a
form feed or a lone `\\r`; two parallel files would then go out of step without anyone noticing.
"""

from __future__ import annotations

import difflib
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import zstandard

from jumok.errors import BadInput, Failure

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

SUFFIXES = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
# None of these can begin a UTF-8 text, so a compressed file is known even without its suffix (or on standard input).
MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
BLOCK = 1 << 17

STANDARD_INPUT = "-"


def without_compression(path: str | Path) -> Path:
    """`train.de.gz` is a `train.de`."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


def byte_lines(path: str | Path, start: int = 0) -> Iterator[bytes]:
    """The lines of a file as they are, each with its `\\n`. `-` is standard input.

    `start`: the byte to begin at, in a file that is not compressed.
    """
    lines = 0
    try:
        with open_bytes(path) as stream:
            if start:
                stream.seek(start)
            for raw in stream:
                yield raw
                lines += 1
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zstandard.ZstdError) as error:
        where = f"after line {lines}" if lines else "at its start"
        reason = str(error).rstrip(".") or type(error).__name__
        raise BadInput(
            f"{path}: damaged or cut off {where} ({reason}). Download or compress the file again; "
            "if it is not compressed, take the suffix off its name."
        ) from None
    except OSError as error:
        raise Failure(f"{path}: could not be read on after line {lines}: {error.strerror or error}") from None


def _standard_input() -> io.BufferedReader:
    """A reader of our own: a thread that waits in `sys.stdin` would keep the interpreter from ending."""
    if sys.stdin is None:
        raise BadInput("standard input is closed: pipe text into the command, or name a file")
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # a test or a notebook has put something else in its place
        return cast(io.BufferedReader, sys.stdin.buffer)


def open_bytes(path: str | Path) -> IO[bytes]:
    """The file's content as bytes, decompressed."""
    if str(path) == STANDARD_INPUT:
        raw = _standard_input()
        return _decompressed(raw, _kind(raw), owned=False)
    raw = open_file(path)
    try:
        return _decompressed(raw, SUFFIXES.get(Path(path).suffix.lower()) or _kind(raw), owned=True)
    except BaseException:
        raw.close()
        raise


def open_file(path: str | Path) -> io.BufferedReader:
    """Open for reading as it is on disk; what can be wrong with a path is told here, once."""
    place = Path(path)
    try:
        if place.is_dir():
            raise BadInput(f"{path}: is a folder; name a file in it")
        return cast(io.BufferedReader, open(place, "rb", buffering=BLOCK))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file.{_near(place)}") from None
    except PermissionError:
        raise BadInput(f"{path}: no permission to read it") from None
    except (OSError, ValueError) as error:  # a name that is too long, or has a NUL byte in it
        raise BadInput(f"{path}: cannot be opened: {getattr(error, 'strerror', None) or error}") from None


def compression(path: str | Path) -> str:
    """ "gzip", "xz", "zstd" or "none"."""
    with open_file(path) as raw:
        return SUFFIXES.get(Path(path).suffix.lower()) or _kind(raw) or "none"


def _kind(raw: io.BufferedReader) -> str | None:
    head = raw.peek(8)
    return next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), None)


def _decompressed(raw: io.BufferedReader, kind: str | None, owned: bool) -> IO[bytes]:
    if kind is None:
        return raw if owned else cast(IO[bytes], _Borrowed(raw))
    inner: io.RawIOBase | gzip.GzipFile | lzma.LZMAFile
    if kind == "gzip":
        inner = gzip.GzipFile(fileobj=raw, mode="rb")
    elif kind == "xz":
        inner = lzma.LZMAFile(raw)  # noqa: SIM115 - closed by the chain
    else:
        inner = _Zstandard(raw)
    return cast(IO[bytes], _Chain(cast(io.RawIOBase, inner), raw if owned else None))


class _Chain(io.BufferedReader):
    """A buffered decompressor that also closes the file under it."""

    def __init__(self, inner: io.RawIOBase, under: io.BufferedReader | None) -> None:
        super().__init__(inner, BLOCK)
        self._under = under

    def close(self) -> None:
        try:
            super().close()
        finally:
            if self._under is not None:
                self._under.close()


class _Borrowed:
    """Lines of a stream that is not ours to close."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream

    def __enter__(self) -> _Borrowed:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)


class _Zstandard(io.RawIOBase):
    """Zstandard's own reader takes a cut-off file for a whole one; this one notices. Frames may follow each other."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self._decoder: zstandard.ZstdDecompressionObj | None = None
        self._pending = b""  # compressed bytes after the end of a frame
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self._ready:
            chunk = self._pending or self._raw.read(BLOCK)
            self._pending = b""
            if not chunk:
                if self._decoder is not None:
                    raise EOFError("the last frame is not complete")
                return 0
            if self._decoder is None:
                self._decoder = zstandard.ZstdDecompressor().decompressobj()
            self._ready = memoryview(self._decoder.decompress(chunk))
            if self._decoder.eof:
                self._pending, self._decoder = self._decoder.unused_data, None
        size = min(len(view), len(self._ready))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


def _near(place: Path) -> str:
    """A file of nearly that name in the same folder, perhaps the one that was meant."""
    try:
        names = [entry.name for entry in place.parent.iterdir()] if place.parent.is_dir() else []
    except OSError:
        names = []
    if not place.parent.is_dir():
        return f" There is no folder {place.parent}."
    near = difflib.get_close_matches(place.name, names, n=1, cutoff=0.7)
    return f' Did you mean "{place.parent / near[0]}"?' if near else ""
