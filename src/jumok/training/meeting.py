"""How the processes of a run come together, with the variables that torchrun sets, and how they part.

Without these variables, one process is alone. Two of them on one machine with GPUs have one each.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from jumok.errors import BadInput, Failure
from jumok.files import replace_file
from jumok.training.distributed import Ranks

PATIENCE = timedelta(days=2)  # for a validation or a checkpoint of the first process
MEETING = timedelta(minutes=30)  # for all to come together, and for gradients
AGREEING = timedelta(seconds=1)  # for all to see a proposal, before another is made
LINGERING = 60.0  # seconds that processes of a torchrun that was killed may take to end
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def environment() -> tuple[int, int, int, int]:
    """Rank, world size, and both on this machine, from the variables that torchrun sets; one process without them."""
    if "WORLD_SIZE" not in os.environ:
        return 0, 1, 0, 1
    values = {}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"):
        text = os.environ.get(name)
        if text is not None and not text.isdecimal():
            raise BadInput(f"the environment variable {name} is {text!r}, which is no number. {TORCHRUN}")
        values[name] = None if text is None else int(text)
    world = values["WORLD_SIZE"]
    assert world is not None
    if world == 1:
        return 0, 1, 0, 1
    missing = [name for name in VARIABLES if not os.environ.get(name)]
    if missing:
        raise BadInput(
            f"WORLD_SIZE={world} says that this is one of {world} processes, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not set. {TORCHRUN}"
        )
    rank = values["RANK"] or 0
    if rank >= world:
        raise BadInput(f"RANK={rank} with WORLD_SIZE={world}: ranks are counted from 0. {TORCHRUN}")
    local, there = values["LOCAL_RANK"], values["LOCAL_WORLD_SIZE"]
    return rank, world, rank if local is None else local, world if there is None else there


TORCHRUN = "Start with: torchrun --standalone --nproc-per-node N -m jumok -- … (for one process: unset WORLD_SIZE)"


@contextmanager
def joined(safe: str = "All that the last checkpoint holds is safe") -> Iterator[Ranks]:
    """Meet the other processes that torchrun has started; without torchrun, one process alone."""
    rank, world, local, there = environment()
    if world == 1:
        yield Ranks()
        return
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if gpus:
        torch.cuda.set_device(local % gpus)
    ours = not dist.is_initialized()
    if ours:
        meet("cpu:gloo,cuda:nccl" if gpus and there <= gpus else "gloo")
    try:
        yield Ranks(rank, world, local, dist.new_group(backend="gloo", timeout=PATIENCE))
    except RuntimeError as error:
        if not is_lost(error):
            raise
        reason = str(error).splitlines()[0].rpartition("] ")[2].partition(". This is")[0]
        raise Failure(
            f"process {rank} of {world}: another process of this run has ended, or cannot be reached any more; its own "
            f"messages say why (one that is killed has none). {safe}: the same command with --resume goes on from "
            f"there. ({reason[:150]})"
        ) from error
    if ours:
        dist.destroy_process_group()


def meet(backend: str) -> None:
    try:
        store, rank, world = next(iter(rendezvous("env://", timeout=MEETING)))
        room = dist.PrefixStore(f"jumok/{attendance(store, rank, world)}", store)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=room, rank=rank, world_size=world, timeout=MEETING)
    except (RuntimeError, ValueError) as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise Failure(
            f"the {os.environ['WORLD_SIZE']} processes of this run did not come together at {where}: "
            f"{str(error).splitlines()[0]}. Is the first machine reachable there from all others, and were all "
            "processes started?"
        ) from None


def attendance(store: Any, rank: int, world: int) -> str:
    """A name for this meeting of these processes, which no other has.

    Workers that torchrun starts anew find the notes of those before them in the same store, and would call at addresses
    where nobody lives any more. So each leaves a note that is certainly its own, the first process proposes a name
    together with the notes that it has seen, and who finds its own among them agrees. It is settled when all have.
    """
    note = uuid.uuid4().hex
    store.set(f"jumok/note/{rank}", note)
    while True:
        if rank == 0:
            seen = [store.get(f"jumok/note/{other}").decode() for other in range(world)]
            store.set("jumok/proposal", " ".join([uuid.uuid4().hex, *seen]))
        name, *notes = store.get("jumok/proposal").decode().split()
        if note in notes:
            store.set(f"jumok/agreed/{name}/{rank}", "")
            if rank == 0:
                with contextlib.suppress(RuntimeError):  # somebody has not come yet, and an old note stood for it
                    store.wait([f"jumok/agreed/{name}/{other}" for other in range(world)], AGREEING)
                    store.set(f"jumok/settled/{name}", "")
            if store.check([f"jumok/settled/{name}"]):
                return name
        time.sleep(0.02)


def check_devices(device: torch.device) -> None:
    """One GPU for each process of this machine; to try something out, one for all if that is wished (through gloo)."""
    _, world, _, there = environment()
    gpus = torch.cuda.device_count()
    if world > 1 and device.type == "cuda" and there > gpus and not os.environ.get("JUMOK_SHARE_GPU"):
        raise BadInput(
            f"{there} processes on this machine have {gpus} GPU{'s' * (gpus > 1)}: start as many processes as GPUs "
            "(torchrun --nproc-per-node gpu), or use device=cpu. To try it out, JUMOK_SHARE_GPU=1 lets them share"
        )


def is_lost(error: RuntimeError) -> bool:
    """Whether an error says that another process has gone. gloo has no class of its own for it."""
    return isinstance(error, dist.DistError) or any(
        word in str(error) for word in ("gloo", "Connection closed by peer", "NCCL")
    )


def launch() -> str:
    """What torchrun calls this start of it (`--rdzv-id`); the same for workers that it starts once more.

    Empty without torchrun. Where nobody has named it, its process number stands for it, while it lives.
    """
    name = os.environ.get("TORCHELASTIC_RUN_ID", "")
    return f"process {os.getppid()}" if name == "none" else name


def note_launch(run: Path) -> None:
    """Remember in a new run which start of torchrun has made it."""
    if launch():
        replace_file(run / ".launch", launch() + "\n")


def goes_on(run: Path, say: Callable[[str], None]) -> bool:
    """Whether this torchrun has begun that run already: after a worker died (`--max-restarts`), or when machines come
    and go, it starts all workers once more with the same command."""
    restarts, note = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), run / ".launch"
    known = note.is_file() and note.read_text(encoding="utf-8").strip() == launch()
    if known and (restarts != "0" or not launch().startswith("process ")):
        say(f"torchrun has started its workers once more: {run} goes on")
        return True
    if restarts != "0" and not run.exists():
        say(f"torchrun has started its workers once more, but there is no {run} here yet: it begins from the start")
    return False
