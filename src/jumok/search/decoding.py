"""Generation over the Stepper protocol: rows are added, stepped together, and leave the batch when they are done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from jumok.data.batch import END, START
from jumok.errors import BadInput
from jumok.search.beam import Beam
from jumok.search.events import Completed, Event, Hypothesis
from jumok.search.options import SearchOptions
from jumok.search.row import Row
from jumok.search.scores import Integers, scores_of
from jumok.search.stepper import Cache, Memory, Stepper
from jumok.search.watching import WATCHERS

Options = SearchOptions | Sequence[SearchOptions]
UNSEEN = 1e-10  # the least a source position counts in the coverage term: log 0 would be -∞


class Decoding:
    """A search under way. Rows may be added at any time: they join the running batch (continuous batching), each with
    its own options and standing at its own position. What finishes leaves the batch.

    The caller puts the model in evaluation mode; no gradients are kept here.
    """

    def __init__(
        self,
        stepper: Stepper,
        end: int = END,
        start: int = START,
        device: torch.device | str | None = None,
        events: bool = False,
    ) -> None:
        """`events` asks for `Token` and `Pruned` too, which cost time; `Finished` and `Completed` always come.

        Without `device` a batch is searched where its `ids` are.
        """
        self.results: dict[int, list[Hypothesis]] = {}  # the n-best of the rows that are done (see `generate`)
        self._stepper, self._end, self._start, self._device, self._events = stepper, end, start, device, events
        self._beam = Beam(end, start, events)
        self._memory: Memory = None
        self._cache: Cache = None
        self._place = torch.device("cpu")  # where the batch is
        self._vocabulary: int | None = None  # the first step tells
        self._rows = 0
        self._pending: list[Event] = []

    @property
    def live(self) -> list[int]:
        """The rows still being searched."""
        return [row.name for row in self._beam.rows]

    @property
    def done(self) -> bool:
        return not self._beam.rows

    def outputs(self, row: int) -> tuple[list[list[int]], list[Hypothesis]]:
        """What a row that is still searched has so far: its live hypotheses, and the best that have finished."""
        return self._beam.outputs(row)

    @torch.no_grad()
    def add(self, batch: Any, options: Options) -> list[int]:
        """Read a batch (for text: `Sequences`) and start searching it. Returns the numbers of its rows."""
        size = len(batch)
        each = [options] * size if isinstance(options, SearchOptions) else list(options)
        if len(each) != size:
            raise BadInput(f"{len(each)} search options for {size} rows: give one, or one for each row")
        if size == 0:
            return []
        lengths = getattr(batch, "lengths", None)
        sources = [None] * size if lengths is None else lengths.tolist()
        limits = [option.limit(length) for option, length in zip(each, sources, strict=True)]
        names = list(range(self._rows, self._rows + size))
        rows = [Row(*row, self._end) for row in zip(names, each, limits, sources, strict=True)]
        if self._vocabulary is not None:
            for row in rows:
                row.check_vocabulary(self._vocabulary)
        coverage = any(option.coverage_penalty > 0 for option in each)
        if coverage and lengths is None:
            raise BadInput("coverage_penalty: this batch has no source lengths to tell what there was to cover")
        self._place = torch.device(batch.ids.device if self._device is None else self._device)
        for watcher in WATCHERS:
            watcher.reading(self, self._stepper, names, batch)
        memory = self._stepper.encode(batch.to(self._place))
        cache = self._stepper.start(memory, size, max(limits), coverage=coverage)
        if self._beam.rows:
            memory, cache = self._stepper.join([(self._memory, self._cache), (memory, cache)])
        self._memory, self._cache = memory, cache
        self._beam.add(rows)
        self._rows += size
        return names

    @torch.no_grad()
    def step(self) -> list[Event]:
        """One more token for every live hypothesis."""
        pending, self._pending = self._pending, []
        beam = self._beam
        if not beam.rows:
            return pending
        tokens, positions = torch.from_numpy(beam.input_N), torch.from_numpy(beam.length_R[beam.row_N])
        if self._place.type != "cpu":
            tokens = tokens.to(self._place, non_blocking=True)
            positions = positions.to(self._place, non_blocking=True)
        for watcher in WATCHERS:
            watcher.stepping(self, beam.input_N)
        log_probs, self._cache = self._stepper.step(tokens, positions, self._memory, self._cache)
        if self._vocabulary is None:
            self._learn_vocabulary(log_probs.size(1))
        size = len(beam.row_N)
        parents, happened = beam.step(scores_of(log_probs, self._end, beam.banned), self._covered)
        for event in happened:
            if isinstance(event, Completed):
                self.results[event.row] = event.hypotheses
        for watcher in WATCHERS:
            watcher.chosen(self, happened, parents)
        self._select(parents, size)
        return pending + happened

    @torch.no_grad()
    def cancel(self, row: int) -> None:
        """Give a row up: it leaves the batch and has no result. A row that is done stays as it is."""
        if row in self.live:
            size = len(self._beam.row_N)
            stay, happened = self._beam.cancel(row)
            self._pending += happened
            for watcher in WATCHERS:
                watcher.chosen(self, (), stay)
            self._select(stay, size)

    def _learn_vocabulary(self, vocabulary: int) -> None:
        for row in self._beam.rows:
            row.check_vocabulary(vocabulary)
        self._vocabulary = vocabulary

    def _select(self, parents: Integers, size: int) -> None:
        """Carry memory and cache over to the hypotheses that live on; nothing moves when all stay in place."""
        if len(parents) == 0:
            self._memory = self._cache = None
        elif len(parents) != size or not (parents == np.arange(size)).all():
            rows = torch.from_numpy(parents).to(self._place, non_blocking=True)
            self._memory, self._cache = self._stepper.select(self._memory, self._cache, rows)

    def _covered(self, hypotheses: Integers, lengths: list[int]) -> list[float]:
        """Σ_s log min(Σ_t α_ts, 1) over the real positions s of each hypothesis' source."""
        coverage_NS = self._stepper.coverage(self._cache)
        # in float64 on the host: not every device has it
        coverage_KS = coverage_NS[torch.from_numpy(hypotheses).to(coverage_NS.device)].cpu().double()
        real_KS = torch.arange(coverage_KS.size(1)) < torch.tensor(lengths)[:, None]
        terms_KS = coverage_KS.clamp(UNSEEN, 1.0).log()
        return terms_KS.where(real_KS, 0.0).sum(dim=1).tolist()


def generate(
    stepper: Stepper,
    batch: Any,
    options: Options,
    end: int = END,
    start: int = START,
    device: torch.device | str | None = None,
) -> list[list[Hypothesis]]:
    """The n-best of every row, best first; none where no output was found that holds all that is required."""
    decoding = Decoding(stepper, end, start, device)
    rows = decoding.add(batch, options)
    while not decoding.done:
        decoding.step()
    return [decoding.results[row] for row in rows]
