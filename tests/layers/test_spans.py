"""Who sees whom, for queries and for keys alike; and sentences side by side come back end to end."""

from __future__ import annotations

import pytest
import torch
from packed_checks import KINDS, random_pairs, some_lengths, spans_of, who_sees_whom

from jumok.data.packing import PackedPairs
from jumok.layers.spans import end_to_end, mask_of, side_by_side


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("doubled", [False, True])
def test_intervals_say_who_sees_whom(kind: str, filled: bool, doubled: bool) -> None:
    packed = PackedPairs.of(random_pairs(some_lengths(5, 9)), (80, 90) if filled else None)
    packed = packed.twice() if doubled else packed
    spans = spans_of(kind, packed)
    expected = torch.zeros(len(spans.low), len(spans.first), dtype=torch.bool)
    for q, n, k, m in zip(
        *(x.tolist() for side in (spans.queries, spans.keys) for x in (side.starts, side.lengths)), strict=True
    ):
        expected[q : q + n, k : k + m] = torch.ones(n, m).tril().bool() if kind == "past" else True
    assert torch.equal(who_sees_whom(spans), expected)
    queries = torch.arange(len(spans.low))[:, None]
    reach = (spans.first <= queries) & (queries < spans.last)
    assert torch.equal(reach & expected, expected), "a query that the key's interval does not know of"
    for edge in (spans.low, spans.high, spans.first, spans.last):
        assert edge.dtype == torch.int32
        assert (edge.diff() >= 0).all()


@pytest.mark.parametrize("filled", [False, True])
def test_side_by_side_and_back(filled: bool) -> None:
    batch = random_pairs(some_lengths(5, 9))
    packed = PackedPairs.of(batch, (80, 90) if filled else None)
    for side, rows in ((packed.source, batch.source), (packed.twice().source, batch.source.twice())):
        x_NHD = torch.randn(side.table.size(1), 2, 3, requires_grad=True)
        x_BHTD = side_by_side(x_NHD, side)
        assert x_BHTD.shape == (len(rows), 2, rows.ids.size(1), 3)
        assert torch.equal(mask_of(side), rows.mask)
        ids_BT = side_by_side(side.ids[0][:, None, None], side)[:, 0, :, 0]
        assert torch.equal(ids_BT[rows.mask].long(), rows.ids[rows.mask])
        real = (side.begin < side.end)[:, None, None]
        back = end_to_end(x_BHTD, side)
        torch.testing.assert_close(back, x_NHD * real)
        (gradient,) = torch.autograd.grad(back.sum(), x_NHD)
        torch.testing.assert_close(gradient, real.expand_as(x_NHD).float())
