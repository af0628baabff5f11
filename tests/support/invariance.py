"""One sentence, translated in every company and every way: are the tokens the same, and if not, was it a tie?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batch import END, START, Sequences, source_batch
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.search import SearchOptions, generate, refill
from jumok.tasks.engine import Engine

Rows = Sequence[Sequence[int]]
Tokens = tuple[int, ...]
TIE = 1e-5


class Uncached:
    """The same model without a cache: `forward` reads the whole source and the whole output again at every step."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model

    def encode(self, batch: Sequences) -> Sequences:
        return batch

    def start(self, memory: Sequences, rows: int, capacity: int, coverage: bool = False) -> Tensor:
        return memory.ids.new_zeros(rows, 0)

    def step(self, tokens: Tensor, positions: Tensor, memory: Sequences, cache: Tensor) -> tuple[Tensor, Tensor]:
        rows_B = torch.arange(len(tokens), device=tokens.device)
        ids_BT = F.pad(cache, (0, max(0, int(positions.max()) + 1 - cache.size(1))))
        ids_BT[rows_B, positions] = tokens
        hidden_BD = self.model(memory, ids_BT)[rows_B, positions]
        return F.log_softmax(self.model.head(hidden_BD).float(), dim=-1), ids_BT

    def select(self, memory: Sequences, cache: Tensor, rows: Tensor) -> tuple[Sequences, Tensor]:
        return Sequences(memory.ids[rows], memory.lengths[rows]), cache[rows]

    def join(self, parts: Sequence[tuple[Sequences, Tensor]]) -> tuple[Sequences, Tensor]:
        def together(tensors: list[Tensor]) -> Tensor:
            width = max(tensor.size(1) for tensor in tensors)
            return torch.cat([F.pad(tensor, (0, width - tensor.size(1))) for tensor in tensors])

        lengths = torch.cat([memory.lengths for memory, _ in parts])
        return Sequences(together([memory.ids for memory, _ in parts]), lengths), together([ids for _, ids in parts])


class Trembling:
    """Log-probabilities moved by less than `size`, at random: what this changes was a tie."""

    def __init__(self, stepper: Any, size: float, seed: int) -> None:
        self.stepper, self.size, self.random = stepper, size, torch.Generator().manual_seed(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stepper, name)

    def step(self, tokens: Tensor, positions: Tensor, memory: Any, cache: Any) -> tuple[Tensor, Any]:
        log_probs, cache = self.stepper.step(tokens, positions, memory, cache)
        moved = (2 * torch.rand(log_probs.shape, generator=self.random) - 1) * self.size
        return log_probs.double() + moved.to(log_probs.device), cache


def translate(
    stepper: Any, rows: Rows, options: SearchOptions, size: int, order: Sequence[int] | None = None, device: str = "cpu"
) -> list[Tokens]:
    """The best output of every row, searched in batches of `size` in the given order."""
    found: dict[int, Tokens] = {}
    order = range(len(rows)) if order is None else order
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        batch = source_batch([rows[index] for index in chosen]).to(device)
        for index, hypotheses in zip(chosen, generate(stepper, batch, options), strict=True):
            found[index] = tuple(hypotheses[0].tokens)
    return [found[index] for index in range(len(rows))]


def refilled(stepper: Any, rows: Rows, options: SearchOptions, size: int, device: str = "cpu") -> list[Tokens]:
    """The same by continuous batching: a batch of `size` that takes in the next row as one leaves."""
    found = dict(refill(stepper, ((row, options) for row in rows), size, device=device))
    return [tuple(found[index][0].tokens) for index in range(len(rows))]


def searched(engine: Engine, rows: Rows, options: SearchOptions, size: int) -> list[Tokens]:
    """As `jumok translate` does it."""
    found = dict(engine.search([(list(row), options) for row in rows], size))
    return [tuple(found[index][0].tokens) for index in range(len(rows))]


def ways(
    model: EncoderDecoder, rows: Rows, options: SearchOptions, size: int = 32, device: str = "cpu"
) -> Iterator[tuple[str, list[Tokens]]]:
    """Each way of translating the same rows; the first is the one that the others are compared with."""
    engine = Engine([model], torch.device(device), fast=True)
    shuffled = torch.randperm(len(rows)).tolist()
    yield "one by one", translate(model, rows, options, 1, device=device)
    yield "one batch", translate(model, rows, options, len(rows), device=device)
    yield f"shuffled, batches of {size}", translate(model, rows, options, size, shuffled, device)
    yield f"refilled, batch of {size}", refilled(model, rows, options, size, device)
    yield f"uncached, batches of {size}", translate(Uncached(model), rows, options, size, device=device)
    yield "fast engine, one by one", searched(engine, rows, options, 1)
    yield f"fast engine, batch of {size}", searched(engine, rows, options, size)


class Difference(NamedTuple):
    row: int
    expected: Tokens
    found: Tokens
    gap: float  # between the scores of the two outputs; greedy: between the two tokens where they part
    flips: bool  # whether moving each log-probability by less than TIE makes the one output out of the other

    @property
    def tie(self) -> bool:
        return self.gap < TIE or self.flips


def differences(
    model: EncoderDecoder, rows: Rows, options: SearchOptions, expected: Sequence[Tokens], found: Sequence[Tokens]
) -> list[Difference]:
    return [
        Difference(row, one, other, _gap(model, rows[row], one, other, options), _flips(model, rows[row], one, options))
        for row, (one, other) in enumerate(zip(expected, found, strict=True))
        if one != other
    ]


@torch.no_grad()
def _gap(model: EncoderDecoder, source: Sequence[int], one: Tokens, other: Tokens, options: SearchOptions) -> float:
    one, other = (*one, END), (*other, END)
    parting = next(place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    scores = []
    device = next(model.parameters()).device
    for tokens in (one, other):
        batch, ids = source_batch([source]).to(device), torch.tensor([[START, *tokens[:-1]]], device=device)
        log_probs = F.log_softmax(model.head(model(batch, ids)).double(), dim=-1)[0]
        each = log_probs.gather(1, torch.tensor(tokens, device=device)[:, None])[:, 0]
        whole = float(each.sum()) / len(tokens) ** options.length_penalty
        scores.append(float(each[parting]) if options.beam == 1 else whole)
    return abs(scores[0] - scores[1])


def _flips(model: EncoderDecoder, source: Sequence[int], expected: Tokens, options: SearchOptions) -> bool:
    device = str(next(model.parameters()).device)
    draws = (translate(Trembling(model, TIE, seed), [source], options, 1, device=device)[0] for seed in range(50))
    return any(draw != expected for draw in draws)
