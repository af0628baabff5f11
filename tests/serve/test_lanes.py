"""Two batches of one model at a time: the same answers, both at work, and nobody beside who records."""

from __future__ import annotations

import asyncio
import random
import threading
import time

import pytest
import torch
from looping import looping
from seeded import seed as seed
from translators import sentences, translator

from jumok.serve.lanes import Lane, Turns
from jumok.serve.translating import TranslationWorker
from jumok.serve.waiting import Room
from jumok.tasks.wishes import Wishes


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_both_lanes_work_and_the_answers_are_those_of_one(kind: str, seed: int) -> None:
    translating, chance = translator(kind, precise=True), random.Random(seed)
    lines = sentences(60)
    wishes = [Wishes(beam=chance.randint(1, 4), max_length=12) for _ in range(3)]
    asked = [chance.choice(wishes) for _ in lines]
    expected = [translating.found([line], wish)[0] for line, wish in zip(lines, asked, strict=True)]
    worker, both = TranslationWorker("test", translating, Room(waiting=100), lanes=2), False
    worker.places = 8
    step = worker._step

    def watched(lane: Lane, search: object) -> None:
        nonlocal both
        both = both or all(each.live for each in worker.lanes)
        step(lane, search)  # type: ignore[arg-type]

    worker._step = watched  # type: ignore[method-assign, assignment]

    async def main() -> None:
        worker.start(asyncio.get_running_loop())
        futures = [worker.accept([line], wish)[0] for line, wish in zip(lines, asked, strict=True)]
        found = await asyncio.wait_for(asyncio.gather(*futures), 60)
        for ours, theirs in zip(found, expected, strict=True):
            assert [one.text for one in ours] == [one.text for one in theirs]
            assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-9)
        await worker.drain()
        worker.close()

    looping(main())
    assert both


def test_who_calls_has_the_model_alone() -> None:
    translating = translator("lstm", wordy=True)
    worker = TranslationWorker("test", translating, Room(waiting=100), lanes=2)
    worker.places = 4
    stepping = threading.Semaphore(2)
    step, seen = worker._step, list[bool]()

    def counted(lane: Lane, search: object) -> None:
        with stepping:
            step(lane, search)  # type: ignore[arg-type]

    worker._step = counted  # type: ignore[method-assign, assignment]

    def alone(_: object) -> None:
        held = [stepping.acquire(blocking=False) for _ in range(2)]  # both are free only when nobody steps
        time.sleep(0.005)
        seen.append(all(held))
        for one in held:
            if one:
                stepping.release()

    async def main() -> None:
        worker.start(asyncio.get_running_loop())
        futures = worker.accept(sentences(40), Wishes(beam=2, max_length=30))
        for _ in range(5):
            await worker.call(alone)
        await asyncio.wait_for(asyncio.gather(*futures), 60)
        worker.close()

    looping(main())
    assert seen == [True] * 5


def test_one_who_asks_alone_has_all_threads() -> None:
    translating = translator("lstm", wordy=True)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        worker = TranslationWorker("test", translating, Room(waiting=100), lanes=2)
    finally:
        torch.set_num_threads(before)
    used, place = list[tuple[int, int, bool]](), worker._share

    def noted(lane: Lane) -> int:
        used.append((lane.number, place(lane), worker.lanes[1].busy))
        return used[-1][1]

    worker._share, worker.places = noted, 4  # type: ignore[method-assign]

    async def main() -> None:
        worker.start(asyncio.get_running_loop())
        await worker.accept(sentences(1))[0]
        assert {one[:2] for one in used} == {(0, 2)}
        await asyncio.gather(*worker.accept(sentences(40), Wishes(max_length=20)))
        worker.close()

    looping(main())
    assert {threads for number, threads, _ in used if number == 1} == {1}


def test_turns() -> None:
    turns, inside, wrong = Turns(), list[int](), list[str]()

    def sharing() -> None:
        for _ in range(200):
            with turns.shared():
                inside.append(1)
                if alone.is_set():
                    wrong.append("beside one who is alone")
                inside.pop()

    alone = threading.Event()
    threads = [threading.Thread(target=sharing) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        with turns.alone():
            alone.set()
            if inside:
                wrong.append("somebody is inside")
            alone.clear()
    for thread in threads:
        thread.join(20)
    assert not wrong
