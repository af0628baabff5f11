"""Greedy and beam search of a Transformer that never leaves the GPU: each step is one CUDA graph.

Sentences are put into slots of fixed shapes (a few sizes, so that a graph serves many batches); reading them is one
graph, a step is another, and it is replayed without waiting for what it found: the host looks a few steps behind
whether anything still lives. What this search does not know (`device_search_fits`) is left to search/decoding.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn import functional as F

from jumok.data.batch import END, START, Sequences
from jumok.errors import BadInput, Failure
from jumok.layers.tap import Tap
from jumok.models import step_torch
from jumok.models.fast_gpu import Operations, StaticTransformer
from jumok.models.transformer import Transformer
from jumok.search.device_beam import DeviceBeam
from jumok.search.device_log import Log
from jumok.search.events import Hypothesis
from jumok.search.options import SearchOptions

Options = SearchOptions | Sequence[SearchOptions]
WIDEST = 64  # beam
LOOK_EVERY = 2  # steps
SHARE = 0.25  # of the device's memory, for what all slots hold together


def device_search_fits(model: nn.Module, options: Options, device: torch.device | str) -> bool:
    """Whether `generate_on_device` can do it: a Transformer on a GPU, all of it and observed by nobody, a plain search,
    rows that differ in their lengths only."""
    each = [options] if isinstance(options, SearchOptions) else list(options)
    if (
        torch.device(device).type != "cuda"
        or not isinstance(model, Transformer)
        or model.reader is not None
        or not each
    ):
        return False
    if any(type(parameter.data) is not torch.Tensor for parameter in model.parameters()):  # a shard of it
        return False
    if any(tap._forward_hooks or tap._forward_pre_hooks for tap in model.modules() if isinstance(tap, Tap)):
        return False
    return _plain(each) and each[0].beam <= min(WIDEST, model.embedding.num_embeddings)


def _plain(each: Sequence[SearchOptions]) -> bool:
    """Nothing but what DeviceBeam knows, and that the same in all rows."""
    first = each[0]
    known = SearchOptions(
        beam=first.beam,
        nbest=first.nbest,
        length_penalty=first.length_penalty,
        forbidden=first.forbidden,
        patience=first.patience,
    )
    return all(_without_lengths(option) == known for option in each)


def _without_lengths(option: SearchOptions) -> SearchOptions:
    plain = SearchOptions()
    return replace(
        option,
        min_length=plain.min_length,
        max_length=None,
        max_ratio=plain.max_ratio,
        max_extra=plain.max_extra,
        seed=plain.seed,
        stream=plain.stream,
    )


def generate_on_device(
    model: Transformer,
    batch: Sequences,
    options: Options,
    end: int = END,
    start: int = START,
    dtype: torch.dtype | None = None,
    graphs: bool | None = None,
) -> list[list[Hypothesis]]:
    """The n-best of every row, best first, as `search.generate` gives them. The model's weights may have changed.

    `dtype` is the precision of decoding (None: that of the weights); without `graphs` each step is launched anew.
    """
    each = [options] * len(batch) if isinstance(options, SearchOptions) else list(options)
    if len(each) != len(batch):
        raise BadInput(f"{len(each)} search options for {len(batch)} rows: give one, or one for each row")
    if not each:
        return []
    if not _plain(each):
        raise BadInput("the search on the device knows plain beams with equal options: use search.generate")
    searches = _SEARCHES.setdefault(model, {})
    kind = model.embedding.weight.dtype if dtype is None else dtype
    device = model.embedding.weight.device
    if kind not in searches or searches[kind].twin.device != device:
        searches[kind] = DeviceSearch(model, kind)
    return searches[kind].generate(batch, each, end, start, device.type == "cuda" if graphs is None else graphs)


def forget(model: Transformer) -> None:
    """Give back the memory that searches of this model hold."""
    _SEARCHES.pop(model, None)


class DeviceSearch:
    """A model's twin for one precision, and the slots that were needed so far."""

    @torch.inference_mode()
    def __init__(self, model: Transformer, dtype: torch.dtype, operations: Operations | None = None) -> None:
        self.twin = StaticTransformer(model, dtype, operations)
        self._rooms: OrderedDict[tuple[object, ...], Room] = OrderedDict()  # the least recently used first
        self._pool = torch.cuda.graph_pool_handle() if self.twin.device.type == "cuda" else None

    @torch.inference_mode()
    def generate(
        self, batch: Sequences, options: Sequence[SearchOptions], end: int, start: int, graphs: bool
    ) -> list[list[Hypothesis]]:
        lengths = batch.lengths.tolist()
        limits = [option.limit(length) for option, length in zip(options, lengths, strict=True)]
        for row, (option, limit) in enumerate(zip(options, limits, strict=True)):
            if option.min_length > limit:
                raise BadInput(
                    f"row {row}: min_length {option.min_length} exceeds its max_length {limit}: lower it, or raise that"
                )
        self.twin.model.decoder.reach(max(limits))  # says so where positions are learned and too few
        self.twin.model.encoder.reach(max(lengths))
        with torch.autocast(self.twin.device.type, enabled=False):
            self.twin.refresh()
            return self._parts(batch, options, limits, end, start, graphs)

    def _parts(
        self,
        batch: Sequences,
        options: Sequence[SearchOptions],
        limits: Sequence[int],
        end: int,
        start: int,
        graphs: bool,
    ) -> list[list[Hypothesis]]:
        """All at once, or in halves where that would take too much memory."""
        rows, beam = len(batch), options[0].beam
        width, capacity = batch.ids.size(1), max(limits)
        if rows > 1 and self._bytes(rows, beam, width, capacity) > self._budget():
            half = rows // 2
            first = self._parts(batch.rows(0, half), options[:half], limits[:half], end, start, graphs)
            return first + self._parts(batch.rows(half, rows), options[half:], limits[half:], end, start, graphs)
        longest = self.twin.longest
        shape = round_rows(rows), beam, min(round_width(width), longest), min(round_capacity(capacity), longest)
        key = (*shape, options[0].nbest, end, start)
        room = self._rooms.pop(key, None) or self._make(*key)
        try:
            found = room.search(batch, options, limits, graphs)
        except Failure:
            self._rooms.clear()  # what is not a number would stay in the slots
            raise
        self._rooms[key] = room
        return found

    def _make(self, rows: int, beam: int, width: int, capacity: int, nbest: int, end: int, start: int) -> Room:
        wanted, budget = self._bytes(rows, beam, width, capacity), self._budget()
        while self._rooms and sum(room.bytes for room in self._rooms.values()) + wanted > budget:
            self._rooms.popitem(last=False)
        return Room(self.twin, rows, beam, width, capacity, nbest, end, start, self._pool)

    def _bytes(self, rows: int, beam: int, width: int, capacity: int) -> int:
        twin = self.twin
        column = len(twin.layers) * 2 * twin.groups * twin.head_width * twin.dtype.itemsize
        return round_rows(rows) * column * (beam * round_capacity(capacity) + round_width(width))

    def _budget(self) -> float:
        if self.twin.device.type != "cuda":
            return float("inf")
        return SHARE * torch.cuda.get_device_properties(self.twin.device).total_memory


