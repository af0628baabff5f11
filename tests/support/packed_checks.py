"""What attention over packed sentences must give, written out, and checks that every device and kernel has to pass."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from jumok.data.batch import PairBatch
from jumok.data.packing import PackedPairs
from jumok.layers.packed_attention import packed_attention
from jumok.layers.spans import Spans

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
KINDS = ["own", "past", "across"]
WORDS = 30


def random_pairs(lengths: list[tuple[int, int]], words: int = WORDS) -> PairBatch:
    """Pairs with so many tokens besides the special ones: none makes a source of one token."""
    sides = [[torch.randint(4, words, (length,)).tolist() for length in side] for side in zip(*lengths, strict=True)]
    return PairBatch.of(sides[0], sides[1], range(100, 100 + len(lengths)), corpus=3)


def some_lengths(pairs: int, below: int) -> list[tuple[int, int]]:
    """Random ones, and with them the shortest there are."""
    return [(0, below - 1), *map(tuple, torch.randint(0, below, (pairs, 2)).tolist()), (below - 1, 0), (0, 0)]


def spans_of(kind: str, batch: PackedPairs) -> Spans:
    if kind == "own":
        return Spans.own(batch.source)
    return Spans.past(batch.target) if kind == "past" else Spans.across(batch.target, batch.source)


def who_sees_whom(spans: Spans) -> Tensor:
    keys = torch.arange(len(spans.first), device=spans.low.device)
    return (spans.low[:, None] <= keys) & (keys < spans.high[:, None])


def dense_weights(query_NHD: Tensor, key_MGD: Tensor, spans: Spans, scale: float) -> Tensor:
    """(H, N, M): all queries against all keys, most of it masked."""
    key_MHD = key_MGD.repeat_interleave(query_NHD.size(1) // key_MGD.size(1), dim=1)
    where = who_sees_whom(spans)
    scores = torch.einsum("nhd,mhd->hnm", query_NHD, key_MHD) * scale
    return torch.softmax(scores.masked_fill(~where, -1e30), dim=-1) * where


def dense(
    q_NHD: Tensor, k_MGD: Tensor, v_MGD: Tensor, spans: Spans, scale: float, kept: Tensor | None = None
) -> Tensor:
    weights_HNM = dense_weights(q_NHD, k_MGD, spans, scale)
    value_MHD = v_MGD.repeat_interleave(q_NHD.size(1) // v_MGD.size(1), dim=1)
    return torch.einsum("hnm,mhd->nhd", weights_HNM if kept is None else weights_HNM * kept, value_MHD)


def random_inputs(spans: Spans, heads: int, groups: int, width: int) -> list[Tensor]:
    device, queries, keys = spans.low.device, len(spans.low), len(spans.first)
    shapes = (queries, heads, width), (keys, groups, width), (keys, groups, width)
    return [torch.randn(shape, device=device) for shape in shapes]


def with_gradients(attention: Attention, inputs: list[Tensor], pull: Tensor) -> list[Tensor]:
    """The output, and the gradients of its product with `pull`."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    out = attention(*leaves)
    out.backward(pull.to(out.dtype))
    found = [out.detach(), *(leaf.grad for leaf in leaves)]
    assert all(tensor is not None for tensor in found)
    return found  # type: ignore[return-value]


def assert_as_dense(
    attention: Attention, spans: Spans, inputs: list[Tensor], scale: float, kept: Tensor | None = None
) -> None:
    pull = torch.randn_like(inputs[0])
    ours = with_gradients(attention, inputs, pull)
    theirs = with_gradients(lambda *three: dense(*three, spans, scale, kept), inputs, pull)
    for name, one, other in zip(("out", "dq", "dk", "dv"), ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4, msg=lambda m, name=name: f"{name}: {m}")
    assert not ours[0][spans.low == spans.high].any(), "who sees nothing has something"


def dropout_of(attention: Attention, spans: Spans, query: Tensor, key: Tensor, scale: float) -> Tensor:
    """(H, N, M): what the weights are multiplied by, read off from values that are the unit vectors."""
    keys, groups, width = key.shape
    assert keys <= width, "there are not so many unit vectors"
    unit = torch.eye(keys, width, device=key.device)[:, None].expand(-1, groups, -1).to(key.dtype)
    seen_HNM = attention(query, key, unit).transpose(0, 1)[..., :keys].float()
    weights_HNM = dense_weights(query.float(), key.float(), spans, scale)
    return torch.where(weights_HNM > 0, seen_HNM / weights_HNM, 0.0)


def assert_dropout_is_one_mask(kind: str, device: str) -> None:
    """Zeros and 1 / (1 − p), as many as there should be, others for each head and seed; and the gradient knows them."""
    share, scale = 0.3, 0.2
    packed = PackedPairs.of(random_pairs([(9, 12), (0, 3), (20, 17), (13, 20)])).to(device)
    spans = spans_of(kind, packed)
    inputs = random_inputs(spans, 4, 2, 64)
    inputs[1] *= 0.3  # no weight so small that it is lost

    def with_seed(seed: int) -> Attention:
        chosen = torch.tensor([seed], device=device)
        return lambda q, k, v: packed_attention(q, k, v, spans, scale, share, chosen)

    kept = dropout_of(with_seed(7), spans, *inputs[:2], scale)
    where = who_sees_whom(spans).expand_as(kept)
    scaled = kept[where] * (1 - share)
    torch.testing.assert_close(scaled, scaled.round(), atol=1e-3, rtol=0)
    assert abs(float(scaled.mean()) - (1 - share)) < 5 * (share * (1 - share) / scaled.numel()) ** 0.5
    assert not torch.equal(kept[0].round(), kept[1].round())
    again, other = (dropout_of(with_seed(seed), spans, *inputs[:2], scale) for seed in (7, 8))
    assert torch.equal(again, kept)
    assert not torch.equal(other.round(), kept.round())
    assert_as_dense(with_seed(7), spans, inputs, scale, torch.where(kept > 0.5, 1 / (1 - share), 0.0))
