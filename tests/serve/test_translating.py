"""What the worker answers is what `found` answers, in whatever company, and whoever leaves in between."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from looping import looping
from seeded import seed as seed
from translators import CPU, sentences, translator

from jumok import api
from jumok.errors import BadInput, Failure
from jumok.models.compiled import CompiledTransformer
from jumok.search import Decoding
from jumok.serve.searching import Running
from jumok.serve.translating import Piece, TranslationWorker
from jumok.serve.waiting import Closing, Full, Late, Numbers, Room
from jumok.tasks.engine import Engine
from jumok.tasks.translator import EMPTY, TooLong, Translation, Translator
from jumok.tasks.wishes import BadSentence, Wishes

Work = Callable[[TranslationWorker], Awaitable[Any]]


def served(translating: Any, work: Work, room: Room = Room(waiting=10_000, wait=0.001)) -> TranslationWorker:
    """Run `work` with a worker of its own; in the end it is whole, idle and has let go of everything."""
    worker = TranslationWorker("test", translating, room, random.SystemRandom().choice([1, 2]))

    async def main() -> None:
        worker.start(asyncio.get_running_loop())
        await asyncio.wait_for(work(worker), 60)
        assert worker.alive
        await asyncio.wait_for(worker.drain(), 60)
        for _ in range(400):  # what was cancelled last is dropped at the next step
            if not worker.running:
                break
            await asyncio.sleep(0.005)
        assert (worker.waiting, worker.running) == (0, 0)
        worker.close()
        for lane in worker.lanes:
            assert not lane.entries
            assert not lane.again
            assert not lane.groups
            assert lane.search is None

    looping(main())
    return worker


def asked(chance: random.Random, translating: Translator, words: list[str]) -> Wishes:
    """Anything that can be wished for, with words that the model can write."""
    if chance.random() < 0.25:
        drawn = {
            "temperature": chance.choice([0.5, 1.0, 1.5]),
            "top_k": chance.choice([0, 3]),
            "seed": chance.randrange(9),
        }
        return Wishes(nbest=chance.randint(1, 3), sample=True, first=chance.choice([0, 5]), **drawn)
    beam = chance.choice([None, 1, 2, 4])
    more: dict[str, Any] = {}
    if chance.random() < 0.3:
        more["prefix"] = chance.choice(words)
    if chance.random() < 0.3:
        more["forbid"] = [chance.choice(words)]
    if chance.random() < 0.2 and "forbid" not in more:
        more["require"] = chance.sample(words, chance.randint(1, 2))
    if chance.random() < 0.3:
        more["coverage_penalty"] = 0.3
    if chance.random() < 0.3:
        more["no_repeat_ngram"] = 3
    if chance.random() < 0.3:
        more["min_length"] = 4
    try:
        return Wishes(
            nbest=chance.randint(1, beam or 2),
            beam=beam,
            length_penalty=chance.choice([None, 0.0, 0.6]),
            too_long=chance.choice(["error", "truncate", "skip"]),
            **more,
        )
    except BadInput:  # a prefix that holds what is forbidden
        return Wishes()


def expected(translating: Translator, text: str, number: int, wishes: Wishes) -> list[Translation] | BadInput | Failure:
    """As a call of `found` gives it whose sentence of this number it is."""
    try:
        return translating.found([""] * number + [text], wishes)[number]
    except (BadInput, Failure) as error:
        return error


def assert_same(got: Any, want: Any, near: float = 1e-9) -> None:
    if isinstance(want, Exception):
        assert type(got) is type(want)
        assert str(got) == str(want)
        return
    assert [one.text for one in got] == [one.text for one in want]
    assert [one.ids for one in got] == [one.ids for one in want]
    assert [one.score for one in got] == pytest.approx([one.score for one in want], abs=near)
    assert [one.finished for one in got] == [one.finished for one in want]


@pytest.mark.parametrize("model", ["transformer", "lstm"])
def test_any_mix_of_requests_is_answered_as_each_alone(model: str, seed: int) -> None:
    chance = random.Random(seed)
    translating = translator(model, precise=True, wordy=True)
    lines = [*sentences(12), "", "  ", "word " * 250]
    words = [word for text in translating.translate(lines[:6], max_length=5) for word in text.split()] or ["chat"]
    requests = []
    for _ in range(14):
        texts = [chance.choice(lines) for _ in range(chance.randint(1, 4))]
        requests.append((texts, asked(chance, translating, words)))
    want = [[expected(translating, text, n, wishes) for n, text in enumerate(texts)] for texts, wishes in requests]

    async def work(worker: TranslationWorker) -> None:
        async def ask(texts: list[str], wishes: Wishes) -> list[Any]:
            await asyncio.sleep(chance.random() * 0.2)
            if len(texts) == 1 and chance.random() < 0.7:
                return [await last(worker.stream(texts[0], wishes))]
            futures = worker.accept(texts, wishes)
            if chance.random() < 0.3:  # somebody else, who leaves again
                others = worker.accept([chance.choice(lines) for _ in range(3)], wishes)
                await asyncio.sleep(chance.random() * 0.05)
                for other in others:
                    other.cancel()
            return await asyncio.gather(*futures, return_exceptions=True)

        got = await asyncio.gather(*(ask(*request) for request in requests))
        for answers, wanted in zip(got, want, strict=True):
            for answer, one in zip(answers, wanted, strict=True):
                assert_same(answer, one)

    places = Room(waiting=1000, sentences=chance.choice([1, 3, 8]), tokens=chance.choice([60, 400, 8192]), wait=0.001)
    served(translating, work, places)


async def last(pieces: Any) -> Any:
    """The n-best of a stream, whose texts are checked on the way."""
    before, final = "", None
    try:
        async for piece in pieces:
            assert piece.text.startswith(before)
            before, final = piece.text, piece.final
    except (BadInput, Failure) as error:
        return error
    assert final is not None
    assert final[0].text == before
    return final


def test_the_fast_kernels_answer_the_same(seed: int) -> None:
    chance = random.Random(seed)
    translating = translator("transformer", wordy=True)
    translating.engine = Engine(translating.models, CPU, fast=True)
    lines = sentences(30)
    want = translating.found(lines, Wishes(beam=3))

    async def work(worker: TranslationWorker) -> None:
        async def ask(line: str) -> list[Translation]:
            await asyncio.sleep(chance.random() * 0.1)
            return await worker.accept([line], Wishes(beam=3))[0]

        got = await asyncio.gather(*map(ask, lines))
        for one, other in zip(got, want, strict=True):  # another company may decide a tie
            assert one[0].score == pytest.approx(other[0].score, abs=1e-4)
        assert sum(one[0].text == other[0].text for one, other in zip(got, want, strict=True)) >= len(lines) - 2

    worker = served(translating, work, Room(sentences=8))
    if isinstance(translating.engine.stepper, CompiledTransformer):
        assert worker.share < 1


def test_the_packaged_run_translates_what_comes_in_any_order() -> None:
    model = api.load_translator(None, "cpu")
    lines = sentences(60)
    want = [one[0].text for one in model.found(lines, Wishes())]

    async def work(worker: TranslationWorker) -> None:
        order = random.sample(range(len(lines)), len(lines))
        got = await asyncio.gather(*(worker.accept([lines[place]])[0] for place in order))
        assert [one[0].text for one in got] == [want[place] for place in order]
        written = await worker.call(lambda loaded: loaded.attend(lines[0]).written)
        assert written == want[0]

    worker = served(model, work)
    assert worker.served == 61


@pytest.mark.parametrize("kind", ["byte", "character", "bpe"])
@pytest.mark.parametrize("wishes", [{"beam": 1}, {"beam": 4, "nbest": 3}, {"sample": True, "nbest": 2}])
def test_a_stream_grows_and_ends_in_the_translation(kind: str, wishes: dict[str, Any], seed: int) -> None:
    translating = translator("lstm", kind, precise=True, wordy=True)
    lines = sentences(4)
    want = [translating.found([line], Wishes(**wishes))[0] for line in lines]
    seen: list[list[Piece]] = []

    async def work(worker: TranslationWorker) -> None:
        async def watch(line: str) -> list[Piece]:
            return [piece async for piece in worker.stream(line, Wishes(**wishes))]

        others = worker.accept(sentences(5))
        seen.extend(await asyncio.gather(*map(watch, lines)))
        await asyncio.gather(*others)

    served(translating, work)
    for pieces, one in zip(seen, want, strict=True):
        assert_same(pieces[-1].final, one)
        assert pieces[-1].text == one[0].text
        assert all(piece.final is None for piece in pieces[:-1])
        for before, after in pairwise(pieces):
            assert after.text.startswith(before.text)
    if wishes == {"beam": 1} and kind != "byte":
        assert sum(map(len, seen)) > len(seen)  # some of it came before the end


def test_a_stream_that_is_closed_frees_its_row() -> None:
    translating = translator("lstm", "character", wordy=True)

    async def work(worker: TranslationWorker) -> None:
        pieces = worker.stream(sentences(1)[0], Wishes(max_length=3000, beam=1))
        await anext(pieces)
        assert worker.running == 1
        await pieces.aclose()  # type: ignore[attr-defined]
        for _ in range(1000):
            if not worker.running:
                break
            await asyncio.sleep(0.002)
        assert worker.running == 0
        assert (await worker.accept(["cat"], Wishes(max_length=5))[0])[0].ids

    assert served(translating, work).cancelled == 1


def test_what_is_wrong_is_told_to_whom_it_concerns() -> None:
    translating = translator("lstm", wordy=True)
    line = sentences(1)[0]

    async def work(worker: TranslationWorker) -> None:
        good, long, empty = worker.accept([line, "word " * 250, "  "], Wishes(nbest=2))
        assert len(await good) == 2
        assert await empty == [EMPTY, EMPTY]
        with pytest.raises(TooLong, match="sentence 2 has"):
            await long
        for future in worker.accept([line, line], Wishes(), tag="de"):
            with pytest.raises(BadInput, match="tag"):
                await future
        with pytest.raises(BadSentence, match="its prefix"):
            await worker.accept([line], Wishes(prefix="a a a", max_length=3))[0]
        with pytest.raises(BadInput, match="list of texts"):
            worker.accept(line)
        with pytest.raises(BadInput, match="tag"):
            await anext(worker.stream(line, Wishes(), tag="de"))
        with pytest.raises(ZeroDivisionError):
            await worker.call(lambda loaded: 1 / 0)

    served(translating, work)


def test_surrogates_controls_and_other_odd_texts_are_texts() -> None:
    translating = translator("lstm", wordy=True)

    async def work(worker: TranslationWorker) -> None:
        odd = ["\ud800", "\x00\x01", "<script>alert(1)</script>", "\u202e abc", "a\nb\tc", "🇰🇷" * 20]
        assert len(await asyncio.gather(*worker.accept(odd, Wishes(max_length=6)))) == len(odd)

    served(translating, work)


def test_a_step_that_fails_hurts_only_whose_fault_it_is(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Nobody knows whose it was: all are searched alone, and one of them fails again."""
    chance = random.Random(seed)
    translating = translator("lstm", precise=True, wordy=True)
    lines = sentences(8)
    bad = chance.choice(lines)
    want = translating.found(lines, Wishes())
    step = Running.step

    def failing(self: Running) -> Any:
        if any(asking.sentence.text == bad for asking in self.rows) and chance.random() < 0.5:
            raise Failure("not a number")
        return step(self)

    monkeypatch.setattr(Running, "step", failing)

    async def work(worker: TranslationWorker) -> None:
        answers = await asyncio.gather(*worker.accept(lines), return_exceptions=True)
        for line, answer, one in zip(lines, answers, want, strict=True):
            if line == bad and isinstance(answer, Exception):
                assert isinstance(answer, Failure)
            else:
                assert_same(answer, one)

    served(translating, work)


