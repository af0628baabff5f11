"""The statistics against sacreBLEU, against themselves written out, and against what they must be."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from jumok.ladder.statistics import (
    bleu,
    bleu_counts,
    chrf,
    chrf_counts,
    draws,
    estimate,
    p_value,
)

WORDS = ["the", "a", "dog", "cat", "sees", "eats,", "often", ".", "12,5", "It's", "학생은", "책을", "x"]


@pytest.fixture
def chance() -> random.Random:
    seed = secrets.randbelow(2**31)
    print(f"seed {seed}")
    return random.Random(seed)


def sentences(chance: random.Random, count: int) -> list[str]:
    return [" ".join(chance.choices(WORDS, k=chance.randrange(1, 12))) for _ in range(count)]


def spoiled(chance: random.Random, texts: list[str], share: float) -> list[str]:
    """With some words exchanged or missing."""

    def words(text: str) -> Iterator[str]:
        for word in text.split():
            if chance.random() >= share:
                yield word
            elif chance.random() < 0.5:
                yield chance.choice(WORDS)

    return [" ".join(words(text)) for text in texts]


texts = some.lists(some.text(alphabet="ab .,'é책\t", max_size=14), min_size=1, max_size=8)


@given(texts, texts)
@settings(max_examples=60, deadline=None)
def test_sums_of_counts_give_what_sacrebleu_gives(outputs: list[str], references: list[str]) -> None:
    count = min(len(outputs), len(references))
    outputs, references = outputs[:count], references[:count]
    ours = float(bleu(bleu_counts(outputs, references).sum(axis=0)))
    assert ours == pytest.approx(BLEU(force=True).corpus_score(outputs, [references]).score, abs=1e-9)
    ours = float(chrf(chrf_counts(outputs, references).sum(axis=0)))
    assert ours == pytest.approx(CHRF().corpus_score(outputs, [references]).score, abs=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_real_sentences_give_what_sacrebleu_gives(chance: random.Random, share: float) -> None:
    references = sentences(chance, 60)
    outputs = spoiled(chance, references, share)
    theirs = (
        BLEU(force=True).corpus_score(outputs, [references]).score,
        CHRF().corpus_score(outputs, [references]).score,
    )
    assert float(bleu(bleu_counts(outputs, references).sum(axis=0))) == pytest.approx(theirs[0], abs=1e-9)
    assert float(chrf(chrf_counts(outputs, references).sum(axis=0))) == pytest.approx(theirs[1], abs=1e-9)


def test_the_bootstrap_written_out(chance: random.Random) -> None:
    """Each draw is a corpus of sentences picked with replacement, scored by sacreBLEU as any corpus is."""
    references = sentences(chance, 25)
    better, worse = spoiled(chance, references, 0.2), spoiled(chance, references, 0.4)
    samples, seed = 20, chance.randrange(1000)
    found = draws([bleu_counts(one, references) for one in (better, worse)], bleu, samples, seed)
    numbers = np.random.default_rng(seed)
    written_out = []
    for _ in range(samples):
        picked = numbers.integers(25, size=25)
        wanted = [[references[place] for place in picked]]
        written_out.append(
            [BLEU(force=True).corpus_score([one[place] for place in picked], wanted).score for one in (better, worse)]
        )
    assert found == pytest.approx(np.array(written_out).T, abs=1e-9)

    real = [BLEU(force=True).corpus_score(one, [references]).score for one in (better, worse)]
    gain, gains = real[0] - real[1], [one - other for one, other in written_out]
    middle = sum(gains) / samples
    as_large = sum(abs(each - middle) >= abs(gain) for each in gains)
    assert p_value(gain, found[0] - found[1]) == pytest.approx((as_large + 1) / (samples + 1))
    interval = estimate(real[0], found[0])
    assert (interval.low, interval.high) == pytest.approx(tuple(np.percentile(found[0], [2.5, 97.5])))


def test_identical_systems_do_not_differ(chance: random.Random) -> None:
    references = sentences(chance, 40)
    counts = bleu_counts(spoiled(chance, references, 0.3), references)
    one, other = draws([counts, counts], bleu, 200)
    assert (one == other).all()
    assert p_value(0.0, one - other) == 1.0


def test_a_clear_difference_is_significant_and_the_interval_holds_the_score(chance: random.Random) -> None:
    references = sentences(chance, 300)
    systems = [bleu_counts(spoiled(chance, references, share), references) for share in (0.1, 0.6)]
    scores = [float(bleu(one.sum(axis=0))) for one in systems]
    one, other = draws(systems, bleu, 300)
    assert p_value(scores[0] - scores[1], one - other) < 0.01
    for score, drawn in zip(scores, (one, other), strict=True):
        interval = estimate(score, drawn)
        assert interval.low < score < interval.high
        assert 0 <= interval.low < interval.high <= 100


def test_more_sentences_make_a_narrower_interval(chance: random.Random) -> None:
    references = sentences(chance, 800)
    counts = bleu_counts(spoiled(chance, references, 0.3), references)
    widths = []
    for part in (counts[:50], counts):
        interval = estimate(0.0, draws([part], bleu, 300)[0])
        widths.append(interval.high - interval.low)
    assert widths[1] < 0.6 * widths[0]


def test_equally_good_systems_are_rarely_told_apart() -> None:
    """p is small about as often as it says: of 40 pairs that differ by chance alone, few are below 0.05."""
    chance = random.Random(1)  # that few are below is likely, not certain: the same pairs in every run
    found = []
    for _ in range(40):
        references = sentences(chance, 60)
        systems = [bleu_counts(spoiled(chance, references, 0.3), references) for _ in range(2)]
        one, other = draws(systems, bleu, 150)
        gain = float(bleu(systems[0].sum(axis=0)) - bleu(systems[1].sum(axis=0)))
        found.append(p_value(gain, one - other))
    assert sum(p < 0.05 for p in found) <= 10  # expected 2


def test_the_same_draws_every_time_and_the_same_sentences_for_all(chance: random.Random) -> None:
    references = sentences(chance, 30)
    counts = bleu_counts(spoiled(chance, references, 0.3), references)
    assert (draws([counts], bleu, 50) == draws([counts], bleu, 50)).all()
    assert (draws([counts], bleu, 50) != draws([counts], bleu, 50, seed=1)).any()
    with pytest.raises(ValueError, match="same sentences"):
        draws([counts, counts[:-1]], bleu)
