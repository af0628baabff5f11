"""Lines in, translations out: as soon as they can be had, in the order they came."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jumok.api import TrainedTranslator
from jumok.data.compression import open_file
from jumok.data.pharaoh import format_pharaoh
from jumok.data.readers import read_lines
from jumok.errors import BadInput, ReaderGone
from jumok.inspect.forced import word_links
from jumok.tasks.translator import TooLong, Translation

CHUNK = 16  # batches gathered before sorting by length: more gives less padding, fewer gives earlier answers


@dataclass(frozen=True)
class StreamOptions:
    beam: int | None = None
    nbest: int = 1
    scores: bool = False
    alignments: bool = False
    batch: int | None = None
    too_long: str = "error"

    def __post_init__(self) -> None:
        for name, value in (("beam", self.beam), ("nbest", self.nbest), ("batch", self.batch)):
            if value is not None and value < 1:
                raise BadInput(f"--{name} {value}: give 1 or more")
        if self.too_long not in ("error", "truncate", "skip"):
            raise BadInput(f'--too-long {self.too_long}: give "error", "truncate" or "skip"')


def stream(
    model: TrainedTranslator, chunks: Callable[[int], Iterable[list[str]]], options: StreamOptions, done: int = 0
) -> Iterator[str]:
    """Translate chunk after chunk; each sentence gives `nbest` lines. `done` sentences came before."""
    size = (options.batch or model.search.batch) * CHUNK
    for lines in chunks(size):
        try:
            found = model.nbest(lines, options.nbest, beam=options.beam, batch=options.batch, too_long=options.too_long)
        except TooLong as error:
            if error.index:  # what came before it is not lost
                yield from stream(model, lambda size, good=lines[: error.index]: [good], options, done)  # type: ignore[misc]
            raise TooLong(done + error.index, error.length, error.limit) from None
        yield from _written(model, lines, found, options, done)
        done += len(lines)


def _written(
    model: TrainedTranslator, lines: list[str], found: list[list[Translation]], options: StreamOptions, first: int
) -> Iterator[str]:
    links: dict[tuple[int, int], str] = {}
    if options.alignments:
        wanted = [(row, rank) for row, ranks in enumerate(found) for rank, best in enumerate(ranks) if best.ids]
        found_links = word_links(
            model, [lines[row] for row, _ in wanted], [found[row][rank].ids for row, rank in wanted]
        )
        links = {place: format_pharaoh(pairs) for place, pairs in zip(wanted, found_links, strict=True)}
    for row, ranks in enumerate(found):
        for rank, best in enumerate(ranks):
            columns = [best.text]
            if options.nbest > 1:
                columns.insert(0, str(first + row + 1))
            if options.scores:
                columns.append(f"{best.score:.4f}")
            if options.alignments:
                columns.append(links.get((row, rank), ""))
            yield "\t".join(columns)


def waiting_lines(path: Path | None) -> Callable[[int], Iterator[list[str]]]:
    """A source of chunks: from a file, full ones; from stdin, whatever has arrived, so that a person gets an answer."""
    if path is not None:
        open_file(path).close()  # what cannot be read is said before anything is written
    return lambda size: _file_chunks(path, size) if path is not None else _stdin_chunks(size)


def _file_chunks(path: Path, size: int) -> Iterator[list[str]]:
    chunk: list[str] = []
    for line in read_lines(path):
        chunk.append(line)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _stdin_chunks(size: int) -> Iterator[list[str]]:
    """A thread reads ahead while the model works; a chunk is what is there, at least one line, at most `size`."""
    if sys.stdin is not None and sys.stdin.isatty():
        print("one sentence a line, please; Ctrl-D ends", file=sys.stderr)
    lines: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=4 * size)

    def read() -> None:
        try:
            for line in read_lines("-"):
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


@contextmanager
def open_output(path: Path | None, source: Path | None = None) -> Iterator[Callable[[str], None]]:
    """Write lines as UTF-8 with \\n, each flushed at once, to a file (never the one that is read) or to stdout."""
    if path is None:

        def to_stdout(line: str) -> None:
            try:
                sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                raise ReaderGone from None

        yield to_stdout
        return
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise BadInput(f"--output {path} is the very file that --input reads: choose another")
    try:
        file = path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise BadInput(f"--output {path}: {error.strerror}") from None
    with file:
        yield lambda line: print(line, file=file, flush=True)
