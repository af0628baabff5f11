"""The encoder–decoder Transformer: a step is the whole, neighbours do not matter, and it learns."""

from __future__ import annotations

import itertools
from copy import deepcopy
from typing import Any

import pytest
import torch
from invariance import Trembling, Uncached, differences, translate, ways
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import END, PAD, START, Sequences, source_batch, target_batch
from jumok.errors import BadInput
from jumok.layers.attention import attention_weights
from jumok.layers.tap import Tap
from jumok.models.build import build
from jumok.models.transformer import Transformer
from jumok.recipe import Search, TransformerSection
from jumok.search import SearchOptions
from jumok.tasks.engine import Engine
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import train_tokenizer

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
POSITIONS = ["sinusoidal", "sinusoidal-halves", "learned", "rotary", "relative", "none"]
SMALL = {"width": 16, "heads": 4, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 2, "max_positions": 64}
WORDS = 30


def model_of(**keys: Any) -> Transformer:
    """A small model whose every weight is off its start, so that it counts."""
    model = build(TransformerSection(**{**SMALL, **keys}), WORDS, WORDS)
    assert isinstance(model, Transformer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return model.eval()


def random_rows(lengths: list[int], vocabulary: int = WORDS) -> list[list[int]]:
    return [torch.randint(4, vocabulary, (length,)).tolist() for length in lengths]


def log_probs(model: Transformer, source: Sequences, ids: Tensor) -> Tensor:
    return F.log_softmax(model.head(model(source, ids)), dim=-1)


def stepped(model: Transformer, source: Sequences, ids: Tensor, capacity: int | None = None) -> Tensor:
    """Log-probabilities of every position, one step at a time."""
    memory, found = model.encode(source), []
    cache = model.start(memory, len(ids), capacity or ids.size(1))
    for position in range(ids.size(1)):
        step, cache = model.step(ids[:, position], torch.full((len(ids),), position), memory, cache)
        assert step.dtype == torch.float32
        found.append(step)
    return torch.stack(found, dim=1)


MIXES = list(
    itertools.product(("relu", "gelu", "silu", "swiglu"), (None, 2), ("none", "target", "all"), ("layer", "rms"))
)


@pytest.mark.parametrize("count", [12, pytest.param(len(MIXES), marks=pytest.mark.full)])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_cached_steps_are_the_uncached_whole(position: str, norm: str, count: int) -> None:
    """For mixes of the options, others each time; for every mix in the full tests."""
    for activation, groups, tied, kind in (MIXES[place] for place in torch.randperm(len(MIXES))[:count].tolist()):
        keys = {"activation": activation, "key_value_heads": groups, "tie_embeddings": tied, "norm_kind": kind}
        model = model_of(position=position, norm=norm, **keys)
        source, ids = source_batch(random_rows([3, 7, 1])), target_batch(random_rows([5, 4, 6])).ids[:, :-1]
        torch.testing.assert_close(stepped(model, source, ids), log_probs(model, source, ids), **CLOSE)


@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_long_outputs_outgrow_the_cache_and_the_tables(position: str) -> None:
    model = model_of(position=position, max_positions=512)
    source, ids = source_batch(random_rows([4, 2])), torch.randint(4, WORDS, (2, 300))
    whole = log_probs(model, source, ids)
    torch.testing.assert_close(stepped(model, source, ids), whole, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(stepped(model, source, ids[:, :40], capacity=2), whole[:, :40], **CLOSE)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_a_row_does_not_depend_on_padding_or_neighbours(position: str, norm: str) -> None:
    model = model_of(position=position, norm=norm)
    sources, targets = random_rows([9, 2, 5]), random_rows([3, 8, 5])
    together = log_probs(model, source_batch(sources), target_batch(targets).ids)
    for row in range(3):
        alone = log_probs(model, source_batch([sources[row]]), target_batch([targets[row]]).ids)
        torch.testing.assert_close(alone[0], together[row, : alone.size(1)], **CLOSE)


@torch.no_grad()
def test_what_stands_in_the_padding_does_not_matter() -> None:
    model, source = model_of(), source_batch(random_rows([6, 2]))
    ids = torch.randint(4, WORDS, (2, 4))
    other = torch.where(source.mask, source.ids, torch.randint(4, WORDS, source.ids.shape))
    changed = log_probs(model, Sequences(other, source.lengths), ids)
    torch.testing.assert_close(changed, log_probs(model, source, ids), **CLOSE)


@torch.no_grad()
def test_a_prediction_does_not_depend_on_later_words() -> None:
    model, source, ids = model_of(), source_batch(random_rows([6])), torch.randint(4, WORDS, (1, 8))
    later = ids.clone()
    later[:, 5:] = torch.randint(4, WORDS, (1, 3))
    torch.testing.assert_close(log_probs(model, source, later)[:, :5], log_probs(model, source, ids)[:, :5], **CLOSE)


@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_select_keeps_repeats_and_reorders_rows(position: str) -> None:
    model = model_of(position=position, key_value_heads=2)
    sources, ids = random_rows([4, 6, 2]), torch.randint(4, WORDS, (3, 4))
    memory = model.encode(source_batch(sources))
    cache = model.start(memory, 3, 4)
    for position_ in range(2):
        _, cache = model.step(ids[:, position_], torch.full((3,), position_), memory, cache)
    for rows in ([2, 0, 0, 1], [1], [1, 2, 0], [0, 1, 2]):
        chosen, chosen_cache = model.select(memory, cache, torch.tensor(rows))
        found, _ = model.step(ids[rows, 2], torch.full((len(rows),), 2), chosen, chosen_cache)
        expected = log_probs(model, source_batch([sources[row] for row in rows]), ids[rows, :3])[:, 2]
        torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_join_puts_rows_of_several_batches_at_several_positions_together(position: str) -> None:
    model = model_of(position=position, key_value_heads=2)
    sources, ids = random_rows([4, 9, 2, 6, 3]), torch.randint(4, WORDS, (5, 60))

    def begun(rows: list[int], steps: int, coverage: bool) -> tuple[Any, Any]:
        memory = model.encode(source_batch([sources[row] for row in rows]))
        cache = model.start(memory, len(rows), 60, coverage=coverage)
        for step in range(steps):
            _, cache = model.step(ids[rows, step], torch.full((len(rows),), step), memory, cache)
        return memory, cache

    parts = [begun([0, 1], 3, False), begun([2], 0, True), begun([3, 4], 1, True)]
    order, places = [0, 2, 3, 4, 2], torch.tensor([3, 0, 1, 1, 0])
    memory, cache = model.select(*model.join(parts), torch.tensor(order))  # the longest source has left
    memory, cache = model.join([(memory, cache)])
    for _ in range(40):  # over the capacity that a cache begins with, too
        found, cache = model.step(ids[order, places], places, memory, cache)
        for row, sentence in enumerate(order):
            known = ids[[sentence], : int(places[row]) + 1]
            expected = log_probs(model, source_batch([sources[sentence]]), known)[0, -1]
            torch.testing.assert_close(found[row], expected, **CLOSE)
        places = places + 1
    # every step looks at the source with weights that sum to 1; row 0 kept none before it was joined
    torch.testing.assert_close(model.coverage(cache).sum(1), torch.tensor([40.0, 40.0, 41.0, 41.0, 40.0]))


@torch.no_grad()
def test_the_first_sentences_of_two_batches_are_not_the_same_sentence() -> None:
    """Each batch counts its sentences from 0; put together and changing places, every row keeps its own source."""
    model, sources, ids = model_of(), random_rows([5, 3]), torch.randint(4, WORDS, (2, 1))
    memories = [model.encode(source_batch([source])) for source in sources]
    memory, cache = model.join([(memory, model.start(memory, 1, 4)) for memory in memories])
    memory, cache = model.select(memory, cache, torch.tensor([1, 0]))
    found, _ = model.step(ids[:, 0], torch.zeros(2, dtype=torch.long), memory, cache)
    expected = log_probs(model, source_batch([sources[1], sources[0]]), ids)[:, 0]
    torch.testing.assert_close(found, expected, **CLOSE)


@torch.no_grad()
def test_coverage_is_the_sum_of_the_cross_attentions_weights() -> None:
    model, source, ids = model_of(), source_batch(random_rows([3, 6])), torch.randint(4, WORDS, (2, 4))
    weights: list[Tensor] = []
    for tap in (module for module in model.modules() if isinstance(module, Tap) and module.kind == "cross"):
        tap.register_forward_hook(
            lambda _, inputs, __: weights.append(attention_weights(*inputs[:2], *inputs[3:7]).mean(dim=1))
        )
    model(source, ids)
    expected = torch.stack(weights).mean(dim=0).sum(dim=1)
    memory = model.encode(source)
    cache = model.start(memory, 2, 4, coverage=True)
    for position in range(4):
        _, cache = model.step(ids[:, position], torch.full((2,), position), memory, cache)
        torch.testing.assert_close(model.coverage(cache).sum(1), torch.full((2,), position + 1.0))
    torch.testing.assert_close(model.coverage(cache), expected, **CLOSE)
    assert not model.coverage(cache)[0, 4:].any()  # padding is not looked at
    _, cache = model.select(memory, cache, torch.tensor([1, 0]))
    torch.testing.assert_close(model.coverage(cache), expected[[1, 0]], **CLOSE)


def test_what_is_tied_is_one_tensor() -> None:
    """And its gradient comes from all the places it is used in."""
    for tied, tensors in (("none", 3), ("target", 2), ("all", 1)):
        model = model_of(tie_embeddings=tied)
        assert sum(parameter.shape == (WORDS, 16) for parameter in model.parameters()) == tensors
        model.head(model(source_batch([[5, 6]]), torch.tensor([[START, 7]]))).square().sum().backward()
        gradient = model.embedding.weight.grad
        assert gradient is not None
        read = {row for row in range(WORDS) if gradient[row].any()}
        assert read == ({START, 7} if tied == "none" else set(range(WORDS)))
        assert model.source_embedding.weight.grad is not None
        assert model.source_embedding.weight.grad[5].any()


def test_embedded_words_are_scaled_and_positions_added() -> None:
    """h_0 = E[x] √d + PE: what the first block reads."""
    model, ids = model_of(), torch.tensor([[5, 9, 7]])
    seen: list[Tensor] = []
    model.encoder.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model.encode(Sequences(ids, torch.tensor([3])))
    assert model.encoder.added is not None
    expected = model.source_embedding.weight[ids] * 16**0.5 + model.encoder.added.rows[:3]
    torch.testing.assert_close(seen[0], expected)


def test_learned_positions_refuse_what_lies_beyond_them_in_words() -> None:
    model = model_of(position="learned", max_positions=8)
    with pytest.raises(BadInput, match=r"end at 8 tokens \(model\.max_positions\), 10 were asked for"):
        model.encode(source_batch(random_rows([9])))
    assert model.longest == 8
    memory = model.encode(source_batch(random_rows([5])))
    with pytest.raises(BadInput, match="9 were asked for"):  # before the search begins, not in its middle
        model.start(memory, 1, 9)


def test_a_translator_writes_as_far_as_learned_positions_go() -> None:
    """A source of 12 may come with an output of 2 · 12 + 20 tokens: where the model cannot, less is asked of it."""
    words = train_tokenizer(["a b c d e f g"], "word", 50)
    keys = {"position": "learned", "max_positions": 14, "tie_embeddings": "all"}
    model = build(TransformerSection(**{**SMALL, **keys}), words.size, words.size)
    torch.nn.init.constant_(model.bias[END : END + 1], -50.0)  # it never wants to end
    for fast in (False, True):
        translator = Translator(model, words, words, Search(beam=2), 12, torch.device("cpu"))
        translator.engine = Engine([model], torch.device("cpu"), fast=fast)
        sources = ["a b c d e f g a b c d e", "a b", "c d e f", "g a b c d e f g a"]
        found = translator.nbest(sources, batch=2)
        assert [len(best.ids) for (best,) in found] == [13, 13, 13, 13]
        with pytest.raises(BadInput, match=r"end at 14 tokens"):
            translator.nbest(sources, max_length=15)


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "activation_dropout", "target_word_dropout"])
@torch.no_grad()
def test_each_dropout_acts_in_training_and_none_in_evaluation(kind: str) -> None:
    model = model_of(**{"dropout": 0.0, kind: 0.4})
    source, ids = source_batch(random_rows([5, 3] * 4)), torch.randint(4, WORDS, (8, 16))
    assert torch.equal(model(source, ids), model(source, ids))
    model.train()
    draws = torch.stack([model(source, ids) for _ in range(3)])
    assert not torch.allclose(draws[0], draws[1], atol=1e-3)
    model_without = model_of(dropout=0.0).train()
    assert torch.equal(model_without(source, ids), model_without(source, ids))


