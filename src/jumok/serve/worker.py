"""Jobs go from the event loop to a thread that computes (or a few), and their answers come back.

The loop's side only ever counts and notes: it takes jobs in while there is room, and hears of clients that have left
and of time that has passed. All that computes happens in the thread. Between them stand a lock that nobody holds for
longer than that, and `call_soon_threadsafe`, once for all answers that are there at a time.

A thread that has nothing to do sleeps. Whatever a job does, the thread goes on: at the worst, all jobs that it had in
its hands are answered with the error.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from jumok.errors import BadInput
from jumok.serve.waiting import Closing, Full, Late, Numbers, Room

Job = TypeVar("Job")
Answer = TypeVar("Answer")
LEAST, MOST = 1.0, 60.0  # seconds after which somebody may try again
ENDING = 5.0  # seconds that the thread is waited for, at most
NEWEST = 0.2  # how much the last batch counts in the mean time of a job

log = logging.getLogger("jumok.serve")


class Entry(Generic[Job, Answer]):
    """A job that was accepted. It belongs to the queue, to the thread, or to nobody any more (`left`)."""

    __slots__ = ("accepted", "cost", "future", "job", "left")

    def __init__(self, job: Job, cost: int, future: asyncio.Future[Answer], accepted: float) -> None:
        self.job, self.cost, self.future, self.accepted = job, cost, future, accepted
        self.left = False  # nobody waits for the answer


class Worker(Generic[Job, Answer]):
    """The life of a queue and its thread; what the thread does in one `_turn` is the business of the kinds of it."""

    def __init__(self, name: str, room: Room, count: int = 1) -> None:
        """`count`: of threads."""
        self.name, self.room, self.count = name, room, count
        self.served = self.failed = self.cancelled = self.late = self.refused = 0
        self.observe: Callable[[Numbers], None] | None = None  # called in the thread, after each batch
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._queue: dict[Entry[Job, Answer], None] = {}  # in the order they came
        self._running: dict[Entry[Job, Answer], None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads: list[threading.Thread] = []
        self._open = 0  # futures without an answer; the loop's own
        self._idle: asyncio.Event | None = None
        self._draining = self._closed = False
        self._each = 0.02  # seconds that a job takes, on the average of late

    # ------------------------------------------------------------ the loop's side

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def alive(self) -> bool:
        """Whether there are threads that work."""
        return bool(self._threads) and all(one.is_alive() for one in self._threads) and not self._closed

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on jobs are accepted, on this loop's thread."""
        assert not self._threads, "a worker starts once"
        self._loop, self._idle = loop, asyncio.Event()
        for number in range(self.count):
            name = f"jumok-{self.name}" + f"-{number + 1}" * bool(number)
            self._threads.append(threading.Thread(target=self._main, args=(number,), name=name, daemon=True))
        for thread in self._threads:
            thread.start()
        atexit.register(self._end)

    async def drain(self) -> None:
        """Answer all that was accepted, and refuse what comes now."""
        self._draining = True
        while self._open and not self._closed:
            assert self._idle is not None
            self._idle.clear()
            await self._idle.wait()

    def close(self) -> None:
        """At once: what still waits or is computed is answered with `Closing`, and the thread ends after its step or
        batch. To be called on the loop's thread."""
        with self._lock:
            if self._closed:
                return
            self._draining = self._closed = True
            left = [*self._queue, *self._running]
            self._queue.clear()
            self._changed.notify_all()
        if self._loop is not None and not self._loop.is_closed():
            self._resolve([(entry, Closing()) for entry in left])
        if self._idle is not None:
            self._idle.set()
        self._end()

    def _end(self) -> None:
        """Wait for the threads: one that computes while Python ends takes the whole process down with it."""
        self._closed = True
        with self._lock:
            self._changed.notify_all()
        if threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join(ENDING)
            atexit.unregister(self._end)

    def _accept(self, jobs: Sequence[tuple[Job, int]], seconds: float | None) -> list[Entry[Job, Answer]]:
        """Take in jobs with their costs: all of them, or none."""
        loop = self._loop
        if loop is None or self._draining:
            raise Closing
        if len(jobs) > self.room.waiting:
            raise BadInput(f"{len(jobs)} at once: at most {self.room.waiting} are taken in. Send them in parts")
        now, allowed = time.monotonic(), self.room.seconds if seconds is None else min(seconds, self.room.seconds)
        entries = [Entry(job, cost, loop.create_future(), now) for job, cost in jobs]
        with self._lock:
            if len(self._queue) + len(jobs) > self.room.waiting:  # of some the loop has not told us yet
                for entry in [entry for entry in self._queue if entry.future.done()]:
                    del self._queue[entry]
            if len(self._queue) + len(jobs) > self.room.waiting:
                self.refused += len(jobs)
                raise Full(min(MOST, max(LEAST, math.ceil(self._each * (len(self._queue) + len(self._running))))))
            self._queue.update(dict.fromkeys(entries))
            self._arrived(entries)
            self._changed.notify_all()
        self._watch(entries, loop, allowed)
        return entries

    def _watch(self, entries: Sequence[Entry[Job, Answer]], loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Hear when they are answered, cancelled or late."""
        open_ = len(entries)
        self._open += open_

        def late() -> None:
            for entry in entries:
                if not entry.future.done():
                    self.late += 1
                    entry.future.set_exception(Late(seconds))

        timer = loop.call_later(max(0.0, seconds), late) if entries else None

        def done(entry: Entry[Job, Answer], future: asyncio.Future[Answer]) -> None:
            nonlocal open_
            open_ -= 1
            if open_ == 0 and timer is not None:
                timer.cancel()
            if future.cancelled():
                self.cancelled += 1
            else:
                future.exception()  # who has left does not ask for it, and asyncio would complain
            self._forget(entry)

        for entry in entries:
            entry.future.add_done_callback(lambda future, entry=entry: done(entry, future))  # type: ignore[misc]

    def _forget(self, entry: Entry[Job, Answer]) -> None:
        with self._lock:
            entry.left = True
            if entry in self._queue:
                del self._queue[entry]
                self._changed.notify_all()
        self._open -= 1
        if self._open == 0 and self._idle is not None:
            self._idle.set()

    def _resolve(self, answers: Iterable[tuple[Entry[Job, Answer], Answer | BaseException]]) -> None:
        for entry, answer in answers:
            if entry.future.done():
                continue
            if isinstance(answer, BaseException):
                self.failed += 1
                # asyncio takes neither what ends a loop nor what ends a program
                plain = isinstance(answer, Exception) and not isinstance(answer, StopIteration)
                entry.future.set_exception(answer if plain else RuntimeError(f"{type(answer).__name__}: {answer}"))
            else:
                self.served += 1
                entry.future.set_result(answer)

    # ------------------------------------------------------------ the thread's side

    def _main(self, number: int) -> None:
        while not self._closed:
            try:
                self._turn(number)
            except BaseException as error:  # ours; but whoever waits must hear of it, and the others go on
                log.exception("%s: a batch could not be computed", self.name)
                self._deliver([(entry, error) for entry in self._hands(number)])
                self._broken(number)

    def _turn(self, number: int) -> None:
        """One piece of work of this thread, or the wait for one."""
        raise NotImplementedError

    def _hands(self, number: int) -> list[Entry[Job, Answer]]:
        """What this thread has taken out of the queue and not answered."""
        return list(self._running)

    def _arrived(self, entries: Sequence[Entry[Job, Answer]]) -> None:
        """These are in the queue now; `_lock` is held."""

    def _broken(self, number: int) -> None:
        """After an error of ours: this thread begins anew."""

    def _sleep(self, seconds: float | None = None) -> None:
        """Until something changes; `_lock` is held."""
        self._changed.wait(seconds)

    def _begin(self, entries: Iterable[Entry[Job, Answer]]) -> None:
        """They leave the queue for the thread; `_lock` is held."""
        for entry in entries:
            self._queue.pop(entry, None)
            self._running[entry] = None

    def _deliver(self, answers: Sequence[tuple[Entry[Job, Answer], Answer | BaseException]]) -> None:
        if not answers:
            return
        with self._lock:
            for entry, _ in answers:
                self._queue.pop(entry, None)
                self._running.pop(entry, None)
        self._tell(self._resolve, answers)

    def _tell(self, function: Callable[..., None], *arguments: object) -> None:
        """Have the loop do something, as long as there is one."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # it is closed: nobody waits any more
            self._closed = True

    def _observed(self, numbers: Numbers) -> None:
        if numbers.jobs:
            self._each += NEWEST * (numbers.computed / numbers.jobs - self._each)
        if self.observe is not None:
            try:
                self.observe(numbers)
            except Exception:
                log.exception("%s: what measures has failed", self.name)
