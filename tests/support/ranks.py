"""Several processes that meet as those of torchrun do, without the time it takes to start them.

They are forked from a server that has imported everything; each gets torchrun's variables and calls the same function,
which must lie in a module of tests/support.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from forked import begin, forking

from jumok.errors import JumokError


def together(world: int, function: Callable[..., Any], *arguments: Any, timeout: float = 120) -> list[Any]:
    """What the function gave at each process; an error as (its exit code, its text)."""
    with socket.socket() as kept:
        # bound and not listening: the first process may listen there, and nobody else is given the port meanwhile
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        return _together(forking(), world, kept.getsockname()[1], function, arguments, timeout)


def _together(
    context: Any, world: int, port: int, function: Callable[..., Any], arguments: Any, timeout: float
) -> list[Any]:
    common = {**os.environ, "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = []
    for rank in range(world):
        ours, theirs = context.Pipe()
        variables = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(world)}
        process = context.Process(target=_work, args=(theirs, variables, function, arguments))
        process.start()
        theirs.close()
        started.append((process, ours))
    results: list[Any] = []
    for process, ours in started:
        try:
            results.append(ours.recv() if ours.poll(timeout) else "hangs")
        except EOFError:
            process.join()
            results.append(("killed", process.exitcode))
    for process, _ in started:
        if "hangs" in results:
            process.kill()
        process.join()
    return results


def _work(answer: Connection, variables: dict[str, str], function: Callable[..., Any], arguments: Any) -> None:
    import torch

    begin(variables)
    torch.set_num_threads(1)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    try:
        answer.send(function(*arguments))
    except JumokError as error:
        answer.send((error.exit_code, str(error)))
    except Exception as error:
        answer.send((type(error).__name__, str(error)))
