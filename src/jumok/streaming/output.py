"""Where the lines go: to standard output, or into a file that can be continued after a kill.

What a file held before stays until the first lines are there: where nothing can be translated, nothing is lost. While a
file is being written, `OUTPUT.progress.json` lies beside it and says what it is made of. Lines reach the file whole or
are cut off when it is continued; when all are there, the note is removed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from jumok.data.compression import STANDARD_INPUT
from jumok.errors import BadInput, Failure, ReaderGone
from jumok.files import disk_errors_named, replace_file

FORMAT = 1
Write = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class Begun:
    """An output that is open: how many sentences it holds already, and how to add lines to it."""

    done: int
    write: Write


@contextmanager
def open_output(
    path: Path | None,
    *sources: Path | None,
    about: Callable[[], dict[str, Any]] | None = None,
    resume: bool = False,
    numbered: bool = False,
    complete: Callable[[int], bool] = lambda sentences: False,
) -> Iterator[Begun]:
    """Lines as UTF-8 with \\n, each sentence's flushed at once, to a file (none of the sources) or to stdout.

    `about` describes what the file is made of, for one that shall be continuable; `numbered`: each line begins with its
    sentence's number; `complete` tells a finished file by its sentences.
    """
    to_stdout = path is None or str(path) == STANDARD_INPUT
    if resume and (to_stdout or about is None):
        raise BadInput("--resume needs an --input and an --output that are files: nothing else can be continued")
    if path is None or to_stdout:
        yield Begun(0, _to_stdout)
        return
    refuse_sources(path, *sources)
    ordinary = path.is_file() or not path.exists()  # a pipe or a device is neither continued nor noted
    done, keep = _begin(path, about, resume, numbered, complete) if ordinary else (0, 0)
    made_of = about() if about is not None and ordinary and not keep else None  # it may find something wrong
    note = note_of(path)
    with _opened(path, "ab" if ordinary else "wb") as file:

        def begin() -> None:
            if ordinary:
                file.truncate(keep)
            if made_of is not None:  # only now: beside what was there before it would be a lie
                replace_file(note, json.dumps({"format": FORMAT, **made_of}, ensure_ascii=False, indent=1) + "\n")

        lines = Lines(file, path, begin)
        yield Begun(done, lines.write)
        lines.write([])  # an empty input is an empty output
        if about is not None and ordinary:
            with disk_errors_named("finishing the translation", path, "Free some space, then go on with --resume."):
                os.fsync(file.fileno())
                note.unlink(missing_ok=True)


def refuse_sources(output: Path | None, *sources: Path | None) -> None:
    """What is read is never written, by whatever name it is called."""
    if output is None or not output.is_file():
        return
    for source in sources:
        if source is not None and source.is_file() and output.samefile(source):
            raise BadInput(f"--output {output} is the very file that is read as {source}: choose another")


def note_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.progress.json")


def _begin(
    path: Path,
    about: Callable[[], dict[str, Any]] | None,
    resume: bool,
    numbered: bool,
    complete: Callable[[int], bool],
) -> tuple[int, int]:
    """How many sentences the file holds, and how many of its bytes they are; what must not be touched is refused."""
    note = note_of(path)
    if not path.exists() or path.stat().st_size == 0:
        return 0, 0
    if not resume:
        if note.exists():
            raise BadInput(
                f"{path} is the beginning of a translation that was interrupted: go on with --resume, or delete it to "
                "begin anew"
            )
        return 0, 0
    lines, keep, number = _whole_lines(path)
    if not note.exists():
        if complete(number if numbered else lines):
            raise Complete(path)
        raise BadInput(
            f"{path} cannot be continued: {note.name} is missing, which says what it was made of. Without --resume it "
            "is written anew"
        )
    assert about is not None, "nothing else is continued"
    _same(note, path, about())
    if not numbered:
        return lines, keep
    # the last sentence may lack some of its lines: it is done again
    return (number - 1, _start_of(path, number)) if number else (0, 0)


class Complete(Exception):
    """There is nothing left to do."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is complete: nothing is left to do")


def _whole_lines(path: Path) -> tuple[int, int, int]:
    """How many whole lines there are, the bytes they take, and the number that the last one begins with."""
    count = keep = 0
    last = b""
    with path.open("rb") as file:
        for raw in file:
            if raw.endswith(b"\n"):
                count, keep, last = count + 1, keep + len(raw), raw
    head = last.partition(b"\t")[0]
    return count, keep, int(head) if head.isdigit() else 0


def _start_of(path: Path, number: int) -> int:
    """Where the lines of a sentence begin."""
    place = 0
    with path.open("rb") as file:
        for raw in file:
            if raw.startswith(b"%d\t" % number):
                break
            place += len(raw)
    return place


def _same(note: Path, path: Path, about: dict[str, Any]) -> None:
    try:
        before = json.loads(note.read_text(encoding="utf-8"))
        if before["format"] != FORMAT:
            raise BadInput(f"{note} was made by another version of jumok: delete {path} to begin anew")
        known = {**before["settings"], "input": before["input"]}
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{note} is damaged: delete it and {path}, and begin anew") from None
    now = {**about["settings"], "input": about["input"]}
    if known.get("too_long") == "error":  # then no sentence so far was too long, and all three ways are the same
        known["too_long"] = now["too_long"]
    differing = sorted(key for key in known.keys() | now.keys() if known.get(key) != now.get(key))
    if differing:
        raise BadInput(
            f"{path} was begun with something else, so it cannot be continued; different now: "
            f"{', '.join(key.replace('_', '-') for key in differing)}. Set it back, or delete {path} to begin anew"
        )


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[IO[bytes]]:
    """A file that was not there and gets no line is not there afterwards."""
    new = not path.exists()
    try:
        file = path.open(mode)
    except OSError as error:
        raise BadInput(f"--output {path}: {error.strerror}") from None
    try:
        yield file
    except BaseException:
        if new and not file.tell():
            file.close()
            path.unlink(missing_ok=True)
        raise
    finally:
        with suppress(OSError):  # all was flushed, or its failure was told
            file.close()


class Lines:
    """Lines for a file, `begin` before the first of them."""

    def __init__(self, file: IO[bytes], path: Path, begin: Callable[[], None]) -> None:
        self.file, self.path, self.begin = file, path, begin
        self.begun = False

    def write(self, lines: Sequence[str]) -> None:
        with disk_errors_named("writing translations", self.path, "Free some space, then go on with --resume."):
            if not self.begun:
                self.begin()
                self.begun = True
            self.file.write("".join(f"{line}\n" for line in lines).encode("utf-8"))
            self.file.flush()


def _to_stdout(lines: Sequence[str]) -> None:
    try:
        sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode("utf-8"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise Failure(f"standard output: {error.strerror}") from None
