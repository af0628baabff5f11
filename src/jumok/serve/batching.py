"""Jobs that come one by one, computed many at a time.

A job waits for company only while nothing is computed, and then a few milliseconds; what comes while a batch is
computed is the next batch. Nobody is passed over: jobs are taken in the order they came, as many as fit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from jumok.serve.waiting import Numbers, Room
from jumok.serve.worker import Answer, Entry, Job, Worker


class Batcher(Worker[Job, Answer]):
    """`compute` gives an answer for each job, or an exception in its place; it may also raise, and is then given the
    jobs one by one. `cost` of a job is in tokens."""

    def __init__(
        self,
        name: str,
        compute: Callable[[Sequence[Job]], Sequence[Answer | Exception]],
        cost: Callable[[Job], int],
        room: Room,
    ) -> None:
        super().__init__(name, room)
        self.compute, self.cost = compute, cost

    def accept(self, jobs: Sequence[Job], seconds: float | None = None) -> list[asyncio.Future[Answer]]:
        """All or nothing: `Full` where they do not all fit, `Closing` after `drain`. To be called on the loop's thread.

        Whoever cancels a future gives its place back.
        """
        return [entry.future for entry in self._accept([(job, self.cost(job)) for job in jobs], seconds)]

    def _turn(self, number: int) -> None:
        batch = self._gathered()
        if not batch:
            return
        began = time.monotonic()
        answers = self._computed([entry.job for entry in batch])
        computed = time.monotonic() - began
        self._deliver(list(zip(batch, answers, strict=True)))
        cost = sum(entry.cost for entry in batch)
        self._observed(Numbers(len(batch), cost, began - batch[0].accepted, computed))

    def _gathered(self) -> list[Entry[Job, Answer]]:
        """The next batch, once it is full or its first job has waited long enough; none: look again."""
        with self._lock:
            batch, full = self._fitting()
            if not batch:
                if not self._closed:
                    self._sleep()
                return []
            left = self.room.wait - (time.monotonic() - batch[0].accepted)
            if not full and left > 0 and not self._draining:
                self._sleep(left)
                return []
            self._begin(batch)
            return batch

    def _fitting(self) -> tuple[list[Entry[Job, Answer]], bool]:
        """The first jobs of the queue that make a batch, and whether it is a full one."""
        batch: list[Entry[Job, Answer]] = []
        cost = 0
        for entry in self._queue:
            if batch and (len(batch) == self.room.sentences or cost + entry.cost > self.room.tokens):
                return batch, True
            batch.append(entry)
            cost += entry.cost
        return batch, len(batch) == self.room.sentences or cost >= self.room.tokens

    def _computed(self, jobs: Sequence[Job]) -> list[Answer | BaseException]:
        try:
            answers = list(self.compute(jobs))
            if len(answers) != len(jobs):
                raise RuntimeError(f"{self.name}: {len(answers)} answers to {len(jobs)} jobs")
            return answers  # type: ignore[return-value]
        except BaseException as error:
            if len(jobs) == 1:
                return [error]
        return [answer for job in jobs for answer in self._computed([job])]
