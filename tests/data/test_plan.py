"""The batch plan: every pair once per epoch, within the budget, a pure function of the update."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lengths import Lengths

from jumok.data import layout
from jumok.data.layout import cut
from jumok.data.plan import MicroBatch, Plan, held_out, length_batches, round_robin
from jumok.data.store import TokenStore
from jumok.errors import BadInput
from jumok.recipe import Corpus
from jumok.text.tokenizer import train_tokenizer


def plan_of(store: Any, tokens: int = 100, seed: int = 1, **rest: Any) -> Plan:
    return Plan([store], [1], tokens, seed, **rest)


def epoch(plan: Plan, number: int) -> list[np.ndarray]:
    first = number * plan.batches_per_epoch
    return [plan.at(first + place)[0].indices for place in range(plan.batches_per_epoch)]


def like_sentences(count: int, seed: int) -> Lengths:
    """Lengths like those of image captions: about 14 tokens, source and target alike but not equal."""
    generator = np.random.default_rng(seed)
    source = np.clip(generator.gamma(12.0, 1.17, count), 1, 60)
    target = np.clip(source * generator.normal(0.97, 0.17, count), 1, 60)
    return Lengths(source.astype(int), target.astype(int))


lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=2, max_size=120)


@given(pairs=lengths, tokens=st.integers(1, 300), seed=st.integers(0, 100), start=st.integers(0, 10**9), data=st.data())
def test_every_pair_once_per_epoch_within_the_budget(
    pairs: list[tuple[int, int]], tokens: int, seed: int, start: int, data: st.DataObject
) -> None:
    store = Lengths([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    left_out = data.draw(st.sets(st.integers(0, len(pairs) - 1), max_size=len(pairs) - 1))
    exclude = np.array(sorted(left_out), dtype=np.int64)
    plan = plan_of(store, tokens, seed, exclude=exclude)
    batches = epoch(plan, start)
    assert sorted(np.concatenate(batches).tolist()) == sorted(set(range(len(pairs))) - set(exclude.tolist()))
    for batch in batches:
        width = max(store.source_lengths[batch].max() + 1, store.target_lengths[batch].max() + 2)
        assert len(batch) * width <= tokens or len(batch) == 1


@given(update=st.integers(0, 10**12), accumulate=st.integers(1, 4), seed=st.integers(0, 5))
def test_an_update_depends_on_its_number_alone(update: int, accumulate: int, seed: int) -> None:
    """A resumed run asks a fresh plan, first of all, for an update in the middle."""
    store: Any = like_sentences(300, 3)

    def fresh() -> Plan:
        return Plan([store, store], [2, 1], 200, seed, accumulate)

    plan = fresh()
    for other in (0, update + 1, update - 1):
        plan.at(max(0, other))
    assert same(plan.at(update), fresh().at(update))


def same(first: list[MicroBatch], second: list[MicroBatch]) -> bool:
    return [(m.corpus, m.indices.tolist()) for m in first] == [(m.corpus, m.indices.tolist()) for m in second]


def test_the_order_of_the_data_never_changes() -> None:
    """What an update learned from when stores had no shards and layouts were computed at every start."""
    numbers = np.arange(2000)
    store: Any = Lengths(1 + numbers * 7919 % 37, 1 + numbers * 104729 % 41)
    other: Any = Lengths(1 + numbers[:300] * 31 % 19, 1 + numbers[:300] * 17 % 23)
    plan = Plan([store, other], [3, 1], 400, 7, 2, exclude=np.array([5, 77, 1999]))
    digest = hashlib.sha256()
    for update in [*range(40), 100, 100_000, 10**12]:
        for micro in plan.at(update):
            digest.update(np.array([micro.corpus, *micro.indices], "<i8").tobytes())
    assert digest.hexdigest() == "4a92f3fcde7455ae2a7e30b748fa1ecd75c8271ec988986ff887d6169a2d84e2"


def test_accumulated_batches_are_the_same_sequence_of_batches() -> None:
    store = like_sentences(300, 1)
    one, three = plan_of(store), plan_of(store, accumulate=3)
    assert same([m for u in range(4) for m in three.at(u)], [m for u in range(12) for m in one.at(u)])


def test_epochs_and_seeds_differ_in_order_and_in_company() -> None:
    store = like_sentences(3000, 2)
    plan, other = plan_of(store, 500), plan_of(store, 500, seed=2)
    epochs = [epoch(plan, 0), epoch(plan, 1), epoch(plan, 2), epoch(other, 0)]
    assert len({tuple(len(batch) for batch in batches) for batches in epochs}) > 1, "the batches come in another order"
    company = [{frozenset(batch.tolist()) for batch in batches} for batches in epochs]
    for index, groups in enumerate(company):
        for before in company[:index]:
            assert len(groups & before) < 0.1 * len(groups), "the same sentences meet in the same batches"


def test_padding_is_small() -> None:
    store = like_sentences(29_000, 4)
    plan = plan_of(store, 4096)
    padded = real = 0
    for batch in epoch(plan, 0):
        source, target = store.source_lengths[batch] + 1, store.target_lengths[batch] + 2
        real += int(source.sum() + target.sum())
        padded += len(batch) * int(source.max() + target.max())
    assert 1 - real / padded < 0.08


def test_weights_are_honoured_evenly() -> None:
    stores: list[Any] = [like_sentences(100, 1), like_sentences(200, 2), like_sentences(50, 3)]
    plan = Plan(stores, [3, 6, 9], 100, 1)
    corpora = [plan.at(update)[0].corpus for update in range(600)]
    assert [corpora.count(corpus) for corpus in range(3)] == [100, 200, 300]
    for start in range(0, 594, 6):
        assert sorted(corpora[start : start + 6]) == [0, 1, 1, 2, 2, 2]
    for corpus, store in enumerate(stores):
        mine = [m.indices for update in range(600) for m in plan.at(update) if m.corpus == corpus]
        once = mine[: plan.layouts[corpus].batches]
        assert sorted(np.concatenate(once).tolist()) == list(range(len(store)))


@given(weights=st.lists(st.integers(1, 30), min_size=1, max_size=5))
def test_round_robin_spreads_turns(weights: list[int]) -> None:
    turns = round_robin(weights)
    total = sum(weights)
    shrunk = total // len(turns)
    for corpus, weight in enumerate(weights):
        assert (turns == corpus).sum() * shrunk == weight
        due = np.arange(1, len(turns) + 1) * weight / total
        assert (np.abs(np.cumsum(turns == corpus) - due) <= len(weights)).all(), "never far from its share"


def test_corpora_of_equal_lengths_are_shuffled_apart() -> None:
    store: Any = like_sentences(200, 1)
    plan = Plan([store, store], [1, 1], 100, 1)
    first, second = plan.at(0)[0], plan.at(1)[0]
    assert {first.corpus, second.corpus} == {0, 1}
    assert first.indices.tolist() != second.indices.tolist()


def test_epoch_of_counts_batches() -> None:
    plan = plan_of(like_sentences(300, 1), accumulate=2)
    full = plan.batches_per_epoch
    assert [plan.epoch_of(update) for update in (0, (full - 1) // 2, -(-full // 2), full)] == [0, 0, 1, 2]


def test_only_the_first_corpus_is_held_out_from() -> None:
    stores: list[Any] = [like_sentences(100, 1), like_sentences(100, 1)]
    plan = Plan(stores, [1, 1], 100, 1, exclude=np.array([3, 99]))
    seen: list[set[int]] = [set(), set()]
    for update in range(2 * plan.batches_per_epoch):
        for micro in plan.at(update):
            seen[micro.corpus] |= set(micro.indices.tolist())
    assert seen == [set(range(100)) - {3, 99}, set(range(100))]


@given(count=st.integers(2, 500), asked=st.integers(1, 100), seed=st.integers(0, 9))
def test_held_out(count: int, asked: int, seed: int) -> None:
    store: Any = Lengths(np.ones(count), np.ones(count))
    kept = held_out(store, asked, seed)
    assert len(kept) == len(set(kept.tolist())) == max(1, min(asked, count // 20))
    assert kept.min() >= 0
    assert kept.max() < count
    assert kept.tolist() == sorted(kept.tolist()) == held_out(store, asked, seed).tolist()


def test_held_out_of_a_single_pair() -> None:
    store: Any = Lengths([1], [1])
    with pytest.raises(BadInput, match="single sentence pair"):
        held_out(store, 10, 1)


@given(pairs=lengths, tokens=st.integers(1, 300))
def test_length_batches(pairs: list[tuple[int, int]], tokens: int) -> None:
    source, target = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    batches = length_batches(source, target, tokens)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(source[batch].max() + 1, target[batch].max() + 2) <= tokens
    ordered = target[np.concatenate(batches)]
    assert ordered.tolist() == sorted(ordered.tolist())


def test_length_batches_of_nothing() -> None:
    assert length_batches(np.empty(0, int), np.empty(0, int), 100) == []


@given(
    runs=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 30)), min_size=1, max_size=12), tokens=st.integers(1, 90)
)
def test_cuts_are_greedy(runs: list[tuple[int, int]], tokens: int) -> None:
    """Against the plainest loop: add places one by one while they fit."""
    widths = [width for count, width in runs for _ in range(count)]
    expected, widest = [0], 0
    for place, width in enumerate(widths):
        if place > expected[-1] and (place + 1 - expected[-1]) * max(widest, width) > tokens:
            expected.append(place)
            widest = 0
        widest = max(widest, width)
    starts = np.concatenate([[0], np.cumsum([count for count, _ in runs])])
    assert cut(starts, np.array([width for _, width in runs]), tokens).tolist() == [*expected, len(widths)]


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    store, exclude = like_sentences(500, 6), np.array([0, 7, 63, 64, 65, 499])
    whole = plan_of(store, exclude=exclude)
    monkeypatch.setattr(layout, "CHUNK", 64)
    chunked = plan_of(store, exclude=exclude)
    for update in range(whole.batches_per_epoch):
        assert same(whole.at(update), chunked.at(update))


def test_on_a_real_store_the_order_is_kept_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [" ".join(["one", "two", "three"][: 1 + number % 3] * (1 + number % 5)) for number in range(90)]
    for name in ("a", "b"):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = train_tokenizer(lines, "word", 50)
    corpus = Corpus(source=[str(tmp_path / "a")], target=[str(tmp_path / "b")])
    store = TokenStore.open_or_build(corpus, "train", tokenizer, tokenizer, tmp_path / "cache", 50)
    kept_back = held_out(store, 4, 1)
    plan = plan_of(store, 60, exclude=kept_back)
    pairs = [index for batch in epoch(plan, 0) for index in store.batch(batch).indices]
    assert sorted(pairs) == sorted(set(range(90)) - set(kept_back.tolist()))
    monkeypatch.setattr(layout, "Sides", lambda *_: pytest.fail("lengths looked at again"))
    assert same(plan_of(store, 60, exclude=kept_back).at(5), plan.at(5))
    assert len(TokenStore.open(store.folder)) == 90
