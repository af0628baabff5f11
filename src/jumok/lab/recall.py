"""A task that only attention can do, for experiments on attention itself: shown 16 pairs of a name and a value, say the
value of each name that is asked for. The names are other ones, with other values, in every row.

    m_s = E[name_s] + V[value_s]        x_t = E[name asked for]        logits_t = W attention(x_t, m) + b

One head of the house's own MultiHeadAttention and nothing else: no residual, no feed-forward, no position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.lab.training import seeded
from jumok.layers.embedding import Embedding
from jumok.layers.linear import linear
from jumok.layers.multihead import Look, MultiHeadAttention

NAMES, VALUES, PAIRS, ROWS = 64, 16, 16, 32
RATES = (0.001, 0.003, 0.01)  # each variant is trained with all of them, and its best one counts
LEARNED = 0.1  # a loss that says so; one who guesses has ln 16 = 2.77


class Pairs(NamedTuple):
    names: Tensor  # (B, S)
    values: Tensor  # (B, S)
    asked: Tensor  # (B, T) the same names in another order
    answers: Tensor  # (B, T)


def draw_pairs(generator: torch.Generator, rows: int = ROWS) -> Pairs:
    names = torch.rand(rows, NAMES, generator=generator).argsort(dim=1)[:, :PAIRS] + 1
    values = torch.randint(1, VALUES + 1, (rows, PAIRS), generator=generator)
    order = torch.rand(rows, PAIRS, generator=generator).argsort(dim=1)
    return Pairs(names, values, names.gather(1, order), values.gather(1, order))


class Recall(nn.Module):
    def __init__(self, width: int, scale: float | None = None) -> None:
        """`scale` is what the scores are multiplied with, 1/√d_k unless told otherwise."""
        super().__init__()
        self.name_embedding = Embedding(NAMES + 1, width, padding=0)
        self.value_embedding = Embedding(VALUES + 1, width, padding=0)
        self.attention = MultiHeadAttention(width, heads=1, groups=1, dropout=0.0, kind="cross", name="recall.0.cross")
        if scale is not None:
            self.attention.scorer.inner_scale = scale
        self.head = linear(width, VALUES + 1)

    def forward(self, pairs: Pairs) -> Tensor:
        memory = self.attention.project(self.name_embedding(pairs.names) + self.value_embedding(pairs.values))
        return self.head(self.attention(self.name_embedding(pairs.asked), Look(), memory))


def loss_of(model: nn.Module, pairs: Pairs) -> Tensor:
    return F.cross_entropy(model(pairs).flatten(0, 1), pairs.answers.flatten())


def updates_to_learn(make: Callable[[], nn.Module], seed: int, updates: int) -> int:
    """After how many updates the loss is below LEARNED, with the best of the learning rates; `updates` if never."""
    fewest = updates
    for rate in RATES:
        with seeded(seed):
            fewest = min(fewest, _updates_to_learn(make(), seed, fewest, rate))
    return fewest


def count(updates: float, most: int) -> str:
    """A mean of `updates_to_learn` in words."""
    return f"{updates:.0f}" if updates < most else f"more than {most}"


def _updates_to_learn(model: nn.Module, seed: int, updates: int, rate: float) -> int:
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for update in range(updates):
        loss = loss_of(model, draw_pairs(generator))
        if loss.item() < LEARNED:
            return update
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return updates
