"""Batches of words: moved, split and repeated without losing what belongs together."""

from __future__ import annotations

import pytest
import torch

from jumok.data.rendering.batch import PicturedWords, WordBatch, WrittenWords


def batch_of(kind: type[WordBatch], rows: int) -> WordBatch:
    ids, lengths = torch.randint(4, 30, (rows, 6)), torch.randint(0, 6, (rows,))
    last = torch.randint(0, 256, (rows, 1, 4, 8), dtype=torch.uint8) if kind is PicturedWords else ids[:, :5] * 2
    return kind(ids, lengths, last, indices=tuple(range(100, 100 + rows)), corpus=2)  # type: ignore[call-arg]


def parts_of(batch: WordBatch) -> list[torch.Tensor]:
    return [batch.ids, batch.lengths, batch.images if isinstance(batch, PicturedWords) else batch.glyphs]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [PicturedWords, WrittenWords])
@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20])
def test_what_is_split_is_whole_again(kind: type[WordBatch], parts: int) -> None:
    batch = batch_of(kind, 7)
    split = batch.split(parts)
    assert len(split) <= min(parts, 7)
    assert max(map(len, split)) == -(-7 // parts)
    assert all(type(one) is kind and one.corpus == 2 and len(one.indices) == len(one) for one in split)
    assert [index for one in split for index in one.indices] == list(batch.indices)
    assert sum(one.tokens for one in split) == batch.tokens == len(batch) == 7
    for number, whole in enumerate(parts_of(batch)):
        assert torch.equal(torch.cat([parts_of(one)[number] for one in split]), whole)


@pytest.mark.parametrize("kind", [PicturedWords, WrittenWords])
def test_moved_it_is_the_same_and_repeating_it_has_no_names(kind: type[WordBatch]) -> None:
    batch = batch_of(kind, 5)
    moved = batch.to("meta")
    assert all(part.device.type == "meta" for part in parts_of(moved))
    assert (moved.indices, moved.corpus) == (batch.indices, 2)
    repeating = batch.repeating()
    assert (repeating.indices, repeating.corpus) == ((), 0)
    assert all(torch.equal(*pair) for pair in zip(parts_of(repeating), parts_of(batch), strict=True))
    assert repeating.split(2)[1].indices == ()
