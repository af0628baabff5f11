"""Where the sentences come from: a file, standard input, or the command itself; gathered into chunks.

A chunk is what is translated together, sorted by length. The chunks of a file always begin at the same sentences, so
that a translation that was interrupted goes on exactly as it would have.
"""

from __future__ import annotations

import hashlib
import queue
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path

from jumok.data.compression import STANDARD_INPUT, byte_lines, compression, open_file
from jumok.data.readers import read_lines
from jumok.errors import BadInput
from jumok.tasks.wishes import Sentence


@dataclass(frozen=True)
class Chunk:
    first: int  # how many sentences came before
    sentences: list[Sentence]
    size: int  # bytes of their text


@dataclass(frozen=True)
class Survey:
    """What a file holds, seen once before the work begins."""

    lines: int
    size: int  # bytes of text, after decompression
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Survey:
        digest, lines, size = hashlib.sha256(), 0, 0
        for raw in byte_lines(path):
            digest.update(raw)
            lines += 1
            size += len(raw)
        return cls(lines, size, digest.hexdigest())


class Source:
    """Sentences, each with what is asked of it alone (from files with as many lines)."""

    def __init__(
        self,
        sentences: Sequence[str] = (),
        path: Path | None = None,
        prefixes: Path | None = None,
        phrases: Path | None = None,
    ) -> None:
        """Without sentences and without a path, standard input is read."""
        if sentences and path is not None:
            raise BadInput("give sentences or --input, not both")
        self.sentences = list(sentences)
        self.path = None if path is None or str(path) == STANDARD_INPUT else path
        self.prefixes, self.phrases = prefixes, phrases
        for file in (self.path, prefixes, phrases):
            if file is not None:
                open_file(file).close()  # what cannot be read is said before anything is written
        if self.is_file:
            self._pair_up()

    @property
    def is_file(self) -> bool:
        """A file that can be read again (a pipe can not)."""
        return not self.sentences and self.path is not None and self.path.is_file()

    @property
    def size(self) -> int | None:
        """Bytes of text, where that is known beforehand."""
        if not self.is_file:
            return None
        assert self.path is not None
        return self.path.stat().st_size if compression(self.path) == "none" else None

    def _pair_up(self) -> None:
        """Files that do not fit are refused before the long work of translating."""
        sides = [file for file in (self.prefixes, self.phrases) if file is not None and file.is_file()]
        if sides and self.path is not None:
            count = sum(1 for _ in byte_lines(self.path))
            for file in sides:
                if (found := sum(1 for _ in byte_lines(file))) != count:
                    raise BadInput(f"{file} has {found} lines and {self.path} has {count}: they must pair up")

    def chunks(self, size: int) -> Iterator[Chunk]:
        """From a file, full ones; from standard input, whatever has arrived, so that a person gets an answer."""
        if self.sentences:
            gathered: Iterator[list[str]] = iter([self.sentences])
        else:
            gathered = _full(read_lines(self.path), size) if self.path is not None else _arrived(size)
        asked, first = self._asked(), 0
        for lines in gathered:
            wanted = list(islice(asked, len(lines)))
            if len(wanted) < len(lines):
                raise BadInput(f"{self._beside}: it has {first + len(wanted)} lines, but there are more sentences")
            sentences = [Sentence(line, prefix, require) for line, (prefix, require) in zip(lines, wanted, strict=True)]
            yield Chunk(first, sentences, sum(len(line.encode(errors="replace")) + 1 for line in lines))
            first += len(lines)
        if self._beside and next(asked, None) is not None:
            raise BadInput(f"{self._beside}: it has more lines than the {first} sentences")

    @property
    def _beside(self) -> str:
        return " and ".join(str(file) for file in (self.prefixes, self.phrases) if file is not None)

    def _asked(self) -> Iterator[tuple[str | None, tuple[str, ...]]]:
        """For each sentence how it begins and what it holds; an empty line asks for nothing."""
        prefixes = read_lines(self.prefixes) if self.prefixes is not None else repeat("")
        phrases = read_lines(self.phrases) if self.phrases is not None else repeat("")
        for prefix, required in zip(prefixes, phrases, strict=False):
            yield prefix.strip() or None, tuple(text for text in required.split("\t") if text.strip())


def _full(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    chunk: list[str] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _arrived(size: int) -> Iterator[list[str]]:
    """A thread reads ahead while the model works; a chunk is what is there, at least one line, at most `size`."""
    if sys.stdin is not None and sys.stdin.isatty():
        print("one sentence a line, please; Ctrl-D ends", file=sys.stderr)
    lines: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=4 * size)

    def read() -> None:
        try:
            for line in read_lines(STANDARD_INPUT):
                lines.put(line)
            lines.put(None)
        except BaseException as error:
            lines.put(error)

    threading.Thread(target=read, daemon=True).start()
    ended = False
    while not ended:
        chunk: list[str] = []
        item = lines.get()
        while True:
            if isinstance(item, str):
                chunk.append(item)
            else:
                ended = True
                break
            if len(chunk) == size or lines.empty():
                break
            item = lines.get_nowait()
        if chunk:
            yield chunk
        if isinstance(item, BaseException):
            raise item
