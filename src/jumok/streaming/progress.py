"""How far it is: a bar on a terminal, a line now and then elsewhere; on stderr, apart from the translations."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS = 5.0  # between two lines


class Pace:
    """Sentences and bytes of the input that are done; what was done before this process began does not count as pace.

    `size` is how many bytes there are in all, where that is known.
    """

    def __init__(self, size: int | None, shown: bool = True, console: Console | None = None) -> None:
        self.console = console or Console(file=sys.stderr)
        self.size, self.shown = size, shown
        self.began = self.printed = time.monotonic()
        self.first: tuple[int, int] | None = None  # sentences and bytes that came before
        self.bar: Progress | None = None

    def __enter__(self) -> Self:
        if self.shown and self.console.is_terminal:
            columns = ("{task.description}", BarColumn(), TimeElapsedColumn(), TextColumn("eta"), TimeRemainingColumn())
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.task = self.bar.add_task("0 sentences", total=self.size)
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def skipped(self, sentences: int, size: int) -> None:
        """So many were done before."""
        self.first = (sentences, size)

    def advance(self, sentences: int, size: int) -> None:
        """So many are done now, those from before included."""
        if not self.shown:
            return
        before = self.first or (0, 0)
        seconds = max(1e-9, time.monotonic() - self.began)
        rate = (sentences - before[0]) / seconds
        about = f"{sentences:,} sentences  {rate:,.1f}/s"
        if self.bar is not None:
            self.bar.update(self.task, completed=min(size, self.size or size), description=about)
        elif time.monotonic() - self.printed >= SECONDS:
            self.printed = time.monotonic()
            self.console.print(f"{about}{self._eta(size, before[1], seconds)}", highlight=False, soft_wrap=True)

    def _eta(self, size: int, before: int, seconds: float) -> str:
        if not self.size or size <= before:
            return ""
        left = max(0.0, (self.size - size) * seconds / (size - before))
        return f"  {100 * min(1.0, size / self.size):.0f} %  eta {int(left // 60)}:{int(left % 60):02d}"
