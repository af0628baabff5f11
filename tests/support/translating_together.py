"""`jumok translate` as one of several processes runs it."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence

from jumok.cli.main import run
from jumok.streaming.output import Lines


def translate(arguments: Sequence[str], killed: tuple[int, int] = (-1, 0)) -> tuple[int, str]:
    """The exit code and what was said; `killed`: this process has gone after writing so many sentences."""
    if int(os.environ.get("RANK", -1)) == killed[0]:
        _die_after(killed[1])
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = run(["translate", *arguments])
    return code, said.getvalue()


def _die_after(sentences: int) -> None:
    write, written = Lines.write, []

    def write_some(self: Lines, lines: Sequence[str]) -> None:
        write(self, lines)
        written.append(lines)
        if len(written) == sentences:
            self.file.write(b"half a li")
            self.file.flush()
            os._exit(9)

    Lines.write = write_some  # type: ignore[method-assign]
