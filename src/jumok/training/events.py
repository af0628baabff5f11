"""What a run tells the world while it goes: to the console, to metrics.jsonl, to TensorBoard, to Weights & Biases."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.training.memory import in_words


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


class WeightsAndBiases:
    """Weights & Biases, where $WANDB_MODE says: online, or offline into `RUN/wandb` (for `wandb sync` later).

    A resumed run goes on in the same chart. What was drawn after its checkpoint is drawn again over it, which is why
    the update is a value of its own and not W&B's step: that may never go back.
    """

    def __init__(self, folder: Path, recipe: dict[str, Any]) -> None:
        try:
            import wandb
        except ImportError:
            raise BadInput(
                'training.wandb is on, but Weights & Biases is missing: pip install "jumok[wandb]"'
            ) from None
        project = os.environ.get("WANDB_PROJECT", "jumok")
        with disk_errors_named("preparing Weights & Biases", folder, "Or turn training.wandb off."):
            identity = self._identity(folder / "wandb" / "id")
        try:
            self.run = wandb.init(
                project=project, name=folder.name, id=identity, resume="allow", dir=str(folder), config=recipe
            )
            self.run.define_metric("update")
            self.run.define_metric("*", step_metric="update")
        except Exception as error:  # not logged in, no network: its errors have many classes
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise BadInput(
                f"training.wandb: Weights & Biases does not start ({reason}). Log in (wandb login), or collect here "
                "and send later: WANDB_MODE=offline"
            ) from None

    @staticmethod
    def _identity(file: Path) -> str:
        """The chart that this run folder belongs to."""
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, uuid.uuid4().hex[:12] + "\n")
        return file.read_text(encoding="utf-8").strip()

    def event(self, event: str, update: int, values: dict[str, Any]) -> None:
        if event in ("train", "valid"):
            numbers = {f"{event}/{name}": value for name, value in values.items() if isinstance(value, int | float)}
            self.run.log({"update": update, **numbers})

    def close(self) -> None:
        self.run.finish()


POINTS = ("bleu", "chrf", "perplexity")
SHARES = ("accuracy", "f1", "matthews", "pearson", "spearman", "exact", "order_accuracy")
BESIDE = 46  # columns of a terminal that the number of the update, the bar and the times need


class ConsoleProgress:
    """A live bar on a terminal, plain lines elsewhere (one every `seconds`). `counted`: what speed is measured in."""

    def __init__(
        self,
        total: int | None,
        start: int = 0,
        counted: str = "tokens",
        console: Console | None = None,
        seconds: float = 5.0,
    ) -> None:
        self.console = console or Console(file=sys.stderr)
        self.seconds, self.printed = seconds, 0.0
        self.total, self.counted = total, counted
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
                f"{name} {value:.2f}" if name in POINTS else f"{name} {value:.4f}"
                for name, value in values.items()
                if name in POINTS or name in SHARES
            )
            star = "  ← best so far" if values.get("best") else ""
            count = values.get("averaged")
            what = f"average of the last {count} validated checkpoints" if count else f"update {update}"
            self._line(f"{what}: valid loss {values['loss']:.3f}  {shown}{star}")
        elif event == "train":
            self._train(update, values)

    def _train(self, update: int, values: dict[str, Any]) -> None:
        parts = list(_about(values, self.counted))
        if self.progress is not None:
            while len(parts) > 2 and len("  ".join(parts)) > self.console.width - BESIDE:
                parts.pop()
            self.progress.update(self.bar, completed=update, about="  ".join(parts))
            return
        now = time.monotonic()
        self.began = self.began or (now, update)
        if now - self.printed >= self.seconds or update == self.total:
            self.printed = now
            of = f"/{self.total}" if self.total else ""
            self._line(f"update {update}{of}  {'  '.join(parts)}{self._eta(update, now)}")

    def _eta(self, update: int, now: float) -> str:
        if not self.total or self.began is None or update <= self.began[1]:
            return ""
        left = (self.total - update) * (now - self.began[0]) / (update - self.began[1])
        hours, minutes = divmod(int(left) // 60, 60)
        return f"  eta {hours}:{minutes:02d}:{int(left) % 60:02d}" if hours else f"  eta {minutes}:{int(left) % 60:02d}"

    def _line(self, text: str) -> None:
        self.console.print(escape(text), highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()


def _about(values: dict[str, Any], counted: str) -> Iterator[str]:
    """What a line of progress says, the most important first: where there is no room, the last are left out."""
    yield f"loss {values['loss']:.3f}"
    yield f"{values['tokens_per_second']:,.0f} {counted}/s"
    if "mfu" in values:
        yield f"MFU {values['mfu']:.1%}"
    if "memory" in values:
        yield in_words(values["memory"])
    if "gradient_norm" in values:
        yield f"norm {values['gradient_norm']:.2f}"
