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
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from jumok.errors import BadInput
from jumok.models.compiled import CompiledTransformer
from jumok.serve.pieces import Mailbox, Piece, pieces_of
from jumok.serve.searching import Asking, Running, alike, search_whole
from jumok.serve.waiting import Numbers, Room
from jumok.serve.worker import Entry, Worker
from jumok.tasks.translator import EMPTY, Translation, Translator
from jumok.tasks.wishes import Asked, Wishes
from jumok.trained import TrainedTranslator

SHARE, DEAR = 0.25, 1.0  # of the places that must be free before others join; where joining is dear
KEPT = 64  # different wishes whose options are remembered

Value = TypeVar("Value")


class Request:
    """What sentences that came together have in common."""

    def __init__(self, wishes: Wishes, tag: str | None) -> None:
        self.tag = tag
        # as tuples wishes can be compared
        self.wishes = replace(wishes, require=tuple(wishes.require), forbid=tuple(wishes.forbid))


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


@dataclass
class Group:
    """Sentences that joined together, for those who measure."""

    jobs: int
    cost: int
    waited: float
    began: float
    left: int


class TranslationWorker(Worker[Wanted, Any]):
    """Translates with a loaded run. What comes out is what `TrainedTranslator.found` gives for the same request."""

    def __init__(self, name: str, translator: TrainedTranslator, room: Room) -> None:
        super().__init__(name, room)
        self.translator = translator
        on_gpu, ours = translator.device.type == "cuda", translator.engine.name == "torch"
        self.steps = ours  # whether it can be seen how a translation grows
        self.whole = on_gpu or not ours  # whether those that nobody watches are searched as a whole
        self.places = room.sentences if self.whole else min(room.sentences, translator.batch(Wishes()))
        # made here, so that the first to come does not wait for it
        cheap = on_gpu or (ours and isinstance(translator.engine.stepper, CompiledTransformer))
        self.share = SHARE if cheap else DEAR
        self._known: OrderedDict[tuple[Wishes, str | None], tuple[Translator, Asked]] = OrderedDict()
        self._search: Running | None = None
        self._entries: dict[Asking, Waiting] = {}  # of those that are searched
        self._fresh: list[Waiting] = []  # what has come since the last look; shared with the loop, under `_lock`
        self._ready: list[Waiting] = []  # cut into tokens, in the order they came
        self._again: list[Asking] = []  # searches that have to be done once more
        self._groups: dict[Asking, Group] = {}

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

    def _turn(self) -> None:
        with self._lock:
            if not self._queue and not self._running and not self._closed:
                self._sleep()
            fresh, self._fresh = self._fresh, []
        with torch.inference_mode():
            self._prepare(fresh)
            self._drop()
            self._join()
            if self._search is not None:
                self._step(self._search)

    def _arrived(self, entries: Sequence[Waiting]) -> None:
        self._fresh += entries

    def _broken(self) -> None:
        self._search = None
        with self._lock:
            self._ready, self._fresh = [], list(self._queue)
        self._entries.clear()
        self._groups.clear()
        self._again.clear()

    def _prepare(self, fresh: Sequence[Waiting]) -> None:
        """Cut what has come into tokens, and answer what needs no search."""
        answers: list[tuple[Waiting, Any]] = []
        together: dict[Request, list[Waiting]] = {}
        for entry in fresh:
            if entry.left:
                continue
            if entry.job.call is not None:
                with self._lock:
                    self._begin([entry])
                answers.append((entry, _tried(entry.job.call, self.translator)))
            elif entry.job.request is not None:
                together.setdefault(entry.job.request, []).append(entry)
        for request, entries in together.items():
            try:
                writer, asked = self._writer(request)
                rows = writer.cut([entry.job.asking.sentence.text for entry in entries])  # type: ignore[union-attr]
            except Exception as error:
                answers += [(entry, error) for entry in entries]
                continue
            for entry, row in zip(entries, rows, strict=True):
                asking = entry.job.asking
                assert asking is not None
                try:
                    if asking.prepare(writer, asked, row):
                        self._ready.append(entry)
                    else:
                        answers.append((entry, [EMPTY] * asked.wishes.nbest))
                except Exception as error:
                    answers.append((entry, error))
        self._deliver(answers)

    def _writer(self, request: Request) -> tuple[Translator, Asked]:
        key = request.wishes, request.tag
        if key not in self._known:
            writer = self.translator.tagged(request.tag)
            self._known[key] = writer, writer.asked(request.wishes)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    def _drop(self) -> None:
        """Rows that nobody waits for leave the batch."""
        gone = [asking for asking, entry in self._entries.items() if entry.left]
        if not gone:
            return
        for asking in gone:
            if self._search is not None:
                self._search.cancel(asking)
            self._left(asking)
        self._again = [asking for asking in self._again if asking in self._entries]
        if self._search is not None and not self._search.live:
            self._search = None

    def _left(self, asking: Asking) -> Waiting:
        """It is searched no more."""
        entry = self._entries.pop(asking)
        with self._lock:
            self._running.pop(entry, None)
        group = self._groups.pop(asking, None)
        if group is not None:
            group.left -= 1
            if not group.left:
                seconds = time.monotonic() - group.began
                self._observed(Numbers(group.jobs, group.cost, group.waited, seconds))
        return entry

    # ------------------------------------------------------------ who joins

    def _join(self) -> None:
        again, self._again = self._again, []
        chosen = self._chosen(bool(again))
        if not chosen and not again:
            return
        now = time.monotonic()
        if chosen:
            wanted = [entry.job.asking for entry in chosen if entry.job.asking is not None]
            self._entries.update(zip(wanted, chosen, strict=True))
            waited = now - min(entry.accepted for entry in chosen)
            about = Group(len(wanted), sum(one.cost for one in wanted), waited, now, len(wanted))
            self._groups.update(dict.fromkeys(wanted, about))
            again += wanted
        watched = [one for one in again if self.steps and (not self.whole or self._entries[one].job.mailbox)]
        if watched:
            if self._search is None:
                self._search = Running(self.translator)
            self._add(self._search, watched)
        stepwise = set(watched)
        for group in alike([one for one in again if one not in stepwise]):
            self._answer(list(search_whole(self.translator, group).items()))

    def _chosen(self, more: bool) -> list[Waiting]:
        """Those who join now: they are moved out of the queue."""
        if not self._ready:
            return []
        live = self._search.live if self._search is not None else 0
        free = self.places - live
        crowded = len(self._ready) > free
        if live and (free < 1 or (crowded and free < self.share * self.places)):
            return []
        ready = self._ready = [entry for entry in self._ready if not entry.left]
        if not ready or any(entry.job.alone for entry in self._entries.values()):
            return []
        if ready[0].job.alone:
            chosen = [] if live or more else ready[:1]
        else:
            cost = self._search.cost if self._search is not None else 0
            chosen = self._near(ready, free, self.room.tokens - cost, not live)
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

    def _add(self, search: Running, group: Sequence[Asking]) -> None:
        try:
            search.add(group)
        except Exception as error:
            if len(group) == 1:
                self._answer([(group[0], error)])
                if not search.live:
                    self._search = None
                return
            for asking in group:
                if self._search is None:
                    self._search = Running(self.translator)
                self._add(self._search, [asking])

    # ------------------------------------------------------------ what comes of it

    def _step(self, search: Running) -> None:
        try:
            done = search.step()
        except Exception as error:
            self._failed(error)
            return
        answers: list[tuple[Asking, Any]] = []
        for asking in done:
            results = _tried(asking.finish)
            if results is None:
                self._again.append(asking)
            else:
                answers.append((asking, results))
        if not search.live:
            self._search = None
        self._answer(answers)
        self._send(search)

    def _failed(self, error: Exception) -> None:
        """A step could not be taken, and nobody knows whose fault it was: each is searched by itself, once."""
        self._search = None
        askings = list(self._entries)
        if len(askings) == 1:
            self._answer([(askings[0], error)])
            return
        for asking in askings:
            asking.forget()
        with self._lock:  # back into the queue, before all others
            alone = [entry for entry in self._entries.values() if not entry.left]
            self._running.clear()
            self._queue = dict.fromkeys([*alone, *self._queue])
        for entry in alone:
            entry.job.alone = True
        self._ready = alone + self._ready
        self._entries.clear()
        self._groups.clear()
        self._again.clear()

    def _answer(self, answers: Sequence[tuple[Asking, Any]]) -> None:
        self._deliver([(self._left(asking), answer) for asking, answer in answers])

    def _send(self, search: Running) -> None:
        """What is certain by now, to those who want to see it grow."""
        for asking, rows in search.rows.items():
            wanted = self._entries[asking].job
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
