"""The real command in a real process, as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from forked import command

from jumok.data import grammar

SMALL = [
    "model.width=48", "model.embedding=32", "model.layers=1", "tokenizer.kind=word", "training.batch_tokens=1024",
    "training.validate_sentences=20", "training.warmup=20", "threads=1", "search.beam=2",
]  # fmt: skip
PLAIN = {"NO_COLOR": "1", "COLUMNS": "120"}


def jumok(
    *arguments: object,
    input: str | bytes | None = None,
    cwd: Path | None = None,
    timeout: float = 300,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """`jumok …` in a process of its own, and what it said; forked, so that its imports are there already."""
    words, environment = [str(argument) for argument in arguments], {**os.environ, **PLAIN, **variables}
    result = command(words, _bytes(input), cwd or Path.cwd(), environment, timeout)
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


def started(
    *arguments: object, input: str | bytes | None = None, cwd: Path | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run `python -m jumok …` as a user would and give back what it said; it takes seconds until it begins."""
    result = subprocess.run(
        [sys.executable, "-m", "jumok", *map(str, arguments)],
        input=_bytes(input),
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **PLAIN},
        check=False,
        timeout=timeout,
    )
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


def _bytes(given: str | bytes | None) -> bytes:
    return given.encode() if isinstance(given, str) else given or b""


def refused(result: subprocess.CompletedProcess[str], *words: str, code: int = 2) -> None:
    """The command said no: the right exit code, a message with these words, no traceback, no silence."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    assert "bug of jumok" not in result.stderr
    for word in words:
        assert word in result.stderr, f"{word!r} is not in: {result.stderr}"


def write_corpus(folder: Path, count: int = 600, split: str = "train") -> tuple[Path, Path, Path]:
    """Parallel files as a user has them (and the gold alignments)."""
    pairs = list(grammar.pairs("en", "fr", split, count))
    files = folder / f"{split}.en", folder / f"{split}.fr", folder / f"{split}.align"
    for file, lines in zip(
        files, ([p.source for p in pairs], [p.target for p in pairs], [p.pharaoh() for p in pairs]), strict=True
    ):
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    return files
