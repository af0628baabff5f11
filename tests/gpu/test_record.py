"""Attention recorded on a GPU: the search runs on the model itself, and its paths are what a forced pass sees."""

from __future__ import annotations

import pytest
import torch
from translators import sentences, translator

from jumok.data.batch import PairBatch
from jumok.data.packing import PackedPairs
from jumok.inspect.record import record
from jumok.tasks.engine import Engine

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")

CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def _full_precision() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@torch.no_grad()
def test_paths_of_a_search(precision: str) -> None:
    model, texts = translator("transformer", beam=5), sentences(9)
    model.model.to(CUDA)
    model.device = CUDA
    usual = model.engine = Engine(model.models, CUDA, precision, fast=True)
    model.translate(texts)  # the search of its own is warm, graphs and all
    with record(model) as seen:
        model.translate(texts, batch=4)
    assert model.engine is usual
    assert "model itself" in seen.notes[0]
    assert (precision in seen.notes[0]) == (precision == "bfloat16")
    for number, text in enumerate(texts):
        path = seen.path(number)
        pair = PairBatch.of(model.source.encode([text]), [list(path.tokens)]).to(CUDA)
        with record(model.model) as forced:
            model.model(pair.source, pair.target.ids[:, :-1])
        for name in forced.names():
            rows, columns = path[name].shape[-2:]  # a path that was cut at its limit never looked from its last word
            expected = forced.weights(name)[0]
            assert expected.size(-2) - rows in (0, 1)
            torch.testing.assert_close(path[name], expected[..., :rows, :columns], atol=1e-4, rtol=0)


@torch.no_grad()
def test_packed_batches_agree_with_their_kernel() -> None:
    model = translator("transformer").model.to(CUDA)
    lengths = ((3, 9), (11, 4), (1, 6))
    rows = [tuple(torch.randint(4, 90, (length,)).tolist() for length in pair) for pair in lengths]
    packed = PackedPairs.of(PairBatch.of([source for source, _ in rows], [target for _, target in rows])).to(CUDA)
    plain = model(packed.source, packed.target)
    with record(model) as seen:
        observed = model(packed.source, packed.target)
    torch.testing.assert_close(plain, observed, atol=1e-4, rtol=1e-4)
    assert seen.max_difference < 1e-4
