"""How jobs are put together: in their order, within the limits, and no later than they must."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Sequence

from looping import looping
from seeded import seed as seed

from jumok.serve.batching import Batcher
from jumok.serve.waiting import Room


def batches_of(costs: Sequence[int], room: Room) -> list[list[int]]:
    """The batches that jobs of these costs are computed in, when all of them wait."""
    seen: list[list[int]] = []
    opened = threading.Event()

    def compute(jobs: Sequence[int]) -> list[int]:
        if jobs[0] < 0:
            opened.wait(20)
        else:
            seen.append(list(jobs))
        return list(jobs)

    worker: Batcher[int, int] = Batcher("test", compute, lambda job: 1 if job < 0 else costs[job], room)

    async def main() -> None:
        worker.start(asyncio.get_running_loop())
        before = worker.accept([-1])
        while not worker.running:
            await asyncio.sleep(0.001)
        futures = worker.accept(range(len(costs)))
        opened.set()
        assert await asyncio.gather(*before, *futures) == [-1, *range(len(costs))]
        worker.close()

    looping(main())
    return seen


def test_batches_keep_the_order_and_the_limits(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        costs = [chance.choice([1, 5, 30, 200]) for _ in range(chance.randint(1, 60))]
        room = Room(waiting=100, tokens=100, sentences=chance.randint(1, 9), wait=0)
        batches = batches_of(costs, room)
        assert [job for batch in batches for job in batch] == list(range(len(costs)))
        for batch, following in zip(batches, [*batches[1:], []], strict=True):
            cost = sum(costs[job] for job in batch)
            assert len(batch) <= room.sentences
            assert cost <= room.tokens or len(batch) == 1
            if following:  # it was full
                assert len(batch) == room.sentences or cost + costs[following[0]] > room.tokens


def test_a_lone_job_waits_for_company_but_not_for_long() -> None:
    sizes: list[int] = []

    def compute(jobs: Sequence[int]) -> list[int]:
        sizes.append(len(jobs))
        return list(jobs)

    worker: Batcher[int, int] = Batcher("test", compute, lambda job: 1, Room(wait=0.3, sentences=3))

    async def main() -> None:
        worker.start(asyncio.get_running_loop())
        began = time.monotonic()
        first = worker.accept([1])
        await asyncio.sleep(0.03)
        second = worker.accept([2])
        await asyncio.gather(*first, *second)
        assert 0.25 < time.monotonic() - began < 5
        began = time.monotonic()
        await asyncio.gather(*worker.accept([1]), *worker.accept([2, 3]))  # full: there is nobody to wait for
        assert time.monotonic() - began < 0.25
        worker.close()

    looping(main())
    assert sizes == [2, 3]
