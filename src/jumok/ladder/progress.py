"""Several runs at once, told: a bar for each on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars


class Progress:
    def __init__(self, count: int, console: Console | None = None, seconds: float = 30.0) -> None:
        """`count` runs in all; on what is no terminal a line every so many seconds."""
        self.console = console or Console(file=sys.stderr, highlight=False)
        self.count, self.finished, self.seconds = count, 0, seconds
        self.titles: dict[str, str] = {}
        self.told: dict[str, tuple[int, int | None, str]] = {}
        self.printed = time.monotonic()
        self.bars: Bars | None = None
        self.rows: dict[str, TaskID] = {}
        if self.console.is_terminal:
            columns = (TextColumn("{task.description:18}"), BarColumn(24), TextColumn("{task.fields[about]}"))
            eta = (TimeElapsedColumn(), TextColumn("eta"), TimeRemainingColumn())
            self.bars = Bars(*columns, *eta, console=self.console)

    def __enter__(self) -> Self:
        if self.bars is not None:
            self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bars is not None:
            self.bars.stop()

    def say(self, message: str) -> None:
        self.console.print(escape(message), soft_wrap=True)

    def begin(self, name: str, title: str) -> None:
        self.titles[name] = title
        if self.bars is not None:
            self.rows[name] = self.bars.add_task(title, total=None, about="starting")
        else:
            self.say(f"{title}: training")

    def tell(self, name: str, done: int, total: int | None, about: str) -> None:
        self.told[name] = done, total, about
        if self.bars is not None:
            self.bars.update(self.rows[name], completed=done, total=total, about=self._line(name))
        elif time.monotonic() - self.printed >= self.seconds:
            self.printed = time.monotonic()
            for each in self.told:
                self.say(f"{self.titles[each]}: {self._line(each)}")

    def _line(self, name: str) -> str:
        done, total, about = self.told[name]
        return f"update {done}{'' if total is None else f'/{total}'}  {about}".rstrip()

    def end(self, name: str, how: str) -> None:
        self.finished += 1
        last = self._line(name)
        del self.told[name]
        if self.bars is not None:
            self.bars.remove_task(self.rows.pop(name))
        self.say(f"[{self.finished}/{self.count}] {self.titles[name]}: {how}, {last}")
