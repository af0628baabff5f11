"""The kernels without a GPU, in Triton's interpreter:

    TRITON_INTERPRET=1 python -m pytest tests/layers/test_spans_triton.py tests/models/test_packed.py

needs the `triton` package, which PyTorch for the CPU does not bring along. tests/gpu/test_packed.py has them for real.
"""

from __future__ import annotations

import pytest
import torch
from packed_checks import (
    KINDS,
    assert_as_dense,
    assert_dropout_is_one_mask,
    random_inputs,
    random_pairs,
    some_lengths,
    spans_of,
    with_gradients,
)

from jumok.data.packing import PackedPairs
from jumok.layers.packed_attention import HAS_TRITON, INTERPRETED, packed_attention

pytestmark = pytest.mark.skipif(not (HAS_TRITON and INTERPRETED), reason="needs triton and TRITON_INTERPRET=1")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize(("heads", "groups", "width"), [(2, 2, 16), (4, 2, 24), (2, 1, 64), (1, 1, 128)])
def test_the_kernel_is_all_against_all(kind: str, filled: bool, heads: int, groups: int, width: int) -> None:
    """Sentences from one token to several tiles, ends of tiles in their midst."""
    packed = PackedPairs.of(random_pairs([*some_lengths(5, 20), (70, 90)]), (250, 290) if filled else None)
    spans = spans_of(kind, packed.twice() if filled else packed)
    inputs = random_inputs(spans, heads, groups, width)
    assert_as_dense(lambda q, k, v: packed_attention(q, k, v, spans, 0.2), spans, inputs, 0.2)


def test_parts_of_one_projection_need_no_copy() -> None:
    spans = spans_of("own", PackedPairs.of(random_pairs(some_lengths(5, 20))))
    together = torch.randn(len(spans.low), 3, 2, 16)
    inputs = list(together.unbind(1))
    assert not inputs[0].is_contiguous()
    assert_as_dense(lambda q, k, v: packed_attention(q, k, v, spans, 0.2), spans, inputs, 0.2)
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    assert turned[0].stride(-1) != 1
    assert_as_dense(lambda q, k, v: packed_attention(q, k, v, spans, 0.2), spans, turned, 0.2)


def test_low_precision_is_near() -> None:
    """In float16: the interpreter cannot multiply bfloat16."""
    dtype = torch.float16
    spans = spans_of("past", PackedPairs.of(random_pairs(some_lengths(5, 40))))
    inputs = [x.to(dtype) for x in random_inputs(spans, 2, 2, 64)]
    pull = torch.randn_like(inputs[0])
    low = with_gradients(lambda q, k, v: packed_attention(q, k, v, spans, 0.125), inputs, pull)
    full = with_gradients(
        lambda q, k, v: packed_attention(q, k, v, spans, 0.125), [x.float() for x in inputs], pull.float()
    )
    for one, other in zip(low, full, strict=True):
        assert one.dtype == dtype
        torch.testing.assert_close(one.float(), other, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_one_mask_forward_and_backward(kind: str) -> None:
    assert_dropout_is_one_mask(kind, "cpu")


def test_equal_inputs_give_equal_bits() -> None:
    spans = spans_of("across", PackedPairs.of(random_pairs(some_lengths(5, 30))))
    inputs = random_inputs(spans, 2, 1, 32)
    pull = torch.randn_like(inputs[0])
    once, again = (with_gradients(lambda q, k, v: packed_attention(q, k, v, spans, 0.2), inputs, pull) for _ in "ab")
    assert all(torch.equal(one, other) for one, other in zip(once, again, strict=True))


def test_pytorch_agrees_that_it_is_an_operator() -> None:
    from jumok.layers.spans_triton import _forward_op

    spans = spans_of("own", PackedPairs.of(random_pairs([(5, 3), (2, 2)])))
    inputs = [x.requires_grad_() for x in random_inputs(spans, 2, 1, 16)]
    intervals = spans.low, spans.high, spans.first, spans.last
    torch.library.opcheck(
        _forward_op, (*inputs, *intervals, None, 0.25, 0.0), test_utils=("test_schema", "test_faketensor")
    )
    torch.library.opcheck(
        _forward_op,
        (*inputs, *intervals, torch.tensor([3]), 0.25, 0.1),
        test_utils=("test_autograd_registration", "test_aot_dispatch_dynamic"),
    )
