"""Translating with onnxruntime by a recurrent model: its two graphs (interop/onnx_recurrent.py) as a Stepper.

What is kept of the source, and where a hypothesis stands, are what they are over PyTorch (models/decoder.py); so rows
are chosen and joined by the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.models.decoder import Cache, Memory
from jumok.tasks.engine_onnx import ENCODER, STEP, open_session, read_config

FEED, ATTENDED = "feed", ("keys", "values", "mask")


def state_names(states: int) -> tuple[str, ...]:
    return tuple(f"state_{number}" for number in range(states))


class RecurrentStepper:
    """A folder that `export_onnx` (or the engine) has written, as what the search walks over."""

    def __init__(self, folder: Path) -> None:
        config = read_config(folder)
        self.states: int = config["states"]
        self.attends: bool = config["attends"]
        self.feeds: bool = config["feeds"]
        self.max_source: int | None = config["max_source"]
        self.max_target: int | None = config["max_target"]
        self.encoder, self.stepping = open_session(folder / ENCODER), open_session(folder / STEP)

    def encode(self, batch: Sequences) -> Memory:
        if self.max_source is not None and batch.ids.size(1) > self.max_source:
            raise BadInput(
                f"the location scorer addresses sources of at most {self.max_source} tokens (model.max_source), this "
                f"one has {batch.ids.size(1)}: shorten it, or train with a larger model.max_source"
            )
        mask_BS, owner_B = batch.mask.cpu(), torch.arange(len(batch))
        found = self.encoder.run(None, {"ids": batch.ids.cpu().numpy(), "mask": mask_BS.long().numpy()})
        parts = [torch.from_numpy(one) for one in found]
        state, offered = tuple(parts[: self.states]), parts[self.states :]
        if not self.attends:
            return Memory(owner_B, state)
        keys_BSD, values_BSD = offered
        return Memory(owner_B, state, keys_BSD, values_BSD, mask_BS)

    def start(self, memory: Memory, rows: int, capacity: int, coverage: bool = False) -> Cache:
        if coverage and memory.mask is None:
            raise BadInput("a coverage penalty needs attention, which this model has not: leave coverage_penalty at 0")
        feed = torch.zeros_like(memory.state[0][0]) if self.feeds else None
        covered = torch.zeros(memory.mask.shape) if coverage and memory.mask is not None else None
        return Cache(memory.state, feed, covered)

    def step(self, tokens: Tensor, positions: Tensor, memory: Memory, cache: Cache) -> tuple[Tensor, Cache]:
        given = {"token": tokens.cpu(), **dict(zip(state_names(self.states), cache.state, strict=True))}
        if cache.feed is not None:
            given[FEED] = cache.feed
        if memory.mask is not None and memory.keys is not None and memory.values is not None:
            given |= zip(ATTENDED, (memory.keys, memory.values, memory.mask.long()), strict=True)
        found = self.stepping.run(None, {name: one.contiguous().numpy() for name, one in given.items()})
        log_probs_BV, *rest = (torch.from_numpy(one) for one in found)
        weights_BS = rest.pop(0) if self.attends else None
        covered = None if cache.coverage is None or weights_BS is None else cache.coverage + weights_BS
        feed = rest[self.states] if self.feeds else None
        return log_probs_BV.to(tokens.device), Cache(tuple(rest[: self.states]), feed, covered)

    def select(self, memory: Memory, cache: Cache, rows: Tensor) -> tuple[Memory, Cache]:
        return memory.select(rows.cpu()), cache.select(rows.cpu())

    def join(self, parts: Sequence[tuple[Memory, Cache]]) -> tuple[Memory, Cache]:
        memory = Memory.join([part for part, _ in parts])
        return memory, Cache.join([cache for _, cache in parts], 0 if memory.mask is None else memory.mask.size(1))

    def coverage(self, cache: Cache) -> Tensor:
        assert cache.coverage is not None, "the search started without coverage"
        return cache.coverage
