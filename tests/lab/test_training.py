"""A short training, and writing without a teacher."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from translators import sentences, translator

from jumok.data.batch import END, PAD, START, source_batch
from jumok.lab.training import seeded, train, written


def test_a_seed_decides_inside_and_changes_nothing_outside(seed: int) -> None:
    torch.manual_seed(seed)
    expected = torch.rand(3)
    torch.manual_seed(seed)
    with seeded(5):
        first = torch.rand(3)
    assert torch.equal(torch.rand(3), expected)
    with seeded(5):
        assert torch.equal(torch.rand(3), first)


def test_it_learns_and_comes_to_rest(seed: int) -> None:
    model = nn.Linear(4, 1)
    true = nn.Linear(4, 1)
    before: list[torch.Tensor] = []

    def loss_of(update: int) -> torch.Tensor:
        before.append(model.weight.detach().clone())
        x = torch.randn(32, 4)
        return (model(x) - true(x).detach()).square().mean()

    losses = train(model, loss_of, updates=300, learning_rate=0.05)
    assert len(losses) == 300
    assert losses[-1] < 1e-3 < losses[0]
    steps = [(after - earlier).abs().max() for earlier, after in pairwise(before)]
    assert max(steps[-3:]) < max(steps) / 10
    assert not model.training


def test_it_writes_what_greedy_search_writes(seed: int) -> None:
    """For every kind of decoder: the search stops at <eos>, this does not."""
    for kind in ("lstm", "plain", "transformer"):
        someone = translator(kind, "word", precise=True, beam=1, max_ratio=0.01, max_extra=12)
        with torch.no_grad():
            someone.model.bias[[PAD, START]] = -30.0  # what a search never writes, a random model might
        texts = sentences(6)
        found = someone.nbest(texts)
        rows = written(someone.model, source_batch(someone.source.encode(texts)), 12).tolist()
        for row, (best,) in zip(rows, found, strict=True):
            own = row[: row.index(END)] if END in row else row[: len(best.ids)]
            assert own == list(best.ids)
