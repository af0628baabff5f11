"""Hidden words: how many, which, what stands in their place, and that the generator alone decides."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pytest

from jumok.data.masking import Hidden, Hider
from jumok.recipe import Masking

MASK, START, END, UNKNOWN = 4, 2, 3, 1
WORDS = np.array([*range(5, 40), *range(45, 60)])  # the ids between are special ones too
GOES_ON = np.arange(60) % 3 == 0
CONTINUES = GOES_ON & np.isin(np.arange(60), WORDS)


def hider(**masking: Any) -> Hider:
    return Hider(Masking(**masking), MASK, WORDS, CONTINUES)


def random_rows(generator: np.random.Generator, rows: int, longest: int) -> tuple[Any, Any]:
    """[CLS] words [SEP] words [SEP], with an unknown or special one now and then; some rows have no words."""
    flat, lengths = [], []
    for _ in range(rows):
        words = generator.choice(WORDS, generator.integers(0, longest + 1))
        words[generator.random(len(words)) < 0.05] = generator.choice([UNKNOWN, 41, 44])
        middle = int(generator.integers(0, len(words) + 1))
        row = [START, *words[:middle], END, *words[middle:], END]
        flat += row
        lengths.append(len(row))
    return np.array(flat, np.int64), np.array(lengths, np.int64)


def drawn(seed: int, longest: int = 30, rows: int = 200, **masking: Any) -> tuple[Any, Any, Hidden]:
    generator = np.random.default_rng(seed)
    ids, lengths = random_rows(generator, rows, longest)
    return ids, lengths, hider(**masking)(ids, lengths, generator)


CASES = [
    {},
    {"rate": 0.4, "hidden": 1.0, "other": 0.0},
    {"rate": 0.3, "whole_words": True},
    {"rate": 0.9, "hidden": 0.2, "other": 0.8},
    {"rate": 0.02},
]


@pytest.mark.parametrize("masking", CASES, ids=str)
def test_what_always_holds(masking: dict[str, Any]) -> None:
    seed = secrets.randbelow(2**31)
    ids, lengths, hidden = drawn(seed, **masking)
    where = f"seed {seed}"
    assert (np.diff(hidden.places) > 0).all(), where
    assert np.array_equal(hidden.wanted, ids[hidden.places]), where
    assert np.isin(hidden.wanted, WORDS).all(), f"{where}: a special token must be guessed"
    elsewhere = np.ones(len(ids), bool)
    elsewhere[hidden.places] = False
    assert np.array_equal(hidden.ids[elsewhere], ids[elsewhere]), where
    assert np.isin(hidden.ids[hidden.places], [MASK, *WORDS]).all(), f"{where}: a special token was put in"
    row = np.repeat(np.arange(len(lengths)), lengths)
    has_words = np.bincount(row, np.isin(ids, WORDS), len(lengths)) > 0
    hides = np.bincount(row[hidden.places], minlength=len(lengths)) > 0
    assert np.array_equal(has_words, hides), f"{where}: one at least where there are words"
    assert not has_words.all(), "some rows have none"


@pytest.mark.parametrize("rate", [0.15, 0.5])
@pytest.mark.parametrize("whole_words", [False, True])
def test_the_rate(rate: float, whole_words: bool) -> None:
    """Of long rows, where “one at least” and the last word that no longer fits matter little."""
    seed = secrets.randbelow(2**31)
    ids, lengths, hidden = drawn(seed, 400, 300, rate=rate, whole_words=whole_words)
    words = np.isin(ids, WORDS)
    share = len(hidden.places) / words.sum()
    assert abs(share - rate) < (0.02 if whole_words else 0.005), f"seed {seed}: {share}"
    if not whole_words:  # and of each row by itself, to the token
        row = np.repeat(np.arange(len(lengths)), lengths)
        exact = rate * np.bincount(row, words, len(lengths))
        found = np.bincount(row[hidden.places], minlength=len(lengths))
        assert (np.abs(found - np.maximum(exact, words.any())) < 1 + 1e-9).all(), f"seed {seed}"


def test_every_place_is_as_likely() -> None:
    seed = secrets.randbelow(2**31)
    generator = np.random.default_rng(seed)
    row = np.array([START, *range(5, 15), END])
    ids, lengths = np.tile(row, 8000), np.full(8000, 12)
    found = np.bincount(hider(rate=0.2)(ids, lengths, generator).places % 12, minlength=12) / 8000
    assert found[[0, 11]].tolist() == [0, 0]
    assert np.abs(found[1:11] - 0.2).max() < 6 * np.sqrt(0.2 * 0.8 / 8000), f"seed {seed}: {found}"


@pytest.mark.parametrize(("hidden", "other"), [(0.8, 0.1), (1.0, 0.0), (0.0, 0.0), (0.5, 0.5)])
def test_the_shares(hidden: float, other: float) -> None:
    seed = secrets.randbelow(2**31)
    ids, _, found = drawn(seed, 60, 2000, rate=0.5, hidden=hidden, other=other)
    read, were = found.ids[found.places], ids[found.places]
    count = len(found.places)
    near = 6 * 0.5 / np.sqrt(count)
    masked, same = (read == MASK).mean(), (read == were).mean()
    assert abs(masked - hidden) < near, f"seed {seed}"
    # another word is the same one by chance, once in so many
    assert abs(same - (1 - hidden - other + other / len(WORDS))) < near, f"seed {seed}"
    if (hidden, other) == (1.0, 0.0):
        assert masked == 1
    if other:
        others = read[(read != MASK) & (read != were)]
        assert set(others.tolist()) == set(WORDS.tolist()), "any word may stand there"


def test_whole_words_or_nothing() -> None:
    seed = secrets.randbelow(2**31)
    ids, lengths, found = drawn(seed, 40, 300, rate=0.3, whole_words=True)
    chosen = set(found.places.tolist())
    starts = {0, *np.cumsum(lengths).tolist()}
    for place in range(1, len(ids)):
        goes_on = CONTINUES[ids[place]] and np.isin(ids[place - 1], WORDS) and place not in starts
        if goes_on:
            assert (place in chosen) == (place - 1 in chosen), f"seed {seed}, place {place}"
    alone = drawn(seed, 40, 300, rate=0.3)[2]
    torn = sum(
        (place in alone.places) != (place - 1 in alone.places) for place in range(1, 500) if CONTINUES[ids[place]]
    )
    assert torn, "without whole words they are torn"


def test_the_generator_alone_decides() -> None:
    seed = secrets.randbelow(2**31)
    one, other, different = drawn(seed)[2], drawn(seed)[2], drawn(seed + 1)[2]
    for name in ("ids", "places", "wanted"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert not np.array_equal(one.places, different.places)
    ids, lengths = random_rows(np.random.default_rng(seed), 20, 20)
    before = ids.copy()
    hide = hider()
    first = hide(ids, lengths, np.random.default_rng(5))
    assert np.array_equal(ids, before), "what was given is not changed"
    hide(ids, lengths, np.random.default_rng(6))
    again = hide(ids, lengths, np.random.default_rng(5))
    assert np.array_equal(first.ids, again.ids), "nothing is remembered"


def test_nothing_to_hide() -> None:
    for ids in ([], [START, END], [START, UNKNOWN, END, START, 41, END]):
        lengths = np.array([3] * (len(ids) // 3) if len(ids) != 2 else [2], np.int64)
        for whole in (False, True):
            found = hider(whole_words=whole)(np.array(ids, np.int64), lengths, np.random.default_rng(1))
            assert found.ids.tolist() == ids
            assert len(found.places) == 0
