"""Batches of images: cut in pieces nothing is lost, and what repeats has tensors alone."""

from __future__ import annotations

import torch

from jumok.data.images.batch import ImageBatch
from jumok.training.batches import kind


def test_pieces() -> None:
    batch = ImageBatch(torch.randint(0, 256, (7, 3, 4, 4), dtype=torch.uint8), torch.arange(7), tuple(range(7)), 2)
    pieces = batch.split(3)
    assert [len(piece) for piece in pieces] == [3, 3, 1]
    assert sum(piece.tokens for piece in pieces) == batch.tokens == 7
    assert torch.equal(torch.cat([piece.images for piece in pieces]), batch.images)
    assert [index for piece in pieces for index in piece.indices] == list(range(7))
    assert {piece.corpus for piece in pieces} == {2}
    assert len(batch.split(100)) == 7
    moved = batch.to("cpu")
    assert moved.indices == batch.indices


def test_what_repeats_is_of_one_kind() -> None:
    def batch(corpus: int) -> ImageBatch:
        images = torch.randint(0, 256, (5, 1, 2, 2), dtype=torch.uint8)
        return ImageBatch(images, torch.arange(5), tuple(range(corpus, corpus + 5)), corpus)

    assert kind(batch(0).repeating()) == kind(batch(1).repeating())
    assert kind(batch(0).split(2)[0].repeating()) != kind(batch(1).repeating())