class Room:
    """Slots of one shape with their two graphs."""

    def __init__(
        self,
        twin: StaticTransformer,
        rows: int,
        beam: int,
        width: int,
        capacity: int,
        nbest: int,
        end: int,
        start: int,
        pool: Any,
    ) -> None:
        self.twin, self.start, self.pool = twin, start, pool
        vocabulary = twin.model.embedding.num_embeddings
        self.beam = DeviceBeam(rows, beam, nbest, capacity, vocabulary, end, twin.device)
        self.slots = twin.slots(rows, beam, width, capacity, self.beam.ancestry_RKC, self.beam.position)
        self.bytes = self.slots.bytes
        self.graphs: tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph] | None = None
        on_gpu = twin.device.type == "cuda"
        self.alive = torch.zeros(rows, dtype=torch.bool, pin_memory=on_gpu)  # as the host sees it, a little late
        self.event = torch.cuda.Event() if on_gpu else None  # type: ignore[no-untyped-call]
        self.plain = twin.operations is step_torch

    def search(
        self, batch: Sequences, options: Sequence[SearchOptions], limits: Sequence[int], graphs: bool
    ) -> list[list[Hypothesis]]:
        self._fill(batch)
        self.beam.ask(options, limits)
        if graphs and self.graphs is None:
            self.graphs = self._capture(self._read), self._capture(self._step)
        read, step = (graph.replay for graph in self.graphs) if graphs and self.graphs else (self._read, self._step)
        read()
        taken = self._run(step, max(limits))
        log = self.beam.log[:taken, :, : len(batch)].cpu().numpy()
        steps = self.beam.steps_R[: len(batch)].cpu().numpy()
        return Log.of(log, steps).outputs(options, limits)

    def _fill(self, batch: Sequences) -> None:
        """Rows and columns to spare hold padding; a spare row has one token, so that attention has something to see."""
        ids, lengths = self.slots.ids, self.slots.lengths
        spare = (0, ids.size(1) - batch.ids.size(1), 0, ids.size(0) - len(batch))
        ids.copy_(F.pad(batch.ids, spare), non_blocking=True)
        lengths.copy_(F.pad(batch.lengths, (0, len(ids) - len(batch)), value=1), non_blocking=True)

    def _read(self) -> None:
        self.beam.begin(self.start)
        self.twin.encode(self.slots)

    def _step(self) -> None:
        logits = self.twin.step(self.beam.tokens_RK.flatten(), self.slots)
        if self.plain:
            log_probs = F.log_softmax(logits + self.twin.bias.float(), dim=-1)
            self.beam.advance(self.beam.shortlist(log_probs))
        else:
            from jumok.search import device_kernels

            device_kernels.advance(self.beam, device_kernels.shortlist(self.beam, logits, self.twin.bias))

    def _run(self, step: Callable[[], None], limit: int) -> int:
        """Steps until nothing lives; so many were taken. The device is never left without work while it is asked."""
        asked = False
        for taken in range(1, limit + 1):
            step()
            if taken % LOOK_EVERY:
                continue
            if asked:
                self._wait()
                if not self.alive.any():
                    return taken
            self.alive.copy_(self.beam.alive_R, non_blocking=True)
            asked = True
            if self.event is not None:
                self.event.record()
        return limit

    def _wait(self) -> None:
        """Until what was asked last is answered, though not for the steps after it."""
        if self.event is not None:
            self.event.synchronize()

    def _capture(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Once in vain, so that libraries and kernels are ready; then recorded."""
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            work()
        return graph


def round_rows(rows: int) -> int:
    """1, 2, 3, 4, 6, 8, 12, 16 …: at most a third of the slots is empty."""
    power = 1 << max(0, rows - 1).bit_length()
    return power * 3 // 4 if rows <= power * 3 // 4 and power >= 4 else power


def round_width(width: int) -> int:
    step = 16 if width <= 64 else 64
    return -(-width // step) * step


def round_capacity(capacity: int) -> int:
    """Empty columns cost memory but no time."""
    return max(32, 1 << (capacity - 1).bit_length())


_SEARCHES: WeakKeyDictionary[Transformer, dict[torch.dtype, DeviceSearch]] = WeakKeyDictionary()
