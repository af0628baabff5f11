"""The task that only attention can do."""

from __future__ import annotations

import torch

from jumok.lab.recall import NAMES, PAIRS, VALUES, Recall, draw_pairs, updates_to_learn


def test_every_answer_can_be_found_and_no_name_comes_twice(seed: int) -> None:
    pairs = draw_pairs(torch.Generator().manual_seed(seed), rows=50)
    assert pairs.names.shape == pairs.answers.shape == (50, PAIRS)
    for names, values, asked, answers in zip(*(each.tolist() for each in pairs), strict=True):
        known = dict(zip(names, values, strict=True))
        assert len(known) == PAIRS
        assert [known[name] for name in asked] == answers
    assert int(pairs.names.min()) >= 1
    assert int(pairs.names.max()) <= NAMES
    assert 1 <= int(pairs.values.min()) <= int(pairs.values.max()) <= VALUES


def test_attention_learns_it_and_without_updates_nothing_is_learned() -> None:
    needed = updates_to_learn(lambda: Recall(64), 1, 100)
    assert 2 < needed < 100
    assert updates_to_learn(lambda: Recall(64), 1, needed) == needed
    assert updates_to_learn(lambda: Recall(64), 1, 3) == 3


def test_the_scale_is_the_papers_unless_told_otherwise() -> None:
    assert Recall(64).attention.scorer.inner_scale == 64**-0.5
    assert Recall(64, scale=1.0).attention.scorer.inner_scale == 1.0
