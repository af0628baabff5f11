"""Each scorer against its equation, the fused kernel against the written-out sum, and masks."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.layers.attention import (
    SCORERS,
    Additive,
    General,
    Location,
    Scorer,
    attention,
    attention_weights,
    build_scorer,
    register_scorer,
)

BUILT_IN = ["dot", "scaled-dot", "general", "additive", "location"]


def build(name: str, width: int = 6) -> Scorer:
    return build_scorer(name, query_width=width, key_width=width, hidden_width=4, max_source=9)


def equation(scorer: Scorer, name: str, s: Tensor, h: Tensor, position: int) -> Tensor:
    """The score of one query and one key, as the papers write it."""
    if name == "dot":
        return s @ h
    if name == "scaled-dot":
        return s @ h / math.sqrt(len(h))
    if isinstance(scorer, General):
        return s @ scorer.weight.weight @ h
    if isinstance(scorer, Additive):
        both = torch.cat((scorer.query.weight, scorer.key.weight), dim=1) @ torch.cat((s, h)) + scorer.query.bias
        return scorer.score.weight[0] @ torch.tanh(both)
    assert isinstance(scorer, Location)
    return scorer.weight.weight[position] @ s


@pytest.mark.parametrize("name", BUILT_IN)
def test_scores_and_output_follow_the_equation(name: str) -> None:
    scorer = build(name)
    if isinstance(scorer, Additive):
        torch.nn.init.normal_(scorer.query.bias)
    query, key, value = torch.randn(2, 3, 6), torch.randn(2, 5, 6), torch.randn(2, 5, 7)
    scores = torch.stack(
        [
            torch.stack([torch.stack([equation(scorer, name, s, h, i) for i, h in enumerate(keys)]) for s in queries])
            for queries, keys in zip(query, key, strict=True)
        ]
    )
    prepared = scorer.prepare(key)
    torch.testing.assert_close(scorer(query, prepared), scores, atol=1e-5, rtol=1e-5)
    weights = attention_weights(query, prepared, None, scorer)
    torch.testing.assert_close(weights, torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True))
    torch.testing.assert_close(attention(query, prepared, value, None, scorer), weights @ value, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("per_query", [False, True])
@pytest.mark.parametrize("name", BUILT_IN)
def test_masked_fused_and_written_out_agree_to_the_gradient(name: str, per_query: bool) -> None:
    scorer = build(name)
    mask = torch.rand((3, 4, 5) if per_query else (3, 5)) < 0.6
    mask[0] = False  # may look nowhere
    results = []
    for fused in (True, False):
        inputs = [
            torch.randn(shape, generator=torch.Generator().manual_seed(index))
            for index, shape in enumerate(((3, 4, 6), (3, 5, 6), (3, 5, 6)))
        ]
        query, key, value = (tensor.requires_grad_() for tensor in inputs)
        output = attention(query, scorer.prepare(key), value, mask, scorer, fused=fused)
        gradients = torch.autograd.grad(
            output.square().sum(), [query, key, value, *scorer.parameters()], allow_unused=True
        )
        results.append([output.detach(), *(gradient for gradient in gradients if gradient is not None)])
    assert not results[0][0][0].any()  # zeros, not NaN
    for mine, theirs in zip(*results, strict=True):
        assert torch.isfinite(mine).all()
        # sums in another order: the largest numbers say how far they may be apart
        torch.testing.assert_close(mine, theirs, atol=1e-5 * (1 + float(theirs.abs().max())), rtol=1e-5)


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=5), st.sampled_from(BUILT_IN))
def test_weights_are_a_distribution_over_what_the_mask_allows(rows: list[list[bool]], name: str) -> None:
    scorer, mask = build(name), torch.tensor(rows)
    query, key = torch.randn(len(rows), 2, 6) * 30, torch.randn(len(rows), 4, 6) * 30
    weights = attention_weights(query, scorer.prepare(key), mask, scorer)
    assert not weights.masked_select(~mask[:, None].expand_as(weights)).any()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1, keepdim=True).expand(-1, 2).float())


def test_additive_in_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = build("additive")
    query, key = torch.randn(2, 7, 6, requires_grad=True), torch.randn(2, 5, 6)

    def run() -> tuple[Tensor, ...]:
        scores = scorer(query, scorer.prepare(key))
        return scores, *torch.autograd.grad(scores.square().sum(), [query, *scorer.parameters()])

    whole = run()
    monkeypatch.setattr(Additive, "limit", 2 * 2 * 5 * 4)  # two queries at a time
    torch.testing.assert_close(run(), whole)


def test_location_names_the_lengths_when_the_source_is_too_long() -> None:
    with pytest.raises(BadInput, match=r"at most 9 tokens \(model.max_source\), this one has 10"):
        attention(torch.randn(1, 1, 6), torch.randn(1, 10, 6), torch.randn(1, 10, 6), None, build("location"))


def test_general_bridges_widths_and_dot_says_so() -> None:
    scorer = build_scorer("general", 6, 8, 4, 9)
    assert scorer(torch.randn(2, 3, 6), scorer.prepare(torch.randn(2, 5, 8))).shape == (2, 3, 5)
    with pytest.raises(BadInput, match="6 and 8; general bridges them"):
        build_scorer("dot", 6, 8, 4, 9)


def test_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.layers.attention.SCORERS", dict(SCORERS))
    with pytest.raises(BadInput, match=r'no scorer "genral"\. Did you mean "general"'):
        build("genral")
    with pytest.raises(BadInput, match="already belongs to Dot"):

        @register_scorer("dot")
        class Mine(Scorer):
            pass

    @register_scorer("nearest")
    class Nearest(Scorer):
        def forward(self, query_BTD: Tensor, prepared_BSD: Tensor) -> Tensor:
            return -torch.cdist(query_BTD, prepared_BSD)

    key = torch.randn(1, 5, 6)
    scorer = build("nearest")
    assert attention_weights(key, scorer.prepare(key), None, scorer).argmax(-1).tolist() == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("causal", [False, True])
def test_in_low_precision_the_gradient_is_near(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU by plain products, since the fused kernel's gradient is slow there; without gradients it is used."""
    fused = []
    kernel = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *a, **b: fused.append(1) or kernel(*a, **b))
    scorer = build_scorer("scaled-dot", 8, 8, 8, 0)
    tensors = [torch.randn(3, 2, 6, 8, requires_grad=True) for _ in range(3)]
    mask = torch.arange(6) < torch.tensor([[6], [2], [4]])
    results = []
    for low in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            output = attention(*tensors, mask, scorer, causal=causal)
        results.append((output.float(), *torch.autograd.grad(output.float().square().sum(), tensors)))
        assert len(fused) == 1
    for rough, exact in zip(results[1], results[0], strict=True):
        assert (rough - exact).norm() < 2e-2 * exact.norm()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        attention(*tensors, mask, scorer, causal=causal)
    assert len(fused) == 2
