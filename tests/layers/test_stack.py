"""A stack of blocks: who may see whom, and that what a cache keeps is enough."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.layers.block import Source
from jumok.layers.cache import KeyValueCache
from jumok.layers.multihead import Look
from jumok.layers.stack import Stack, compute_again
from jumok.recipe import TransformerSection

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
POSITIONS = ["sinusoidal", "sinusoidal-halves", "learned", "rotary", "relative", "none"]


def stack_of(kind: str, **keys: Any) -> Stack:
    small = {"width": 24, "heads": 4, "feed_forward": 32, "dropout": 0.0, "max_positions": 64}
    stack = Stack(TransformerSection(**{**small, **keys}), 2, kind, "decoder")
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return stack


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("position", POSITIONS)
def test_a_word_sees_those_before_it_and_itself_only(position: str, norm: str) -> None:
    """By the gradient: ∂ out_t / ∂ in_s is zero exactly where s > t."""
    stack, x = stack_of("causal", position=position, norm=norm), torch.randn(1, 5, 24, requires_grad=True)
    for t, output in enumerate(stack(x)[0]):
        (gradient,) = torch.autograd.grad((output * torch.randn(24)).sum(), x, retain_graph=True)
        seen = gradient[0].abs().sum(-1) > 0
        assert seen.tolist() == [s <= t for s in range(5)]


@pytest.mark.parametrize("position", POSITIONS)
def test_both_ways_every_word_sees_all_that_the_mask_allows(position: str) -> None:
    stack, x = stack_of("self", position=position), torch.randn(1, 5, 24, requires_grad=True)
    mask = torch.tensor([[True, True, True, True, False]])
    for output in stack(x, mask)[0, :4]:
        (gradient,) = torch.autograd.grad((output * torch.randn(24)).sum(), x, retain_graph=True)
        assert (gradient[0].abs().sum(-1) > 0).tolist() == [True] * 4 + [False]


@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_only_with_positions_does_the_order_matter(position: str) -> None:
    stack, x, order = stack_of("self", position=position), torch.randn(1, 6, 24), torch.randperm(6)
    moved = torch.allclose(stack(x)[:, order], stack(x[:, order]), atol=1e-4)
    assert moved == (position == "none" or order.tolist() == list(range(6)))


@pytest.mark.parametrize("position", ["rotary", "relative"])
@torch.no_grad()
def test_relative_kinds_do_not_care_where_the_text_begins(position: str) -> None:
    """The last words see only each other (a window of a mask): moved to the front they come out the same."""
    stack, x = stack_of("self", position=position), torch.randn(1, 9, 24)
    mask = torch.arange(9)[None] >= 5
    torch.testing.assert_close(stack(x, mask)[:, 5:], stack(x[:, 5:]), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("keys", [{}, {"norm": "post"}, {"key_value_heads": 2}, {"final_norm": False}], ids=str)
@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_pieces_through_a_cache_are_the_whole(position: str, keys: dict[str, Any]) -> None:
    """One, several, or many tokens at a time, past the capacity the cache began with."""
    stack, x = stack_of("causal", position=position, **keys), torch.randn(3, 12, 24)
    whole, cache = stack(x), KeyValueCache.empty(2, 3, 2, keys.get("key_value_heads", 4), 6, x)
    done = 0
    for tokens in (1, 2, 4, 1, 4):
        cache = cache.with_room(tokens)
        found = stack(x[:, done : done + tokens], cache=cache)
        torch.testing.assert_close(found, whole[:, done : done + tokens], **CLOSE)
        cache, done = cache.advanced(tokens), done + tokens


@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_rows_at_different_positions_go_on_as_if_alone(position: str) -> None:
    stack, texts = stack_of("causal", position=position), [torch.randn(1, length, 24) for length in (7, 2, 5)]

    def read(text: Tensor, length: int) -> KeyValueCache:
        cache = KeyValueCache.empty(2, 1, 4, 4, 6, text).with_room(length)
        stack(text[:, :length], cache=cache)
        return cache.advanced(length)

    lengths = [5, 0, 3]
    cache = KeyValueCache.join([read(text, length) for text, length in zip(texts, lengths, strict=True)])
    for tokens in (1, 1):
        cache = cache.with_room(tokens)
        new = torch.cat([text[:, length : length + tokens] for text, length in zip(texts, lengths, strict=True)])
        found = stack(new, cache=cache)
        lengths = [length + tokens for length in lengths]
        for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            torch.testing.assert_close(found[row], stack(text[:, :length])[0, -tokens:], **CLOSE)
        cache = cache.advanced(tokens)


@torch.no_grad()
def test_columns_of_a_longer_row_that_has_gone_count_for_nobody() -> None:
    """Learned positions end at 8; a row that stands at 0 may go there whatever the others did."""
    stack, text = stack_of("causal", position="learned", max_positions=8), torch.randn(1, 8, 24)
    long, short = (KeyValueCache.empty(2, 1, 8, 4, 6, text) for _ in range(2))
    stack(torch.randn(1, 6, 24), cache=long)
    cache = KeyValueCache.join([long.advanced(6), short]).select(torch.tensor([1]))
    for position, expected in enumerate(stack(text)[0]):
        cache = cache.with_room(1)
        torch.testing.assert_close(stack(text[:, [position]], cache=cache)[0, 0], expected, **CLOSE)
        cache = cache.advanced(1)


def test_the_final_norm_comes_with_pre_norm_unless_asked_otherwise() -> None:
    for norm, asked, expected in (
        ("pre", None, True),
        ("post", None, False),
        ("pre", False, False),
        ("post", True, True),
    ):
        assert isinstance(stack_of("self", norm=norm, final_norm=asked).norm, nn.LayerNorm) == expected


def test_the_embedded_words_are_dropped_too() -> None:
    """A stack without layers to hide it: dropout on what goes in, in training only."""
    section = TransformerSection(width=24, heads=4, dropout=0.3, position="none", final_norm=False)
    stack, ones = Stack(section, 0, "self", "encoder"), torch.ones(100, 5, 24)
    dropped = stack.train()(ones)
    assert abs(float((dropped == 0).float().mean()) - 0.3) < 6 * (0.21 / ones.numel()) ** 0.5
    assert torch.equal(stack.eval()(ones), ones)


@pytest.mark.parametrize("cross", [False, True])
def test_blocks_computed_again_give_the_same_gradients_from_less(cross: bool) -> None:
    """Dropout on: what is drawn in the forward pass is drawn again."""
    section = TransformerSection(width=16, heads=2, feed_forward=32, dropout=0.3)
    stack = Stack(section, 3, "causal", "decoder", cross)
    x_BTD, memory = torch.randn(2, 5, 16), torch.randn(2, 4, 16)
    found = []
    for again in (False, True):
        if again:
            compute_again(nn.ModuleDict({"stack": stack}))
        kept: list[int] = []
        x = x_BTD.clone().requires_grad_()
        torch.manual_seed(4)

        def keep(tensor: Tensor, kept: list[int] = kept) -> Tensor:
            kept.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            sources = None
            if cross:
                sources = [Source(block.cross.project(memory), Look()) for block in stack.blocks]
            out = stack(x, sources=sources)
        stack.zero_grad()
        out.square().sum().backward()
        found.append(
            (out.detach(), x.grad, [p.grad.clone() for p in stack.parameters() if p.grad is not None], sum(kept))
        )
    assert torch.equal(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1:3], found[1][1:3])
    assert found[1][3] < 0.5 * found[0][3]


def test_a_recurrent_model_computes_nothing_again() -> None:
    with pytest.raises(BadInput, match=r"training\.checkpoint_activations needs a Transformer"):
        compute_again(nn.LSTM(3, 3))
