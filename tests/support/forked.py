"""Processes that begin with PyTorch already imported.

They are forked from a server that each of pytest's processes starts once: a process of its own as any other is, with
its own memory, variables and streams, but without the seconds that the imports take.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing import reduction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

# `unflushed` is imported for what it does
IMPORTED = ["jumok.api", "jumok.cli.main", "torch._dynamo", "torch.distributed.fsdp", "unflushed"]


def forking() -> Any:
    """How such processes are started; where the system cannot fork they are started as usual."""
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        context.set_forkserver_preload(IMPORTED)
    return context


def command(
    arguments: Sequence[str], data: bytes, folder: Path, variables: dict[str, str], timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """`jumok ARGUMENTS` in such a process, with this at its standard input."""
    with tempfile.TemporaryDirectory() as place:
        streams = [Path(place, name) for name in ("stdin", "stdout", "stderr")]
        streams[0].write_bytes(data)
        process = forking().Process(target=_run, args=(arguments, streams, folder, variables))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(arguments, timeout)
        return subprocess.CompletedProcess(arguments, process.exitcode, *(file.read_bytes() for file in streams[1:]))


class Popen:
    """What subprocess.Popen is, for `PYTHON -m MODULE …` alone, in such a process: real pipes, signals and kills."""

    def __init__(
        self,
        command: Sequence[str],
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        text: bool = False,
        encoding: str | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        assert command[:2] == [sys.executable, "-m"], command
        mode = {"encoding": encoding or "utf-8"} if text or encoding else {}
        kind = "" if mode else "b"
        opened, theirs = [], []
        self.stdin, self.stdout, self.stderr = None, None, None
        for number, (name, asked) in enumerate((("stdin", stdin), ("stdout", stdout), ("stderr", stderr))):
            if asked == subprocess.PIPE:
                ends = os.pipe()
                setattr(self, name, open(ends[number == 0], ("r" if number else "w") + kind, **mode))  # noqa: SIM115
                opened.append(ends[number != 0])
                theirs.append(opened[-1])
            elif asked == subprocess.DEVNULL:
                opened.append(os.open(os.devnull, os.O_RDWR))
                theirs.append(opened[-1])
            else:
                theirs.append(number if asked is None else asked if isinstance(asked, int) else asked.fileno())
        variables = dict(os.environ if env is None else env)
        arguments = (command[2], command[3:], [Descriptor(one) for one in theirs], Path.cwd(), variables)
        self.process = forking().Process(target=_be_module, args=arguments)
        self.process.start()
        for one in opened:
            os.close(one)

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode  # type: ignore[no-any-return]

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self.process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Of one pipe to read at most: with two, one might fill while the other is read."""
        assert self.stdout is None or self.stderr is None
        told = [stream and stream.read() for stream in (self.stdout, self.stderr)]
        self.wait(timeout)
        return told[0], told[1]

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)


if "forkserver" not in multiprocessing.get_all_start_methods():
    Popen = subprocess.Popen  # type: ignore[misc, assignment]


class Descriptor:
    """An open file's number, which a process that is being started gets a copy of."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[[Any], int], tuple[Any]]:
        return _detached, (reduction.DupFd(self.number),)


def _detached(copied: Any) -> int:
    return int(copied.detach())


def fork_instead(monkeypatch: pytest.MonkeyPatch, *modules: Any) -> None:
    """Until the test ends, what these modules start with subprocess.Popen are such processes."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        for module in modules:
            monkeypatch.setattr(module, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": Popen}))


def begin(variables: dict[str, str]) -> None:
    """Its own variables: the server it is forked from has those of the first test that asked for one."""
    os.environ.clear()
    os.environ.update(variables)


def _run(arguments: Sequence[str], streams: Sequence[Path], folder: Path, variables: dict[str, str]) -> None:
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    opened = [os.open(file, mode) for file, mode in zip(streams, modes, strict=True)]
    _settle(opened, folder, variables)
    sys.argv = ["jumok", *arguments]
    from jumok.__main__ import main

    main()


def _be_module(
    module: str, arguments: Sequence[str], streams: Sequence[int], folder: Path, variables: dict[str, str]
) -> None:
    _settle(streams, folder, variables)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _settle(streams: Sequence[int], folder: Path, variables: dict[str, str]) -> None:
    """At its place, with these as its three streams."""
    begin(variables)
    os.chdir(folder)
    for number, opened in enumerate(streams):
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
