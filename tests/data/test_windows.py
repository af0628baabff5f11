"""Windows of running text: any update at once, every token as often as the others, the tokens that were meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.batch import END
from jumok.data.text_store import TextStore
from jumok.data.windows import WindowPlan, kept_back, window_batch


class Text(TextStore):
    """A text out of thin air: token i is i, lines end where they are told to."""

    def __init__(self, lengths: list[int]) -> None:
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        self.ids = np.arange(int(self.starts[-1]), dtype=np.uint16)
        self.meta, self.folder, self.key = {}, Path(), ""


def plan_of(tokens: int, window: int = 8, batch_tokens: int = 24, seed: int = 1, **more: int) -> WindowPlan:
    return WindowPlan([Text([tokens])], [tokens], [1], window, batch_tokens, seed, **more)


@settings(deadline=None)
@given(tokens=st.integers(2, 500), window=st.integers(2, 40), batch=st.integers(2, 100), seed=st.integers(0, 9))
def test_an_epoch_reads_disjoint_windows_and_nearly_everything(tokens: int, window: int, batch: int, seed: int) -> None:
    plan = plan_of(tokens, window, batch, seed)
    for epoch in (0, 3):
        seen: list[int] = []
        for update in range(epoch * plan.batches_per_epoch, (epoch + 1) * plan.batches_per_epoch):
            (text,) = plan.at(update)
            assert text.tokens <= max(batch, min(window, tokens))
            assert torch.equal((text.ids + 1) % tokens, text.targets), "the token after each, round the ring"
            seen += text.targets.flatten().tolist()
        assert len(seen) == len(set(seen))
        assert tokens - len(seen) < min(window, tokens)


def test_any_update_is_a_pure_function_of_its_number() -> None:
    plan, again = plan_of(300, accumulate=2), plan_of(300, accumulate=2)
    for update in (700, 3, 0, 41, 3):
        for one, other in zip(plan.at(update), again.at(update), strict=True):
            assert torch.equal(one.ids, other.ids)
    other_seed = plan_of(300, accumulate=2, seed=2)
    assert any(not torch.equal(a.ids, b.ids) for a, b in zip(plan.at(0), other_seed.at(0), strict=True))


def test_epochs_cut_the_text_elsewhere() -> None:
    plan = plan_of(100)
    cuts = set()
    for epoch in range(20):
        (batch,) = plan.at(epoch * plan.batches_per_epoch)
        cuts.add(batch.starts[0] % 8)
    assert len(cuts) > 3


def test_corpora_take_turns_by_their_weights() -> None:
    plan = WindowPlan([Text([64]), Text([640])], [64, 640], [1, 3], 8, 16, seed=1)
    corpora = [batch.corpus for update in range(400) for batch in plan.at(update)]
    assert corpora.count(1) == 300
    assert max(batch.ids.max() for update in range(400) for batch in plan.at(update) if batch.corpus == 0) < 64


def test_the_first_token_is_read_after_the_last_eos() -> None:
    ids = np.array([7, 8, END], np.uint16)
    batch = window_batch(ids, np.array([0]), 3)
    assert batch.ids.tolist() == [[END, 7, 8]]
    assert batch.targets.tolist() == [[7, 8, END]]


@pytest.mark.parametrize(
    ("lengths", "lines", "start"),
    [
        ([10] * 100, 3, 970),  # the last three lines
        ([10] * 100, 50, 950),  # at most a twentieth
        ([10] * 99 + [100], 50, 1036),  # the only line in that twentieth began before it: cut inside
        ([1000], 5, 950),
        ([1, 1], 5, 1),
    ],
)
def test_what_is_kept_back_is_the_end(lengths: list[int], lines: int, start: int) -> None:
    assert kept_back(Text(lengths), lines) == start
