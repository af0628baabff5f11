"""Translations for many clients at once, with one model: sentences join a batch that is running, and leave it as soon
as they are done or nobody waits for them any more.

Which wait together is decided by length: the batch is filled around the sentence that has waited longest with those
whose lengths are nearest to its own, so that there is little padding and nobody is passed over for ever.

While all that wait find a place, they join at the next step: an answer comes soonest so. When more wait than fit, what
counts is how many are translated in a second, and new ones join when a share of the places is free. Where joining costs
little (the kernels of this house; a GPU, whose steps cost the same for few rows as for many) that is a quarter; where
it copies all that the others have read and written (other models on a CPU), all: the next batch begins when this one is
done, and is of one length.

Engines that give whole translations alone, and a GPU, whose search never leaves it (search/on_device.py), are given
whole batches. On a GPU those translations that somebody watches grow are still searched step by step.

On a CPU models that compute through PyTorch have two such batches under way when one is not enough (lanes.py).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch

from jumok.errors import BadInput
from jumok.models.compiled import CompiledTransformer
from jumok.serve.lanes import Group, Lane, Turns
from jumok.serve.pieces import Mailbox, Piece, pieces_of
from jumok.serve.searching import Asking, Running, alike, search_whole
from jumok.serve.waiting import Numbers, Room
from jumok.serve.worker import Entry, Worker
from jumok.tasks.translator import EMPTY, Translation, Translator
from jumok.tasks.wishes import Asked, Wishes
from jumok.trained import TrainedTranslator

SHARE, DEAR = 0.25, 1.0  # of the places that must be free before others join; where joining is dear
LANES = 2  # on a CPU: Python itself computes for one at a time, and more would wait for it
KEPT = 64  # different wishes whose options are remembered

Value = TypeVar("Value")


class Request:
    """What sentences that came together have in common."""

    def __init__(self, wishes: Wishes, tag: str | None) -> None:
        self.tag = tag
        # as tuples wishes can be compared
        self.wishes = replace(wishes, require=tuple(wishes.require), forbid=tuple(wishes.forbid))

    @property
    def key(self) -> tuple[Wishes, str | None]:
        """Equal where the same is asked."""
        return self.wishes, self.tag


class Wanted:
    """A sentence of a request; or something else to be done with the translator (`call`)."""

    def __init__(
        self,
        asking: Asking | None = None,
        request: Request | None = None,
        mailbox: Mailbox | None = None,
        call: Callable[[TrainedTranslator], Any] | None = None,
    ) -> None:
        self.asking, self.request, self.mailbox, self.call = asking, request, mailbox, call
        self.sent = ""
        self.alone = False  # its batch has failed: it is searched by itself


Waiting = Entry[Wanted, Any]


class TranslationWorker(Worker[Wanted, Any]):
    """Translates with a loaded run. What comes out is what `TrainedTranslator.found` gives for the same request."""

    def __init__(self, name: str, translator: TrainedTranslator, room: Room, lanes: int | None = None) -> None:
        """`lanes`: how many batches may be under way; None: as many as are worth it."""
        on_gpu, ours = translator.device.type == "cuda", translator.engine.name == "torch"
        # the kernels of this house share a step among threads better than two batches would
        cheap = on_gpu or (ours and isinstance(translator.engine.stepper, CompiledTransformer))
        self.threads = torch.get_num_threads()
        super().__init__(name, room, lanes or (1 if cheap or not ours else min(LANES, self.threads)))
        self.translator = translator
        self.steps = ours  # whether it can be seen how a translation grows
        self.whole = on_gpu or not ours  # whether those that nobody watches are searched as a whole
        self.share = SHARE if cheap else DEAR
        batch = room.sentences if self.whole else min(room.sentences, translator.batch(Wishes()))
        self.places = batch  # of each lane
        self.lanes = [Lane(number) for number in range(self.count)]
        self._turns, self._choosing = Turns(), threading.Lock()
        self._known: OrderedDict[tuple[Wishes, str | None], tuple[Translator, Asked]] = OrderedDict()
        self._fresh: list[Waiting] = []  # what has come since the last look; shared with the loop, under `_lock`
        self._ready: list[Waiting] = []  # cut into tokens, in the order they came; under `_choosing`

    # ------------------------------------------------------------ the loop's side

    def accept(
        self, texts: Sequence[str], wishes: Wishes = Wishes(), tag: str | None = None, seconds: float | None = None
    ) -> list[asyncio.Future[list[Translation]]]:
        """For each text its n-best: all or nothing, as `Batcher.accept`. What is wrong with a text is its future's."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise BadInput("accept() takes a list of texts")
        request = Request(wishes, tag)
        wanted = [Wanted(Asking(text, number), request) for number, text in enumerate(texts)]
        return [entry.future for entry in self._accept([(one, 1) for one in wanted], seconds)]

    def stream(
        self, text: str, wishes: Wishes = Wishes(), tag: str | None = None, seconds: float | None = None
    ) -> AsyncIterator[Piece]:
        """The translation as it grows: each text begins with the one before it, and the last `Piece` has the n-best.

        It is accepted (or refused) by the call itself; what is wrong with the text comes with the first piece. Whoever
        closes the iterator gives the place back. A client that is slow misses steps, but no text.
        """
        mailbox = Mailbox()
        wanted = Wanted(Asking(text, 0), Request(wishes, tag), mailbox)
        (entry,) = self._accept([(wanted, 1)], seconds)
        entry.future.add_done_callback(lambda future: mailbox.changed.set())
        return pieces_of(entry.future, mailbox)

    def call(
        self, function: Callable[[TrainedTranslator], Value], seconds: float | None = None
    ) -> asyncio.Future[Value]:
        """Something else to be done with the translator (`attend`), in its thread, between two steps."""
        (entry,) = self._accept([(Wanted(call=function), 1)], seconds)
        future: asyncio.Future[Value] = entry.future
        return future

    # ------------------------------------------------------------ the thread's side

    def _turn(self, number: int) -> None:
        lane, fresh = self.lanes[number], list[Waiting]()
        with self._lock:
            if not (self._closed or lane.busy or self._calls(lane)):
                self._sleep()
                return
            if number == 0:
                fresh, self._fresh = self._fresh, []
        with torch.inference_mode():
            self._prepare(fresh)
            with self._turns.shared():
                lane.use(self._share(lane))
                self._drop(lane)
                self._join(lane)
                if lane.search is not None:
                    self._step(lane, lane.search)

    def _calls(self, lane: Lane) -> bool:
        """Whether there is something to do for a lane that has nothing: the first has the first choice."""
        if lane.number == 0:
            return bool(self._fresh or self._ready)
        return len(self._ready) > self.places - self.lanes[0].live

    def _share(self, lane: Lane) -> int:
        """Of the threads. Only the first lane ever has more than its own: OpenMP keeps those that a lane has had, and
        with more of them than cores each begins to sleep between any two operations, which doubles the time."""
        alone = lane.number == 0 and not any(other.busy for other in self.lanes[1:])
        return self.threads if alone else max(1, self.threads // self.count)

    def _arrived(self, entries: Sequence[Waiting]) -> None:
        self._fresh += entries

    def _hands(self, number: int) -> list[Waiting]:
        mine = list(self.lanes[number].entries.values())
        if number == 0:  # and what is in no lane
            others = {entry for lane in self.lanes for entry in list(lane.entries.values())}
            mine += [entry for entry in list(self._running) if entry not in others]
        return mine

    def _broken(self, number: int) -> None:
        self.lanes[number].clear()
        with self._choosing, self._lock:
            self._ready, self._fresh = [], list(self._queue)

    def _prepare(self, fresh: Sequence[Waiting]) -> None:
        """Cut what has come into tokens, and answer what needs no search."""
        answers: list[tuple[Waiting, Any]] = []
        ready: list[Waiting] = []
        together: dict[tuple[Wishes, str | None], list[Waiting]] = {}
        for entry in fresh:
            if entry.left:
                continue
            if entry.job.call is not None:
                with self._lock:
                    self._begin([entry])
                with self._turns.alone():
                    answers.append((entry, _tried(entry.job.call, self.translator)))
            elif entry.job.request is not None:
                together.setdefault(entry.job.request.key, []).append(entry)
        for entries in together.values():
            try:
                writer, asked = self._writer(entries[0].job.request)
                rows = writer.cut([entry.job.asking.sentence.text for entry in entries])  # type: ignore[union-attr]
            except Exception as error:
                if len(entries) == 1:
                    answers.append((entries[0], error))
                else:  # whose fault it was is seen when each is cut by itself
                    for entry in entries:
                        self._prepare([entry])
                continue
            for entry, row in zip(entries, rows, strict=True):
                asking = entry.job.asking
                assert asking is not None
                try:
                    if asking.prepare(writer, asked, row):
                        ready.append(entry)
                    else:
                        answers.append((entry, [EMPTY] * asked.wishes.nbest))
                except Exception as error:
                    answers.append((entry, error))
        if ready:
            with self._choosing, self._lock:
                self._ready += ready
                self._changed.notify_all()
        self._deliver(answers)

    def _writer(self, request: Request | None) -> tuple[Translator, Asked]:
        assert request is not None
        key = request.key
        if key not in self._known:
            writer = self.translator.tagged(request.tag)
            self._known[key] = writer, writer.asked(request.wishes)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    def _drop(self, lane: Lane) -> None:
        """Rows that nobody waits for leave the batch."""
        gone = [asking for asking, entry in lane.entries.items() if entry.left]
        if not gone:
            return
        for asking in gone:
            if lane.search is not None:
                lane.search.cancel(asking)
            self._left(lane, asking)
        lane.again = [asking for asking in lane.again if asking in lane.entries]
        if lane.search is not None and not lane.search.live:
            lane.search = None

    def _left(self, lane: Lane, asking: Asking) -> Waiting:
        """It is searched no more."""
        entry = lane.entries.pop(asking)
        with self._lock:
            self._running.pop(entry, None)
        group = lane.groups.pop(asking, None)
        if group is not None:
            group.left -= 1
            if not group.left:
                seconds = time.monotonic() - group.began
                self._observed(Numbers(group.jobs, group.cost, group.waited, seconds))
        return entry

    # ------------------------------------------------------------ who joins

    def _join(self, lane: Lane) -> None:
        again, lane.again = lane.again, []
        chosen = self._chosen(lane, bool(again))
        if not chosen and not again:
            return
        now = time.monotonic()
        if chosen:
            wanted = [entry.job.asking for entry in chosen if entry.job.asking is not None]
            lane.entries.update(zip(wanted, chosen, strict=True))
            waited = now - min(entry.accepted for entry in chosen)
            about = Group(len(wanted), sum(one.cost for one in wanted), waited, now, len(wanted))
            lane.groups.update(dict.fromkeys(wanted, about))
            again += wanted
        watched = [one for one in again if self.steps and (not self.whole or lane.entries[one].job.mailbox)]
        if watched:
            if lane.search is None:
                lane.search = Running(self.translator)
            self._add(lane, lane.search, watched)
        stepwise = set(watched)
        for group in alike([one for one in again if one not in stepwise]):
            self._answer(lane, list(search_whole(self.translator, group).items()))

    def _chosen(self, lane: Lane, more: bool) -> list[Waiting]:
        """Those who join now: they are moved out of the queue."""
        with self._choosing:
            live, chosen = lane.live, list[Waiting]()
            free = self.places - live
            crowded = len(self._ready) > free
            full = live and (free < 1 or (crowded and free < self.share * self.places))
            if not self._ready or full or (lane.number and not self._calls(lane)):
                return []
            ready = self._ready = [entry for entry in self._ready if not entry.left]
            if not ready or any(entry.job.alone for entry in lane.entries.values()):
                return []
            if ready[0].job.alone:
                chosen = [] if live or more else ready[:1]
            else:
                chosen = self._near(ready, free, self.room.tokens - lane.cost, not live)
                left = self.room.wait - (time.monotonic() - ready[0].accepted)
                if len(chosen) == len(ready) < free and left > 0 and not live and not more and not self._draining:
                    with self._lock:
                        if not self._fresh:
                            self._sleep(left)
                    return []
            taken = set(chosen)
            self._ready = [entry for entry in ready if entry not in taken]
            with self._lock:
                self._begin(chosen)
                if self._ready:
                    self._changed.notify_all()  # another lane may have room for them
            return chosen

    def _near(self, ready: Sequence[Waiting], places: int, tokens: int, first: bool) -> list[Waiting]:
        """The oldest, and those whose lengths are nearest to its own, as many as fit; longest first."""

        def length(entry: Waiting) -> int:
            assert entry.job.asking is not None
            return entry.job.asking.length

        oldest = length(ready[0])
        nearest = sorted((entry for entry in ready if not entry.job.alone), key=lambda one: abs(length(one) - oldest))
        chosen: list[Waiting] = []
        for entry in nearest:
            asking = entry.job.asking
            assert asking is not None
            places -= len(asking.jobs)
            tokens -= asking.cost
            if (places < 0 or tokens < 0) and (chosen or not first):
                break
            chosen.append(entry)
        return sorted(chosen, key=lambda entry: -length(entry))

    def _add(self, lane: Lane, search: Running, group: Sequence[Asking]) -> None:
        try:
            search.add(group)
        except Exception as error:
            if len(group) == 1:
                self._answer(lane, [(group[0], error)])
                if not search.live:
                    lane.search = None
                return
            for asking in group:
                if lane.search is None:
                    lane.search = Running(self.translator)
                self._add(lane, lane.search, [asking])

    # ------------------------------------------------------------ what comes of it

    def _step(self, lane: Lane, search: Running) -> None:
        try:
            done = search.step()
        except Exception as error:
            self._failed(lane, error)
            return
        answers: list[tuple[Asking, Any]] = []
        for asking in done:
            results = _tried(asking.finish)
            if results is None:
                lane.again.append(asking)
            else:
                answers.append((asking, results))
        if not search.live:
            lane.search = None
        self._answer(lane, answers)
        self._send(lane, search)

    def _failed(self, lane: Lane, error: Exception) -> None:
        """A step could not be taken, and nobody knows whose fault it was: each is searched by itself, once."""
        lane.search = None
        askings = list(lane.entries)
        if len(askings) == 1:
            self._answer(lane, [(askings[0], error)])
            return
        for asking in askings:
            asking.forget()
        alone = [entry for entry in lane.entries.values() if not entry.left]
        for entry in alone:
            entry.job.alone = True
        with self._choosing, self._lock:  # back into the queue, before all others
            for entry in lane.entries.values():
                self._running.pop(entry, None)
            self._queue = dict.fromkeys([*alone, *self._queue])
            self._ready = alone + self._ready
            lane.clear()
            self._changed.notify_all()

    def _answer(self, lane: Lane, answers: Sequence[tuple[Asking, Any]]) -> None:
        self._deliver([(self._left(lane, asking), answer) for asking, answer in answers])

    def _send(self, lane: Lane, search: Running) -> None:
        """What is certain by now, to those who want to see it grow."""
        for asking, rows in search.rows.items():
            wanted = lane.entries[asking].job
            if wanted.mailbox is None:
                continue
            text = asking.certain(search.decoding, rows)
            if len(text) > len(wanted.sent):
                wanted.sent = text
                self._tell(wanted.mailbox.put, text)


def _tried(function: Callable[..., Value], *arguments: Any) -> Value | Exception:
    try:
        return function(*arguments)
    except Exception as error:
        return error