def test_rows_that_cannot_be_added_hurt_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    translating = translator("lstm", precise=True, wordy=True)
    lines = sentences(6)
    want = translating.found(lines, Wishes())
    long = max(len(row) for row in translating.cut(lines))
    add = Decoding.add

    def failing(self: Decoding, batch: Any, options: Any) -> list[int]:
        if int(batch.lengths.max()) == long + 1:
            raise MemoryError("too much")
        return add(self, batch, options)

    monkeypatch.setattr(Decoding, "add", failing)

    async def work(worker: TranslationWorker) -> None:
        answers = await asyncio.gather(*worker.accept(lines), return_exceptions=True)
        for row, answer, one in zip(translating.cut(lines), answers, want, strict=True):
            if len(row) == long:
                assert isinstance(answer, MemoryError)
            else:
                assert_same(answer, one)

    served(translating, work)


def test_an_error_of_our_own_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    translating = translator("lstm", wordy=True)
    lines = sentences(3)

    async def work(worker: TranslationWorker) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(worker, "_join", lambda lane: 1 / 0)
            # before they are searched they wait on; those in its hands are told
            futures = worker.accept(lines)
            await asyncio.sleep(0.05)
        assert len(await asyncio.gather(*futures)) == 3
        with monkeypatch.context() as broken:
            broken.setattr(worker, "_send", lambda lane, search: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await worker.accept(lines[:1])[0]
        assert await worker.accept(lines[:1])[0]

    served(translating, work)


def test_full_late_and_closing() -> None:
    translating = translator("lstm", "character", wordy=True)
    line, endless = sentences(1)[0], Wishes(max_length=20_000, beam=1)

    async def work(worker: TranslationWorker) -> None:
        (running,) = worker.accept([line], endless)
        while not worker.running:
            await asyncio.sleep(0.001)
        waiting = worker.accept([line] * 3, endless, None, 0.1)  # there is one place
        with pytest.raises(Full):
            worker.accept([line])
        with pytest.raises(Full):
            worker.stream(line)
        for future in waiting:
            with pytest.raises(Late):
                await future
        (late,) = worker.accept([line], endless, None, 0.05)
        with pytest.raises(Late):
            await late
        running.cancel()
        short = worker.accept([line] * 2, Wishes(max_length=4))
        draining = asyncio.ensure_future(worker.drain())
        await asyncio.sleep(0)
        with pytest.raises(Closing):
            worker.accept([line])
        with pytest.raises(Closing):
            worker.stream(line)
        assert len(await asyncio.gather(*short)) == 2
        await draining

    worker = served(translating, work, Room(waiting=3, sentences=1, wait=0.001))
    assert worker.late == 4


def test_a_row_that_is_late_leaves_the_batch() -> None:
    translating = translator("lstm", "character", wordy=True)

    async def work(worker: TranslationWorker) -> None:
        with pytest.raises(Late):
            await worker.accept(sentences(1), Wishes(max_length=20_000, beam=1), None, 0.1)[0]
        began = time.monotonic()
        while worker.running:
            assert time.monotonic() - began < 5
            await asyncio.sleep(0.002)

    served(translating, work)


def test_new_ones_join_a_batch_that_runs() -> None:
    translating = translator("lstm", "character", wordy=True)

    async def work(worker: TranslationWorker) -> None:
        (slow,) = worker.accept(sentences(1), Wishes(max_length=5_000, beam=1))
        while not worker.running:
            await asyncio.sleep(0.001)
        await worker.accept(["cat"], Wishes(max_length=3))[0]
        assert not slow.done()
        slow.cancel()

    served(translating, work)


def test_nobody_is_passed_over_for_those_of_better_length(seed: int) -> None:
    """However many others come, the oldest is in the next batch."""
    chance = random.Random(seed)
    translating = translator("lstm", wordy=True)
    short, long = "cat", " ".join(["cat"] * 40)

    async def work(worker: TranslationWorker) -> None:
        others = worker.accept([short] * 50, Wishes(max_length=6))
        (one,) = worker.accept([long], Wishes(max_length=6))
        more = worker.accept([short] * 200, Wishes(max_length=6))
        await one
        assert sum(future.done() for future in more) < 100
        await asyncio.gather(*others, *more)

    served(translating, work, Room(waiting=1000, sentences=chance.randint(2, 8)))


def test_engines_that_give_the_whole_at_once(seed: int) -> None:
    """Any engine of another name; of its refusals only those hear whom they concern."""
    translating = translator("lstm", precise=True, wordy=True)
    lines = sentences(9)
    want = translating.found(lines, Wishes(beam=2))

    class Other(Engine):
        name = "other"

        def search(self, rows: Any, size: int, sentences: Any = ()) -> Any:
            if any(options.sample for _, options in rows):
                raise BadInput("--sample: not with this engine")
            return super().search(rows, size, sentences)

    translating.engine = Other(translating.models, CPU)

    async def work(worker: TranslationWorker) -> None:
        good, bad = worker.accept(lines, Wishes(beam=2)), worker.accept(lines[:2], Wishes(sample=True))
        pieces = [piece async for piece in worker.stream(lines[0], Wishes(beam=2))]
        for answer, one in zip(await asyncio.gather(*good), want, strict=True):
            assert_same(answer, one)
        assert len(pieces) == 1
        assert_same(pieces[0].final, want[0])
        for future in bad:
            with pytest.raises(BadInput, match="--sample"):
                await future

    served(translating, work)


def test_watched_ones_grow_beside_whole_batches() -> None:
    """As on a GPU."""
    translating = translator("lstm", "character", precise=True, wordy=True)
    lines = sentences(6)
    want = translating.found(lines, Wishes(beam=1))

    async def work(worker: TranslationWorker) -> None:
        worker.whole = True
        watched = worker.stream(lines[0], Wishes(beam=1))
        answers = await asyncio.gather(*worker.accept(lines, Wishes(beam=1)), *worker.accept(lines[:2], Wishes(beam=2)))
        pieces = [piece async for piece in watched]
        for answer, one in zip(answers, want, strict=False):
            assert_same(answer, one)
        assert len(pieces) > 1
        assert_same(pieces[-1].final, want[0])

    served(translating, work)


def test_who_measures_hears_of_every_sentence() -> None:
    told: list[Numbers] = []

    async def work(worker: TranslationWorker) -> None:
        worker.observe = told.append
        await asyncio.gather(*worker.accept(sentences(20), Wishes(max_length=6)))

    served(translator("lstm", wordy=True), work, Room(sentences=8))
    assert sum(numbers.jobs for numbers in told) == 20
    assert all(1 <= numbers.jobs <= 8 and numbers.cost > 0 for numbers in told)


def test_memory_does_not_grow_and_idleness_costs_nothing(seed: int) -> None:
    chance = random.Random(seed)
    lines = sentences(10)

    async def work(worker: TranslationWorker) -> None:
        counts = []
        for turn in range(6):
            for number in range(20):
                wishes = Wishes(max_length=5, seed=turn * 100 + number, sample=True, forbid=[f"w{turn}x{number}"])
                futures = worker.accept(chance.sample(lines, 2), wishes)
                futures[0].cancel()
                await futures[1]
                del futures
            gc.collect()
            counts.append(len(gc.get_objects()))
        assert counts[-1] - counts[-2] < 500  # the first rounds fill what is remembered
        assert len(worker._known) <= 64
        before = time.process_time()
        await asyncio.sleep(0.3)
        assert time.process_time() - before < 0.1

    served(translator("lstm", wordy=True), work)


def test_the_thread_has_as_many_threads_as_the_process() -> None:
    async def work(worker: TranslationWorker) -> None:
        assert await worker.call(lambda loaded: torch.get_num_threads()) == torch.get_num_threads()
        assert await worker.call(lambda loaded: threading.current_thread().name) == "jumok-test"

    served(translator("lstm"), work)
