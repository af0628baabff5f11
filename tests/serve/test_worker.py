"""Whatever jobs do and whenever clients leave: what is accepted is answered once, and the thread goes on."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from looping import looping
from seeded import seed as seed

from jumok.errors import BadInput
from jumok.serve.batching import Batcher
from jumok.serve.waiting import Closing, Full, Late, Numbers, Room

QUICK = Room(wait=0.0)


class Gate:
    """Doubles numbers, once it is opened; and remembers what it was given."""

    def __init__(self, is_open: bool = True) -> None:
        self.opened, self.entered = threading.Event(), threading.Event()
        self.batches: list[list[Any]] = []
        if is_open:
            self.opened.set()

    def __call__(self, jobs: Sequence[Any]) -> list[Any]:
        self.batches.append(list(jobs))
        self.entered.set()
        assert self.opened.wait(20)
        return [2 * job for job in jobs]


def served(
    compute: Callable[[Sequence[Any]], Any], work: Callable[[Batcher[Any, Any]], Awaitable[Any]], room: Room = QUICK
) -> Batcher[Any, Any]:
    """Run `work` with a batcher of its own, which is whole and idle in the end."""
    worker: Batcher[Any, Any] = Batcher("test", compute, lambda job: 1, room)

    async def main() -> None:
        worker.start(asyncio.get_running_loop())
        await asyncio.wait_for(work(worker), 30)
        assert worker.alive
        await asyncio.wait_for(worker.drain(), 30)
        await until(lambda: (worker.waiting, worker.running) == (0, 0))  # what came too late may still be computed
        worker.close()
        assert not worker.alive

    looping(main())
    return worker


async def until(true: Callable[[], bool]) -> None:
    for _ in range(2000):
        if true():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came true")


def test_each_job_has_its_own_answer(seed: int) -> None:
    chance = random.Random(seed)
    gate = Gate()

    async def work(worker: Batcher[int, int]) -> None:
        async def ask() -> None:
            await asyncio.sleep(chance.random() * 0.02)
            jobs = [chance.randrange(10**6) for _ in range(chance.randint(0, 9))]
            assert await asyncio.gather(*worker.accept(jobs)) == [2 * job for job in jobs]

        await asyncio.gather(*(ask() for _ in range(60)))

    worker = served(gate, work, Room(waiting=1000))
    assert worker.served == sum(len(batch) for batch in gate.batches)
    assert len(gate.batches) < worker.served  # some were computed together


def test_those_that_do_not_fit_are_refused_all_together() -> None:
    gate = Gate(is_open=False)

    async def work(worker: Batcher[int, int]) -> None:
        first = worker.accept([1])
        await until(gate.entered.is_set)
        kept = worker.accept([2, 3, 4])
        with pytest.raises(Full) as told:
            worker.accept([5, 6])
        assert 1 <= told.value.seconds <= 60
        assert worker.waiting == 3
        more = worker.accept([7])
        with pytest.raises(BadInput, match="at most 4"):
            worker.accept([0] * 5)
        gate.opened.set()
        assert await asyncio.gather(*first, *kept, *more) == [2, 4, 6, 8, 14]

    assert served(gate, work, Room(waiting=4, wait=0)).refused == 2


def test_a_client_that_leaves_frees_its_place_at_once() -> None:
    gate = Gate(is_open=False)

    async def work(worker: Batcher[int, int]) -> None:
        running = worker.accept([1])
        await until(gate.entered.is_set)
        waiting = worker.accept([2, 3])
        with pytest.raises(Full):
            worker.accept([4])
        waiting[0].cancel()
        instead = worker.accept([4])  # in the same breath
        running[0].cancel()
        gate.opened.set()
        assert await asyncio.gather(waiting[1], *instead) == [6, 8]
        with pytest.raises(asyncio.CancelledError):
            await running[0]

    worker = served(gate, work, Room(waiting=2, wait=0))
    assert [2] not in gate.batches
    assert all(2 not in batch for batch in gate.batches)
    assert worker.cancelled == 2


def test_time_passes_for_those_that_wait_and_those_that_are_computed() -> None:
    gate = Gate(is_open=False)

    async def work(worker: Batcher[int, int]) -> None:
        running = worker.accept([1], seconds=0.05)
        await until(gate.entered.is_set)
        late, patient = worker.accept([2], seconds=0.05), worker.accept([3])
        for one in (*running, *late):
            with pytest.raises(Late):
                await one
        assert worker.waiting == 1
        gate.opened.set()
        assert await patient[0] == 6

    assert served(gate, work).late == 2
    assert all(2 not in batch for batch in gate.batches)


def test_nobody_has_more_time_than_the_room_gives() -> None:
    gate = Gate(is_open=False)

    async def work(worker: Batcher[int, int]) -> None:
        with pytest.raises(Late):
            await worker.accept([1], seconds=1000)[0]
        gate.opened.set()

    served(gate, work, Room(seconds=0.05, wait=0))


@pytest.mark.parametrize("error", [ValueError, MemoryError, StopIteration, SystemExit, KeyboardInterrupt])
def test_a_job_that_raises_hurts_no_other(error: type[BaseException], seed: int) -> None:
    chance = random.Random(seed)
    bad = {chance.randrange(40) for _ in range(6)}

    def compute(jobs: Sequence[int]) -> list[int]:
        if bad.intersection(jobs):
            raise error("bad")
        return [2 * job for job in jobs]

    async def work(worker: Batcher[int, int]) -> None:
        found = await asyncio.gather(*worker.accept(range(40)), return_exceptions=True)
        for job, answer in enumerate(found):
            if job in bad:
                assert isinstance(answer, Exception)
                assert "bad" in str(answer)
            else:
                assert answer == 2 * job
        assert await worker.accept([99])[0] == 198

    assert served(compute, work).failed == len(bad)


def test_errors_in_the_place_of_answers_are_their_jobs() -> None:
    def compute(jobs: Sequence[int]) -> list[int | Exception]:
        return [BadInput(f"no {job}") if job % 2 else job for job in jobs]

    async def work(worker: Batcher[int, int]) -> None:
        even, odd = worker.accept([2, 3])
        assert await even == 2
        with pytest.raises(BadInput, match="no 3"):
            await odd

    served(compute, work)


def test_too_few_answers_are_an_error_of_those_who_wait() -> None:
    async def work(worker: Batcher[int, int]) -> None:
        for future in worker.accept([1, 2]):
            with pytest.raises(RuntimeError, match="0 answers to 1 jobs"):
                await future

    served(lambda jobs: [], work)


def test_draining_answers_all_and_takes_nothing_new() -> None:
    gate = Gate(is_open=False)

    async def work(worker: Batcher[int, int]) -> None:
        futures = worker.accept([1, 2, 3])
        draining = asyncio.ensure_future(worker.drain())
        await asyncio.sleep(0.01)
        with pytest.raises(Closing):
            worker.accept([4])
        assert not draining.done()
        gate.opened.set()
        assert await asyncio.gather(*futures) == [2, 4, 6]
        await draining

    served(gate, work)


def test_closing_leaves_nobody_without_an_answer() -> None:
    gate = Gate(is_open=False)
    worker: Batcher[int, int] = Batcher("test", gate, lambda job: 1, Room(sentences=1, wait=0))

    async def main() -> None:
        worker.start(asyncio.get_running_loop())
        futures = worker.accept([1, 2, 3])
        await until(gate.entered.is_set)
        threading.Timer(0.05, gate.opened.set).start()
        worker.close()
        for future in futures:
            with pytest.raises(Closing):
                await asyncio.wait_for(future, 5)
        with pytest.raises(Closing):
            worker.accept([4])
        await asyncio.wait_for(worker.drain(), 5)
        worker.close()

    looping(main())
    assert not worker.alive


def test_before_it_starts_nothing_is_accepted() -> None:
    with pytest.raises(Closing):
        Batcher("test", list, lambda job: 1, QUICK).accept([1])


def test_a_loop_that_is_gone_ends_the_thread() -> None:
    gate = Gate(is_open=False)
    worker: Batcher[int, int] = Batcher("test", gate, lambda job: 1, QUICK)

    async def main() -> None:
        worker.start(asyncio.get_running_loop())
        worker.accept([1])
        await until(gate.entered.is_set)

    looping(main())
    gate.opened.set()
    (thread,) = worker._threads
    thread.join(10)
    assert not worker.alive


def test_who_measures_is_told_and_may_fail() -> None:
    told: list[Numbers] = []

    def observe(numbers: Numbers) -> None:
        told.append(numbers)
        raise RuntimeError("full disk")

    async def work(worker: Batcher[int, int]) -> None:
        worker.observe = observe
        await asyncio.gather(*worker.accept([1, 2, 3]))
        assert await worker.accept([4])[0] == 8

    served(Gate(), work)
    assert sum(numbers.jobs for numbers in told) == 4
    assert all(numbers.waited >= 0 and numbers.computed >= 0 for numbers in told)


def test_an_idle_worker_sleeps() -> None:
    async def work(worker: Batcher[int, int]) -> None:
        await worker.accept([1])[0]
        await asyncio.sleep(0.05)
        before = time.process_time()
        await asyncio.sleep(0.3)
        assert time.process_time() - before < 0.1

    served(Gate(), work)


def test_nothing_is_kept_of_what_was_answered() -> None:
    class Heavy:
        def __mul__(self, other: int) -> int:
            return other

        __rmul__ = __mul__

    gate = Gate()

    async def work(worker: Batcher[Any, int]) -> None:
        seen = []
        for _ in range(20):
            jobs = [Heavy() for _ in range(5)]
            seen += [weakref.ref(job) for job in jobs]
            futures = worker.accept(jobs)
            futures[0].cancel()
            await asyncio.gather(*futures[1:])
            del jobs, futures
        gate.batches.clear()
        await worker.accept([1])[0]  # the thread has let go of the batch before
        gc.collect()
        assert sum(ref() is not None for ref in seen) <= 1

    served(gate, work)
