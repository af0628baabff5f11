"""BERT: packed is padded, texts do not see each other, one vector for a text, and which weights are how far down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from jumok.data.batch import PAD, Sequences
from jumok.data.packing import PackedSide
from jumok.errors import BadInput
from jumok.models.bert import Bert, HiddenWords, depth_of, freeze
from jumok.models.reader import TextLabeller, WordLabeller
from jumok.recipe import BertSection

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
WORDS = 40
SMALL = {"width": 16, "heads": 2, "layers": 2, "feed_forward": 24, "max_positions": 32}
KINDS: list[dict[str, Any]] = [
    {},
    {"position": "rotary", "norm": "pre", "activation": "swiglu"},
    {"position": "relative"},
    {"position": "sinusoidal", "norm_kind": "rms", "segments": 0},
    {"position": "none", "key_value_heads": 1, "segments": 3},
]


def model_of(**keys: Any) -> Bert:
    """Every weight off its start, so that it counts."""
    model = Bert(BertSection(**{**SMALL, **keys}), WORDS)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        model.embedding.weight[PAD] = 0
    return model.eval()


def random_texts(rows: int = 5, longest: int = 12) -> tuple[Sequences, Tensor]:
    lengths = torch.randint(1, longest + 1, (rows,)).tolist()
    words = Sequences.pad([torch.randint(1, WORDS, (length,)).tolist() for length in lengths])
    return words, torch.randint(2, words.ids.shape) * words.mask


def packed_of(words: Sequences, segments: Tensor, size: int | None) -> tuple[PackedSide, Tensor]:
    side = PackedSide.of(words, size)
    flat = segments[words.mask]
    return side, torch.nn.functional.pad(flat, (0, side.table.size(1) - len(flat)))[None]


@pytest.mark.parametrize("keys", KINDS, ids=str)
@pytest.mark.parametrize("size", [None, 80])
@torch.no_grad()
def test_packed_is_padded(keys: dict[str, Any], size: int | None) -> None:
    model, (words, segments) = model_of(**keys), random_texts()
    side, parts = packed_of(words, segments, size)
    expected, found = model(words, segments), model(side, parts)
    torch.testing.assert_close(found[0, : side.tokens], expected[words.mask], **CLOSE)
    torch.testing.assert_close(model.pooled(found, side), model.pooled(expected, words), **CLOSE)
    torch.testing.assert_close(model(side)[0, : side.tokens], model(words)[words.mask], **CLOSE)


@pytest.mark.parametrize("keys", KINDS, ids=str)
@torch.no_grad()
def test_a_text_does_not_depend_on_padding_or_neighbours(keys: dict[str, Any]) -> None:
    model, (words, segments) = model_of(**keys), random_texts()
    together = model(words, segments)
    for row, length in enumerate(words.lengths.tolist()):
        alone = Sequences(words.ids[row : row + 1, :length], words.lengths[row : row + 1])
        found = model(alone, segments[row : row + 1, :length])
        torch.testing.assert_close(found[0], together[row, :length], **CLOSE)
    other = Sequences(torch.where(words.mask, words.ids, torch.randint(1, WORDS, words.ids.shape)), words.lengths)
    torch.testing.assert_close(model(other, segments)[words.mask], together[words.mask], **CLOSE)


@pytest.mark.parametrize("keys", KINDS, ids=str)
@torch.no_grad()
def test_texts_in_one_row_do_not_see_each_other(keys: dict[str, Any]) -> None:
    """One of them changed, and the states of all others stay what they were, to the bit or nearly."""
    model, (words, _) = model_of(**keys), random_texts()
    before = model(PackedSide.of(words, 70))[0]
    starts = np.concatenate([[0], np.cumsum(words.lengths.numpy())])
    for row in range(len(words)):
        ids = words.ids.clone()
        ids[row, : int(words.lengths[row])] = torch.randint(1, WORDS, (int(words.lengths[row]),))
        after = model(PackedSide.of(Sequences(ids, words.lengths), 70))[0]
        mine = torch.zeros(len(before), dtype=torch.bool)
        mine[starts[row] : starts[row + 1]] = True
        mine[starts[-1] :] = True  # padding
        torch.testing.assert_close(after[~mine], before[~mine], atol=1e-6, rtol=1e-6)
        same = torch.equal(ids, words.ids)
        assert same or (after - before)[starts[row] : starts[row + 1]].abs().max() > 1e-4


@torch.no_grad()
def test_every_word_sees_all_words_before_and_after_it() -> None:
    model = model_of()
    ids = torch.randint(1, WORDS, (1, 9))
    before = model(Sequences(ids, torch.tensor([9])))
    for place in range(9):
        changed = ids.clone()
        changed[0, place] = 1 + ids[0, place] % (WORDS - 1)
        moved = (model(Sequences(changed, torch.tensor([9]))) - before).abs().amax(dim=-1)[0]
        assert (moved > 1e-6).all()


@torch.no_grad()
def test_what_stands_for_a_text() -> None:
    words, _ = random_texts()
    first = model_of()
    hidden = first(words)
    expected = torch.tanh(hidden[:, 0] @ first.pooler.weight.T + first.pooler.bias)
    torch.testing.assert_close(first.pooled(hidden, words), expected, **CLOSE)
    torch.testing.assert_close(first.pooled(hidden), expected, **CLOSE)
    mean = model_of(pooling="mean")
    hidden = mean(words)
    expected = torch.stack([hidden[row, :n].mean(dim=0) for row, n in enumerate(words.lengths.tolist())])
    torch.testing.assert_close(mean.pooled(hidden, words), expected, **CLOSE)
    torch.testing.assert_close(mean.pooled(torch.where(words.mask[..., None], hidden, 9.0), words), expected, **CLOSE)


@torch.no_grad()
def test_segments_and_positions_count() -> None:
    model, (words, segments) = model_of(), random_texts()
    segments[0, 0] = 1
    assert (model(words, segments) - model(words))[0, 0].abs().max() > 1e-3
    torch.testing.assert_close(model(words, torch.zeros_like(segments)), model(words), **CLOSE)
    turned = Sequences(words.ids.flip(1), torch.full_like(words.lengths, words.ids.size(1)))
    whole = Sequences(words.ids, turned.lengths)
    assert (model(turned).flip(1) - model(whole)).abs().max() > 1e-3


def test_a_text_over_the_learned_positions_is_refused() -> None:
    with pytest.raises(BadInput, match="32"):
        model_of()(Sequences(torch.ones(1, 33, dtype=torch.long), torch.tensor([33])))


def test_the_head_guesses_by_the_word_vectors() -> None:
    model = HiddenWords(model_of(), order=True)
    names = dict(model.named_parameters())
    assert names["reader.embedding.weight"] is model.output(torch.zeros(1, 16))[1]
    hidden = torch.randn(3, 16)
    made = model.norm(torch.nn.functional.gelu(model.transform(hidden)))
    expected = made @ model.reader.embedding.weight.T + model.bias
    torch.testing.assert_close(model.head(hidden), expected, **CLOSE)


DEPTHS = {
    "embedding.weight": 0,
    "segments.weight": 0,
    "positions.weight": 0,
    "norm.weight": 0,
    "encoder.blocks.0.": 1,
    "encoder.blocks.1.": 2,
    "encoder.norm.": 3,
    "pooler.": 3,
}


@pytest.mark.parametrize("kind", [HiddenWords, TextLabeller, WordLabeller])
def test_how_far_from_the_words_a_weight_is(kind: Any) -> None:
    section = BertSection(**{**SMALL, "norm": "pre", "final_norm": True})
    model = HiddenWords(Bert(section, WORDS), order=True) if kind is HiddenWords else kind(section, WORDS, 3)
    seen = set()
    for name, _ in model.named_parameters():
        depth = depth_of(name, section.layers)
        seen.add(depth)
        if not name.startswith("reader."):
            assert depth == 3, f"{name} stands on top"
            continue
        known = [
            d for start, d in DEPTHS.items() if name.removeprefix("reader.").startswith(start.removesuffix("weight"))
        ]
        assert known == [depth], name
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize("depth", [1, 2])
def test_freezing_takes_the_words_and_the_layers_from_below(depth: int) -> None:
    model = TextLabeller(BertSection(**SMALL), WORDS, 3)
    freeze(model, depth, 2)
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad == (depth_of(name, 2) > depth), name
    model(Sequences.pad([[5, 6, 7]])).sum().backward()
    assert model.reader.embedding.weight.grad is None
    assert model.head.scores.weight.grad is not None
