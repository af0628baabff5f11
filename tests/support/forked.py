"""Processes that begin with PyTorch already imported.

They are forked from a server that each of pytest's processes starts once: a process of its own as any other is, with
its own memory, variables and streams, but without the seconds that the imports take.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

IMPORTED = ["jumok.api", "jumok.cli.main", "torch._dynamo", "torch.distributed.fsdp"]


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


def begin(variables: dict[str, str]) -> None:
    """Its own variables: the server it is forked from has those of the first test that asked for one."""
    os.environ.clear()
    os.environ.update(variables)


def _run(arguments: Sequence[str], streams: Sequence[Path], folder: Path, variables: dict[str, str]) -> None:
    begin(variables)
    os.chdir(folder)
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number, (file, mode) in enumerate(zip(streams, modes, strict=True)):
        opened = os.open(file, mode)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["jumok", *arguments]
    from jumok.__main__ import main

    main()