# ---------------------------------------------------------------- it learns, and its company does not matter

KINDS: list[dict[str, Any]] = [{}, {"norm": "post", "position": "rotary", "activation": "swiglu", "key_value_heads": 2}]


@pytest.fixture(scope="module", params=KINDS, ids=str)
def trained(request: pytest.FixtureRequest) -> Transformer:
    """It has learnt to reverse up to five words."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rate, updates = 8e-3, 200
    wide = {"width": 32, "feed_forward": 64, "encoder_layers": 1, "dropout": 0.0, "tie_embeddings": "all"}
    model = build(TransformerSection(**{**SMALL, **wide, **request.param}), 14, 14)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, update / 20) * (1 - update / updates)
        words = random_rows(torch.randint(1, 6, (64,)).tolist(), 14)
        target = target_batch([row[::-1] for row in words])
        logits = model.head(model(source_batch(words), target.ids[:, :-1]))
        loss = F.cross_entropy(logits.flatten(0, 1), target.ids[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert isinstance(model, Transformer)
    return model.eval()


@torch.no_grad()
def test_it_learns_to_reverse(trained: Transformer) -> None:
    torch.manual_seed(2)  # the model is the same in every run, and so is what it is asked: it cannot do everything
    words = random_rows(torch.randint(1, 6, (100,)).tolist(), 14)
    found = translate(trained, words, SearchOptions(max_length=12), 100)
    assert sum(list(tokens) == row[::-1] for tokens, row in zip(found, words, strict=True)) > 90


@pytest.mark.parametrize("beam", [1, 5])
@torch.no_grad()
def test_a_translation_does_not_depend_on_company_or_cache(trained: Transformer, beam: int) -> None:
    """Sources of one to eleven words: what it never learnt, it is unsure of, so that small differences would show."""
    rows = random_rows([1 + index % 11 for index in range(22)], 14)
    options = SearchOptions(beam=beam, max_length=36)
    tried = ways(trained, rows, options, size=5)
    _, expected = next(tried)
    assert len(set(expected)) > 15  # they do differ from one another
    for name, found in tried:
        unequal = differences(trained, rows, options, expected, found)
        assert all(difference.tie for difference in unequal), (name, unequal)


@torch.no_grad()
def test_a_difference_would_be_noticed_and_a_tie_recognised(trained: Transformer) -> None:
    """The check itself: a wrong word is no tie, two words of one probability are one."""
    torch.manual_seed(2)  # what it is sure of
    model, rows, options = deepcopy(trained), random_rows([3, 5], 14), SearchOptions(max_length=10)
    expected = translate(model, rows, options, 2)
    wrong = [(*tokens[:-1], 4 + (tokens[-1] - 3) % 10) for tokens in expected]
    assert [difference.tie for difference in differences(model, rows, options, expected, wrong)] == [False, False]
    first = expected[0][0]
    twin = 4 if first != 4 else 5
    model.embedding.weight[twin], model.bias[twin] = model.embedding.weight[first], model.bias[first]
    drawn = [translate(Trembling(model, 1e-6, seed), rows[:1], options, 1)[0] for seed in range(20)]
    assert {tokens[0] for tokens in drawn} == {first, twin}
    one = translate(Uncached(model), rows[:1], options, 1)[0]
    other = (twin if one[0] == first else first, *one[1:])
    (tied,) = differences(model, rows[:1], options, [one], [other])
    assert tied.gap < 1e-5
    assert tied.flips
