"""Word vectors: unit variance out, the zero vector for padding, and it stays that."""

from __future__ import annotations

import torch

from jumok.layers.embedding import Embedding


def test_vectors_have_unit_variance_and_padding_stays_zero() -> None:
    embedding = Embedding(500, 64, 0)
    vectors = embedding(torch.arange(500))
    torch.testing.assert_close(vectors[1:].std(), torch.tensor(1.0), atol=0.05, rtol=0)
    torch.testing.assert_close(vectors, embedding.weight * 8.0)
    assert not vectors[0].any()
    vectors.sum().backward()
    assert embedding.weight.grad is not None
    assert not embedding.weight.grad[0].any()
    assert embedding.weight.grad[1:].all()
