"""What a run tells the world while it goes: to the console, to metrics.jsonl, and to TensorBoard."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jumok.errors import BadInput
from jumok.files import disk_errors_named


class Sink(Protocol):
    """One listener. `event` is "train", "valid", "plan", "recovered", or "message"; the values are JSON numbers and
    strings."""

    def event(self, event: str, update: int, values: dict[str, Any]) -> None: ...
    def close(self) -> None: ...


class Events:
    """All listeners of a run, closed together."""

    def __init__(self, sinks: list[Sink]) -> None:
        self.sinks = sinks

    def __call__(self, event: str, update: int, **values: Any) -> None:
        for sink in self.sinks:
            sink.event(event, update, values)

    def say(self, message: str) -> None:
        self("message", 0, text=message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sink in self.sinks:
            sink.close()


class MetricsFile:
    """metrics.jsonl: one event a line. On resume it is cut to the length it had at the checkpoint."""

    def __init__(self, path: Path, keep_bytes: int) -> None:
        self.path = path
        if path.exists():
            with path.open("rb+") as file:
                file.truncate(min(keep_bytes, path.stat().st_size))
        self.file = path.open("a", encoding="utf-8", newline="\n")

    def event(self, event: str, update: int, values: dict[str, Any]) -> None:
        if event != "message":
            # JSON has no NaN: what is not a number is written as null
            clean = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
            with disk_errors_named("writing metrics.jsonl", self.path, "Free some space, then go on with --resume."):
                self.file.write(json.dumps({"event": event, "step": update, **clean}) + "\n")
                self.file.flush()

    def cut(self, keep_bytes: int) -> None:
        """Forget what was written after this place: the run went back."""
        self.file.flush()
        self.file.truncate(keep_bytes)
        self.file.seek(keep_bytes)

    @property
    def bytes(self) -> int:
        return self.file.tell()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what could not be written has been said already
            self.file.close()


class TensorBoard:
    """TensorBoard's event files, under `RUN/tensorboard`."""

    def __init__(self, folder: Path, update: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise BadInput(
                'training.tensorboard is on, but TensorBoard is missing: pip install "jumok[tensorboard]"'
            ) from None
        # events after the checkpoint belong to a stretch that is done again
        self.writer = SummaryWriter(str(folder), purge_step=update + 1)

    def event(self, event: str, update: int, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if event in ("train", "valid") and isinstance(value, int | float):
                self.writer.add_scalar(f"{event}/{name}", value, update)

    def close(self) -> None:
        self.writer.close()


class ConsoleProgress:
    """A live bar on a terminal, plain lines elsewhere (one every `seconds`)."""

    def __init__(self, total: int | None, start: int = 0, console: Console | None = None, seconds: float = 5.0) -> None:
        self.console = console or Console(file=sys.stderr)
        self.seconds, self.printed = seconds, 0.0
        self.total = total
        self.began: tuple[float, int] | None = None  # when the first progress came, and at which update
        self.progress: Progress | None = None
        if self.console.is_terminal:
            columns = ("[bold]update {task.completed:.0f}", BarColumn(), "{task.fields[about]}", TimeElapsedColumn())
            eta = (TextColumn("eta"), TimeRemainingColumn())
            self.progress = Progress(*columns, *eta, console=self.console)
            self.bar = self.progress.add_task("", total=total, completed=start, about="")
            self.progress.start()

    def event(self, event: str, update: int, values: dict[str, Any]) -> None:
        if event == "message":
            self._line(values["text"])
        elif event == "plan":
            self.total = values["updates"]
            if self.progress is not None:
                self.progress.update(self.bar, total=self.total)
            self._line(f"plan: {self.total} updates ({values['reason']})")
        elif event == "valid":
            shown = "  ".join(
                f"{name} {value:.2f}" for name, value in values.items() if name in ("bleu", "chrf", "perplexity")
            )
            star = "  ← best so far" if values.get("best") else ""
            count = values.get("averaged")
            what = f"average of the last {count} validated checkpoints" if count else f"update {update}"
            self._line(f"{what}: valid loss {values['loss']:.3f}  {shown}{star}")
        elif event == "train":
            self._train(update, values)

    def _train(self, update: int, values: dict[str, Any]) -> None:
        about = f"loss {values['loss']:.3f}  {values['tokens_per_second']:,.0f} tokens/s"
        if self.progress is not None:
            self.progress.update(self.bar, completed=update, about=about)
            return
        now = time.monotonic()
        self.began = self.began or (now, update)
        if now - self.printed >= self.seconds or update == self.total:
            self.printed = now
            of = f"/{self.total}" if self.total else ""
            self._line(f"update {update}{of}  {about}{self._eta(update, now)}")

    def _eta(self, update: int, now: float) -> str:
        if not self.total or self.began is None or update <= self.began[1]:
            return ""
        left = (self.total - update) * (now - self.began[0]) / (update - self.began[1])
        return f"  eta {int(left // 60)}:{int(left % 60):02d}"

    def _line(self, text: str) -> None:
        self.console.print(escape(text), highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()
