"""Characters: a softmax over all, or over kinds and letters of Hangul; both ways round, and what they agree on."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from jumok.layers.characters import CharacterEmbedding, CharacterHead
from jumok.recipe.recognition import CharsetSection
from jumok.text.charset import Charset
from jumok.text.jamo import SYLLABLES
from jumok.text.special import PAD

JAMO = Charset.of(CharsetSection(sets=("digits", "hangul")))
PLAIN = Charset.of(CharsetSection(sets=("digits", "latin")))
WHOLE = Charset.of(CharsetSection(sets=("digits", "hangul"), hangul="syllables"))
ALL = pytest.mark.parametrize("charset", [JAMO, PLAIN, WHOLE], ids=["jamo", "plain", "syllables"])


def head_of(charset: Charset, width: int = 8) -> CharacterHead:
    head = CharacterHead(width, charset.size, charset.first_syllable, charset.jamo)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(torch.randn_like(parameter))
    return head


def ids_of(charset: Charset, *shape: int) -> Tensor:
    """Ids of all kinds: half below the first syllable, where there is one."""
    low = torch.randint(0, charset.first_syllable or charset.size, shape)
    return torch.where(torch.rand(shape) < 0.5, low, torch.randint(0, charset.size, shape))


@ALL
def test_probabilities_sum_to_1(charset: Charset) -> None:
    log_probs = head_of(charset).log_probs(torch.randn(3, 2, 8))
    assert log_probs.shape == (3, 2, charset.size)
    torch.testing.assert_close(log_probs.double().exp().sum(dim=-1), torch.ones(3, 2).double(), atol=1e-4, rtol=0)


@ALL
def test_all_ways_to_ask_agree(charset: Charset) -> None:
    head, hidden = head_of(charset), torch.randn(4, 6, 8)
    log_probs = head.log_probs(hidden)
    ids = ids_of(charset, 4, 6)
    torch.testing.assert_close(head.of(hidden, ids), log_probs.gather(2, ids[..., None])[..., 0])
    several = ids_of(charset, 4, 9)
    torch.testing.assert_close(head.among(hidden, several), log_probs.gather(2, several[:, None].expand(-1, 6, -1)))
    best, id = head.best(hidden)
    torch.testing.assert_close(best, log_probs.max(dim=-1).values, rtol=0, atol=0)
    torch.testing.assert_close(log_probs.gather(2, id[..., None])[..., 0], best, rtol=0, atol=0)


@ALL
def test_some_are_never_chosen(charset: Charset) -> None:
    head = head_of(charset)
    with torch.no_grad():
        head.map.bias[:3] += 50  # the first ones are always the likeliest
    hidden = torch.randn(40, 8)
    assert (head.best(hidden)[1] < 3).all()
    best, id = head.best(hidden, without=(0, 1, 2))
    log_probs = head.log_probs(hidden)
    torch.testing.assert_close(log_probs.gather(1, id[:, None])[:, 0], best, rtol=0, atol=0)  # still what they were
    log_probs[:, :3] = float("-inf")
    torch.testing.assert_close(best, log_probs.max(dim=-1).values, rtol=0, atol=0)


def test_without_hangul_it_is_a_linear_map_and_a_softmax() -> None:
    head, hidden = head_of(PLAIN), torch.randn(5, 8)
    layer = torch.nn.Linear(8, PLAIN.size)
    layer.load_state_dict(head.map.state_dict())
    torch.testing.assert_close(head.log_probs(hidden), torch.log_softmax(layer(hidden), dim=-1))


def test_a_syllable_is_a_kind_and_three_letters() -> None:
    head, hidden = head_of(JAMO), torch.randn(8)
    kinds, leads, vowels, tails = head.scores(hidden)
    (id,) = JAMO.encode("한")  # ㅎ is the 19th lead, ㅏ the first vowel, ㄴ the fourth tail after none
    expected = kinds[-1] + leads[18] + vowels[0] + tails[4]
    torch.testing.assert_close(head.log_probs(hidden)[id], expected)
    (digit,) = JAMO.encode("7")
    torch.testing.assert_close(head.log_probs(hidden)[digit], kinds[digit])


def test_gradients_by_all_ways_agree() -> None:
    head, ids = head_of(JAMO).double(), ids_of(JAMO, 2, 3)
    given = torch.randn(2, 3, 8, dtype=torch.float64)
    found = []
    for way in (lambda h: head.of(h, ids), lambda h: head.log_probs(h).gather(2, ids[..., None])[..., 0]):
        hidden = given.clone().requires_grad_()
        head.zero_grad()
        way(hidden).sum().backward()
        assert hidden.grad is not None
        assert head.map.weight.grad is not None
        found.append((hidden.grad, head.map.weight.grad.clone()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@ALL
def test_in_low_precision_the_softmax_is_not(charset: Charset) -> None:
    head, hidden = head_of(charset), torch.randn(3, 4, 8)
    ids = ids_of(charset, 3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        found = (head.log_probs(hidden), head.of(hidden, ids), head.among(hidden, ids), head.best(hidden)[0])
    assert all(one.dtype == torch.float32 for one in found)
    torch.testing.assert_close(found[0].exp().sum(dim=-1), torch.ones(3, 4), atol=1e-4, rtol=0)


# ---------------------------------------------------------------- as vectors


@ALL
def test_vectors_have_one_size_and_padding_none(charset: Charset) -> None:
    embedding = CharacterEmbedding(charset.size, 64, charset.first_syllable, charset.jamo)
    vectors = embedding(torch.arange(charset.size))
    assert vectors.shape == (charset.size, 64)
    assert (vectors[PAD] == 0).all()
    first = charset.first_syllable
    for part in (vectors[4:],) if first is None else (vectors[4:first], vectors[first:]):
        assert math.isclose(float(part.detach().pow(2).mean()), 1, rel_tol=0.35)
    assert len(torch.unique(vectors.detach(), dim=0)) == charset.size


def test_a_syllable_is_the_sum_of_its_letters() -> None:
    """So 간 − 가 = 난 − 나: the same last letter was added."""
    embedding = CharacterEmbedding(JAMO.size, 16, JAMO.first_syllable, JAMO.jamo)
    with_tail, without, other_with, other_without = embedding(torch.tensor(JAMO.encode("간가난나")))
    torch.testing.assert_close(with_tail - without, other_with - other_without)
    first, last = embedding(torch.tensor(JAMO.encode("가힣")))
    table, start = embedding.table.weight * 16**0.5, JAMO.first_syllable
    assert start is not None
    torch.testing.assert_close(first, (table[start] + table[start + 19] + table[start + 40]) / 3**0.5)
    torch.testing.assert_close(last, (table[start + 18] + table[start + 39] + table[start + 67]) / 3**0.5)
    assert embedding.table.num_embeddings == start + 68


def test_syllables_come_last() -> None:
    with pytest.raises(ValueError, match="syllables come last"):
        CharacterHead(8, 20 + SYLLABLES + 1, 20, True)
