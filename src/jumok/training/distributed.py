"""Several processes that train one model, as torchrun starts them (c10d; gloo on CPUs, NCCL between GPUs).

    gradient = Σ_processes Σ_(own micro-batches) ∇ loss / count        count: of the micro-batches of all processes

What is learned does not depend on how many processes there are. The micro-batches of an update are dealt out like cards
(process r takes r, r + world, …), each with the randomness of its own number, and all is divided by the count of all.

The gradients are added up by all-reduces after the backward passes, not inside them as DistributedDataParallel does:
- a process that runs out of memory in the middle begins its own micro-batches again, in pieces, and nobody else
  notices; with hooks, part of what it takes back would already be in the sums of the others;
- it is a plain sum, so processes may have more or fewer micro-batches, and nothing is averaged and multiplied back;
- once an update, however many micro-batches it has. The price is that nothing is sent while the last one is computed.

Numbers and messages go through a gloo group of their own, whose patience is long: the others wait there while the first
process validates or saves. That a process has died is not told by a time limit but by its closed connections.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors import safe_open
from torch import Tensor

import jumok
from jumok import recipe as recipes
from jumok.errors import BadInput, Failure, JumokError, ToldElsewhere
from jumok.recipe import Recipe

BUCKET = 1 << 24  # numbers sent at once: 64 MB of them are copied side by side


@dataclass
class Ranks:
    """The processes of a run, seen from one of them. One alone talks to nobody, and all of this does nothing."""

    rank: int = 0
    world: int = 1
    local: int = 0  # its number on this machine
    control: Any = None  # the gloo group for numbers and messages
    asked: threading.Event = field(default_factory=threading.Event)  # this process was asked to stop
    stop: bool = False  # one of them was: all know it since the last update
    parent: int = field(default_factory=os.getppid)

    @property
    def alone(self) -> bool:
        return self.world == 1

    # ------------------------------------------------------------ one update

    def numbers(self, accumulate: int, sharded: bool) -> list[int]:
        """The micro-batches of an update that this process takes; `accumulate` and above: only to be there with a zero.

        Who has none computes one that counts nothing. Sharded weights are gathered by all together, so there everyone
        must compute equally many.
        """
        dealt = [self.rank + self.world * turn for turn in range(-(-accumulate // self.world))]
        return dealt if sharded else [number for number in dealt if number < accumulate] or dealt[:1]

    def dealt(self, batches: Callable[..., list[Any]], accumulate: int, sharded: bool) -> Callable[[int], list[Any]]:
        """A task's batches of an update, only those of this process."""
        if self.alone:
            return batches
        numbers = [number if number < accumulate else 0 for number in self.numbers(accumulate, sharded)]
        return lambda update: batches(update, only=numbers)

    def count(self, tokens: int) -> int:
        """The tokens of an update at all processes. On the way all learn whether one was asked to stop."""
        if self.alone:
            return tokens
        orphaned = os.getppid() != self.parent  # torchrun was killed: nobody looks after these processes any more
        total, stop = self.total(tokens, self.asked.is_set() or orphaned)
        self.stop = stop > 0
        return int(total)

    @property
    def stopping(self) -> bool:
        """Whether to end after this update: all processes say the same."""
        return self.asked.is_set() if self.alone else self.stop

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Each tensor becomes its sum over all processes."""
        if self.alone:
            return
        for bucket in buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            dist.all_reduce(flat)
            parts = torch.split(flat, [tensor.numel() for tensor in bucket])
            torch._foreach_copy_(bucket, [part.view_as(tensor) for part, tensor in zip(parts, bucket, strict=True)])

    # ------------------------------------------------------------ numbers and messages

    def total(self, *numbers: float) -> list[float]:
        """Sums over all processes."""
        assert numbers, "nothing to add up: nobody would wait for anybody"
        sums = torch.tensor(numbers, dtype=torch.float64)
        if not self.alone:
            dist.all_reduce(sums, group=self.control)
        return sums.tolist()

    def wait(self) -> None:
        """Until all are here."""
        self.total(1)

    def share(self, value: Any, source: int = 0) -> Any:
        """What one process has, at all of them; anything that JSON can hold."""
        if self.alone:
            return value
        content = json.dumps(value).encode() if self.rank == source else b""
        size = torch.tensor([len(content)])
        dist.broadcast(size, source, group=self.control)
        data = torch.frombuffer(bytearray(content or bytes(int(size))), dtype=torch.uint8)
        dist.broadcast(data, source, group=self.control)
        return json.loads(data.numpy().tobytes())

    def each(self, value: Any) -> list[Any]:
        """What every process has, by its number."""
        return [self.share(value, source) for source in range(self.world)]

    def first(self, action: Callable[[], Any]) -> Any:
        """The first process does it; all get what it gave. Where it fails, it says so and the others end with it."""
        if self.alone:
            return action()
        if self.rank:
            done, value = self.share(None)
            if not done:
                raise ToldElsewhere(value)
            return value
        try:
            value = action()
        except BaseException as error:
            self.share([False, error.exit_code if isinstance(error, JumokError) else 1])
            raise
        return self.share([True, value])[1]

    def after_first(self, action: Callable[[], Any]) -> None:
        """All but the first process do it: one on each machine, then the rest, who find what that one has kept."""
        for turn in (1, 2) if not self.alone else ():
            if self.rank and turn == (1 if self.local == 0 else 2):
                action()
            self.wait()

    def recipe(self, choose: Callable[[], Recipe]) -> Recipe:
        """The recipe that the first process has chosen."""
        if self.alone:
            return choose()
        return recipes.check(self.first(lambda: choose().model_dump(mode="json")), "the first process's recipe")

    def told(self, error: JumokError) -> JumokError:
        """An error that all processes meet at the same time: one says it."""
        return ToldElsewhere(error.exit_code) if self.rank else error

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Bad input in here is met by this process alone, which must say so itself."""
        try:
            yield
        except BadInput as error:
            raise Failure(f"process {self.rank}: {error}") if self.rank else error from None

    def quiet(self, say: Callable[[str], None]) -> Callable[[str], None]:
        """How things are said that all processes meet."""
        return (lambda message: None) if self.rank else say

    def voice(self, say: Callable[[str], None]) -> Callable[[str], None]:
        """How this process says what concerns it alone."""
        if self.rank == 0:
            return say
        return lambda message: print(f"process {self.rank}: {message}", file=sys.stderr)

    def same(self, **what: Any) -> None:
        """Refuse to go on where processes do not have the same."""
        all_have = self.each({name: digest(value) for name, value in what.items()})
        for rank, theirs in enumerate(all_have):
            if differing := " and another ".join(name for name in theirs if theirs[name] != all_have[0][name]):
                problem = f"process {rank} of {self.world} has another {differing} than process 0: "
                hint = "give all machines the same files, the same command and the same version of everything"
                raise self.told(BadInput(problem + hint))

    def spread(self, file: Path) -> Iterator[tuple[str, Tensor]]:
        """The tensors of a safetensors file that only the first process needs to see, one after the other."""
        if self.rank:
            for name, shape, kind in self.share(None):
                yield name, self._from_first(torch.empty(shape, dtype=getattr(torch, kind.removeprefix("torch."))))
            return
        with safe_open(file, "pt") as stored:
            names = list(stored.keys())
            if not self.alone:
                tensors = ((name, stored.get_tensor(name)) for name in names)
                self.share([(name, list(tensor.shape), str(tensor.dtype)) for name, tensor in tensors])
            for name in names:
                yield name, self._from_first(stored.get_tensor(name))

    def _from_first(self, tensor: Tensor) -> Tensor:
        if not self.alone:
            dist.broadcast(tensor, 0, group=self.control)
        return tensor

    def equalise(self, tensors: Sequence[Tensor]) -> None:
        """Give all processes what the first one has."""
        for tensor in tensors if not self.alone else ():
            held = self._from_first(tensor.detach().cpu().contiguous())
            if self.rank:
                tensor.detach().copy_(held)


def buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors in groups of at most so many numbers; a larger one stands alone."""
    group: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if group and (size + tensor.numel() > BUCKET or tensor.dtype != group[0].dtype):
            yield group
            group, size = [], 0
        group.append(tensor)
        size += tensor.numel()
    if group:
        yield group


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def code() -> str:
    """Of all that this package consists of, and of the PyTorch under it."""
    place = Path(jumok.__file__).parent
    files = sorted(path for path in place.rglob("*") if path.suffix in (".py", ".c", ".h", ".yaml"))
    parts = [(path.relative_to(place).as_posix(), path.read_bytes().hex()) for path in files]
    return digest([parts, torch.__version__])
