"""Packed sentences on a GPU: the kernel is the mathematics, packed is padded, recorded and compiled is eager.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from packed_checks import (
    KINDS,
    WORDS,
    assert_as_dense,
    assert_dropout_is_one_mask,
    dense,
    random_inputs,
    random_pairs,
    some_lengths,
    spans_of,
    with_gradients,
)  # fmt: skip
from seeded import seed  # noqa: F401  fresh inputs in every run
from torch import Tensor

from jumok.data.packing import PackedPairs
from jumok.layers import packed_attention as choice
from jumok.layers.packed_attention import HAS_TRITON, packed_attention
from jumok.models.build import build
from jumok.recipe import TransformerSection
from jumok.tasks.translation import TranslationObjective

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")

SMALL = {"width": 128, "heads": 2, "feed_forward": 96, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
POSITIONS = ["sinusoidal", "learned", "rotary", "relative", "none"]


@pytest.fixture(autouse=True)
def _full_precision() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    assert HAS_TRITON, "PyTorch for CUDA brings Triton along"


def on_gpu(lengths: list[tuple[int, int]], budget: tuple[int, int] | None = None) -> PackedPairs:
    return PackedPairs.of(random_pairs(lengths), budget).to("cuda")


def worst(found: list[Tensor], exact: list[Tensor]) -> float:
    return max(float((one.double() - other).abs().max()) for one, other in zip(found, exact, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("heads", "groups", "width"), [(2, 2, 16), (4, 2, 24), (8, 8, 64), (4, 1, 64), (2, 2, 128)])
def test_the_kernel_is_all_against_all(kind: str, heads: int, groups: int, width: int) -> None:
    for budget in (None, (900, 1000)):
        packed = on_gpu([*some_lengths(20, 40), (150, 130)], budget)
        spans = spans_of(kind, packed if budget is None else packed.twice())
        inputs = random_inputs(spans, heads, groups, width)
        assert_as_dense(lambda q, k, v, s=spans: packed_attention(q, k, v, s, 0.1), spans, inputs, 0.1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [64, 128])
def test_low_precision_is_as_exact_as_pytorch(
    kind: str, dtype: torch.dtype, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = spans_of(kind, on_gpu([*some_lengths(20, 40), (150, 130)]))
    inputs = [x.to(dtype) for x in random_inputs(spans, 4, 4, width)]
    pull, scale = torch.randn_like(inputs[0]), width**-0.5

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return packed_attention(q, k, v, spans, scale)

    exact = with_gradients(lambda q, k, v: dense(q, k, v, spans, scale), [x.double() for x in inputs], pull.double())
    ours = worst(with_gradients(attention, inputs, pull), exact)
    monkeypatch.setattr(choice, "HAS_TRITON", False)
    theirs = worst(with_gradients(attention, inputs, pull), exact)
    print(f"{kind} {dtype} {width}: off by {ours:.5f} at most, PyTorch's by {theirs:.5f}")
    assert ours < 2 * theirs + 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_one_mask_forward_and_backward(kind: str) -> None:
    assert_dropout_is_one_mask(kind, "cuda")


@pytest.mark.parametrize("kind", KINDS)
def test_equal_inputs_give_equal_bits(kind: str) -> None:
    spans = spans_of(kind, on_gpu(some_lengths(800, 50)))
    inputs = [x.bfloat16() for x in random_inputs(spans, 8, 8, 64)]
    pull, chosen = torch.randn_like(inputs[0]), torch.tensor([3], device="cuda")

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return packed_attention(q, k, v, spans, 0.125, 0.1, chosen)

    first = with_gradients(attention, inputs, pull)
    for _ in range(5):
        again = with_gradients(attention, inputs, pull)
        assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [4, 2])
def test_flash_attention_of_long_sentences_is_the_kernel(
    kind: str, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for budget in (None, (9000, 9000)):
        packed = on_gpu([(900, 1000), (2000, 1700), (700, 500), (900, 1300)], budget)
        spans = spans_of(kind, packed)
        inputs = [x.bfloat16() for x in random_inputs(spans, 4, groups, 64)]
        pull = torch.randn_like(inputs[0])
        pull[spans.low == spans.high] = 0  # nobody asks what padding sees

        def attention(q: Tensor, k: Tensor, v: Tensor, s: Any = spans) -> Tensor:
            return packed_attention(q, k, v, s, 0.125)

        assert choice.suits_flash(inputs[0], spans, 0.0)
        flash = with_gradients(attention, inputs, pull)
        monkeypatch.setattr(choice, "LONG", 10**9)
        kernel = with_gradients(attention, inputs, pull)
        monkeypatch.undo()
        flash[0] = flash[0] * (spans.low < spans.high)[:, None, None]
        for name, one, other in zip(("out", "dq", "dk", "dv"), flash, kernel, strict=True):
            torch.testing.assert_close(one, other, atol=0.03, rtol=0.03, msg=lambda m, n=name: f"{n}: {m}")


def losses(objective: TranslationObjective, batch: Any) -> tuple[Tensor, Tensor]:
    objective.zero_grad(set_to_none=True)
    loss = objective(batch)
    (loss.sum / 100).backward()
    return loss.sum.detach(), torch.cat([p.grad.flatten() for p in objective.parameters() if p.grad is not None])


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("r_drop", [0.0, 1.0])
def test_packed_is_padded(position: str, norm: str, r_drop: float) -> None:
    # gelu: where a ReLU's input is almost zero, the last bit decides whether a word's gradient goes through
    section = TransformerSection(**SMALL, position=position, norm=norm, activation="gelu")
    objective = TranslationObjective(build(section, WORDS, WORDS), label_smoothing=0.1, r_drop=r_drop).cuda()
    batch = random_pairs(some_lengths(30, 40))
    expected = losses(objective, batch.to("cuda"))
    filled = PackedPairs.of(batch, (1500, 1500))
    for packed in (PackedPairs.of(batch), filled, filled.repeating()):
        assert packed is not None
        found = losses(objective, packed.to("cuda"))
        torch.testing.assert_close(found[0], expected[0], atol=1e-3, rtol=1e-5)
        torch.testing.assert_close(found[1], expected[1], atol=1e-4, rtol=1e-3)


def test_a_recording_serves_sentences_of_other_lengths() -> None:
    """And draws other dropout in each replay."""
    packed = [on_gpu(some_lengths(count, below), (2000, 2000)) for count, below in ((40, 40), (20, 70), (100, 12))]
    kept = deepcopy(packed[0])
    inputs = random_inputs(spans_of("across", kept), 4, 4, 64)

    def both(batch: PackedPairs, dropout: float = 0.0) -> list[Tensor]:
        spans = spans_of("across", batch)
        return with_gradients(lambda q, k, v: packed_attention(q, k, v, spans, 0.125, dropout), inputs, inputs[0])

    for dropout in (0.0, 0.3):
        both(kept, dropout)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            recorded = both(kept, dropout)
        for batch in packed:
            kept.source.table.copy_(batch.source.table)
            kept.target.table.copy_(batch.target.table)
            graph.replay()
            if not dropout:
                for one, other in zip(recorded, both(batch), strict=True):
                    torch.testing.assert_close(one, other)
                continue
            once = recorded[0].clone()
            graph.replay()
            assert not torch.equal(once, recorded[0])


def test_compiled_is_eager() -> None:
    section = TransformerSection(**{**SMALL, "encoder_layers": 1, "decoder_layers": 1})
    model = build(section, WORDS, WORDS).cuda()
    compiled = torch.compile(model, fullgraph=True)
    for lengths in ((30, 40), (50, 20)):
        packed = on_gpu(some_lengths(*lengths), (2000, 2000))
        results = []
        for one in (model, compiled):
            model.zero_grad(set_to_none=True)
            states = one(packed.source, packed.target)
            states[0, : packed.tokens].square().sum().backward()
            results.append(
                [states.detach()[0, : packed.tokens], *(p.grad for p in model.parameters() if p.grad is not None)]
            )
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(one, other, atol=1e-3 * max(1.0, float(other.abs().max())), rtol=1e-3)
