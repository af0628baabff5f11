"""Two steppers side by side through one search: rows are chosen, repeated, dropped and joined as searches do it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from jumok.data.batch import Sequences, source_batch
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection

WORDS = 60
CHOICES: dict[str, list[Any]] = {
    "key_value_heads": [None, 1, 2],
    "activation": ["relu", "gelu", "silu", "swiglu"],
    "norm": ["pre", "post"],
    "norm_kind": ["layer", "rms"],
    "final_norm": [None, True, False],
    "position": ["sinusoidal", "sinusoidal-halves", "learned", "rotary", "relative", "none"],
    "tie_embeddings": ["none", "target", "all"],
}
SMALL = {"width": 32, "heads": 4, "feed_forward": 48, "encoder_layers": 2, "decoder_layers": 2, "max_positions": 64}


def model_of(**keys: Any) -> Transformer:
    """A small model whose every weight is off its start, so that it counts."""
    model = Transformer(TransformerSection(**{**SMALL, **keys}), WORDS, WORDS).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def any_model(drawn: random.Random) -> Transformer:
    return model_of(**{name: drawn.choice(values) for name, values in CHOICES.items()})


def some_rows(drawn: random.Random) -> Sequences:
    lengths = [drawn.randint(1, 9) for _ in range(drawn.randint(1, 4))]
    return source_batch([[drawn.randrange(4, WORDS) for _ in range(length)] for length in lengths])


class Found(NamedTuple):
    """What two steppers said to the same step."""

    log_probs: tuple[Tensor, Tensor]
    coverage: tuple[Tensor, Tensor] | None


@torch.no_grad()
def side_by_side(first: Any, second: Any, drawn: random.Random, coverage: bool, steps: int = 14) -> Iterator[Found]:
    """A search that decides at random, the same for both."""
    both = (first, second)

    def begin(batch: Sequences) -> list[tuple[Any, Any]]:
        memories = [stepper.encode(batch) for stepper in both]
        pairs = zip(both, memories, strict=True)
        return [(memory, stepper.start(memory, len(batch), 40, coverage)) for stepper, memory in pairs]

    batch = some_rows(drawn)
    states, owner, named = begin(batch), list(range(len(batch))), len(batch)
    positions = torch.zeros(len(batch), dtype=torch.long)
    for _ in range(steps):
        tokens = torch.randint(4, WORDS, (len(owner),))
        stepped = [one.step(tokens, positions, *state) for one, state in zip(both, states, strict=True)]
        states = [(memory, cache) for (memory, _), (_, cache) in zip(states, stepped, strict=True)]
        covered = [one.coverage(cache) for one, (_, cache) in zip(both, states, strict=True)] if coverage else None
        yield Found((stepped[0][0], stepped[1][0]), None if covered is None else (covered[0], covered[1]))
        positions = positions + 1
        if drawn.random() < 0.8:
            rows = _chosen(owner, drawn)
            chosen = torch.tensor(rows)
            states = [one.select(*state, chosen) for one, state in zip(both, states, strict=True)]
            owner, positions = [owner[row] for row in rows], positions[chosen]
        if drawn.random() < 0.2:
            batch = some_rows(drawn)
            pairs = zip(both, states, begin(batch), strict=True)
            states = [one.join([state, new]) for one, state, new in pairs]
            owner += range(named, named + len(batch))
            named += len(batch)
            positions = torch.cat((positions, torch.zeros(len(batch), dtype=torch.long)))


def _chosen(owner: list[int], drawn: random.Random) -> list[int]:
    """Up to four continuations of each sentence; some sentences end."""
    rows: list[int] = []
    for sentence in dict.fromkeys(owner):
        own = [row for row, name in enumerate(owner) if name == sentence]
        if drawn.random() < 0.93:
            rows += [drawn.choice(own) for _ in range(drawn.randint(1, 4))]
    if drawn.random() < 0.2:
        drawn.shuffle(rows)
    return rows or [0]
