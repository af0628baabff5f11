"""Generation over the Stepper protocol: rows are added, stepped together, and leave the batch when they are done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from jumok.data.batch import END, START
from jumok.errors import BadInput
from jumok.search.beam import Beam, Integers
from jumok.search.events import Completed, Event, Hypothesis
from jumok.search.options import SearchOptions
from jumok.search.shortlist import Shortlist
from jumok.search.stepper import Cache, Memory, Stepper

Options = SearchOptions | Sequence[SearchOptions]


class Decoding:
    """A search under way. Rows may be added at any time; those added together move in step.

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
        self.results: dict[int, list[Hypothesis]] = {}  # the n-best of the rows that are done
        self._stepper, self._end, self._start, self._device, self._events = stepper, end, start, device, events
        self._groups: list[_Group] = []
        self._rows = 0
        self._pending: list[Event] = []

    @property
    def live(self) -> list[int]:
        """The rows still being searched."""
        return [row for group in self._groups for row in group.beam.live]

    @property
    def done(self) -> bool:
        return not self._groups

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
        rows = list(range(self._rows, self._rows + size))
        beam = Beam(rows, each, limits, self._end)
        device = torch.device(batch.ids.device if self._device is None else self._device)
        memory = self._stepper.encode(batch.to(device))
        cache = self._stepper.start(memory, size, max(limits))
        inputs = np.full(size, self._start, np.int64)
        self._groups.append(_Group(self._stepper, beam, memory, cache, inputs, device))
        self._rows += size
        return rows

    @torch.no_grad()
    def step(self) -> list[Event]:
        """One more token for every live hypothesis."""
        happened, self._pending = self._pending, []
        for group in self._groups:
            happened += group.step(self._events)
        self.results.update((event.row, event.hypotheses) for event in happened if isinstance(event, Completed))
        self._groups = [group for group in self._groups if len(group.beam.row_N)]
        return happened

    @torch.no_grad()
    def cancel(self, row: int) -> None:
        """Give a row up: it leaves the batch and has no result. A row that is done stays as it is."""
        for group in self._groups:
            if row in group.beam.live:
                self._pending += group.cancel(row, self._events)
        self._groups = [group for group in self._groups if len(group.beam.row_N)]


class _Group:
    """Rows that were added together, with the model's memory and cache for their live hypotheses."""

    def __init__(
        self, stepper: Stepper, beam: Beam, memory: Memory, cache: Cache, inputs: Integers, device: torch.device
    ) -> None:
        self.stepper, self.beam, self.memory, self.cache, self.device = stepper, beam, memory, cache, device
        self.inputs = inputs

    def step(self, events: bool) -> list[Event]:
        beam = self.beam
        tokens = torch.from_numpy(self.inputs).to(self.device, non_blocking=True)
        positions = torch.full_like(tokens, beam.length)
        log_probs, self.cache = self.stepper.step(tokens, positions, self.memory, self.cache)
        wanted = self._wanted(log_probs.size(1))
        shortlist = Shortlist.of(log_probs, wanted, beam.width)
        chosen = beam.choose(shortlist)
        if chosen.tied:
            shortlist = Shortlist.of(log_probs, wanted, beam.width, exact=True)
            chosen = beam.choose(shortlist)
        size = len(beam.row_N)
        parents, happened = beam.advance(chosen, shortlist, events)
        self._select(parents, size)
        return happened

    def cancel(self, row: int, events: bool) -> list[Event]:
        size = len(self.beam.row_N)
        stay, happened = self.beam.cancel(row, events)
        first = self.inputs
        self._select(stay, size)
        if self.beam.length == 0:
            self.inputs = first[stay]
        return happened

    def _wanted(self, vocabulary: int) -> torch.Tensor | int:
        """The token whose log-probability is needed even when it is not among the best."""
        forced, tokens = self.beam.forced()
        if not (forced & (tokens != self.beam.end)).any():
            return self.beam.end
        if tokens.max() >= vocabulary:
            name = self.beam.names[self.beam.row_N[tokens.argmax()]]
            raise BadInput(f"row {name}: prefix token {tokens.max()} is outside the vocabulary of {vocabulary}")
        return torch.from_numpy(tokens).to(self.device)

    def _select(self, parents: Integers, size: int) -> None:
        """Carry memory and cache over to the hypotheses that live on; nothing moves when all stay in place."""
        if len(parents) == 0:
            return
        if not np.array_equal(parents, np.arange(size)):
            rows = torch.from_numpy(parents).to(self.device, non_blocking=True)
            self.memory, self.cache = self.stepper.select(self.memory, self.cache, rows)
        if self.beam.length:
            self.inputs = np.ascontiguousarray(self.beam.tokens_NL[:, -1])


def generate(
    stepper: Stepper,
    batch: Any,
    options: Options,
    end: int = END,
    start: int = START,
    device: torch.device | str | None = None,
) -> list[list[Hypothesis]]:
    """The n-best of every row, best first."""
    decoding = Decoding(stepper, end, start, device)
    rows = decoding.add(batch, options)
    while not decoding.done:
        decoding.step()
    return [decoding.results[row] for row in rows]
