"""How sure a score is: confidence intervals and significance by bootstrap (Koehn 2004, "Statistical Significance Tests
for Machine Translation Evaluation").

A test set is one sample of all sentences that there are. Drawing as many sentences from it, with replacement, gives
another; a thousand of these show how much a score depends on which sentences happened to be in it. The systems are
compared on the same draws (paired), so what is hard for all of them cancels out.

BLEU and chrF of a corpus are functions of sums over its sentences. So each sentence becomes a row of counts, once, and
every draw is a sum of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLES = 1000
SEED = 12345
CONFIDENCE = 0.95
WORDS, CHARACTERS = 4, 6  # the longest n-grams of BLEU (words) and chrF (characters)
BETA = 2.0  # chrF counts recall this much more than precision

Numbers = NDArray[np.float64]
Metric = Callable[[Numbers], Numbers]  # (…, counts) -> (…): the score of a corpus from the sums of its counts


@dataclass(frozen=True)
class Estimate:
    """A score with the interval that holds 95 of 100 draws."""

    score: float
    low: float
    high: float


# ---------------------------------------------------------------- sentences as rows of counts


def bleu_counts(outputs: Sequence[str], references: Sequence[str]) -> Numbers:
    """(N, 2 + 2 · 4): words written, words of the reference; n-grams that match, for each n; n-grams written."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    cut = Tokenizer13a()  # type: ignore[no-untyped-call]
    rows = []
    for output, reference in zip(outputs, references, strict=True):
        written, wanted = (cut(text.rstrip()).split() for text in (output, reference))
        matches, totals = [], []
        for length in range(1, WORDS + 1):
            ours, theirs = _grams(written, length), _grams(wanted, length)
            matches.append((ours & theirs).total())
            totals.append(ours.total())
        rows.append([len(written), len(wanted), *matches, *totals])
    return np.array(rows, dtype=np.float64).reshape(-1, 2 + 2 * WORDS)


def chrf_counts(outputs: Sequence[str], references: Sequence[str]) -> Numbers:
    """(N, 3 · 6): for each n, the character n-grams that match, those written and those of the reference."""
    rows = []
    for output, reference in zip(outputs, references, strict=True):
        written, wanted = ("".join(text.split()) for text in (output, reference))
        row: list[int] = []
        for length in range(1, CHARACTERS + 1):
            ours, theirs = _grams(written, length), _grams(wanted, length)
            # where one side is too short for this n there is nothing to compare: the order is not counted
            row += [(ours & theirs).total(), ours.total() if theirs else 0, theirs.total()]
        rows.append(row)
    return np.array(rows, dtype=np.float64).reshape(-1, 3 * CHARACTERS)


def _grams(items: Sequence[str], length: int) -> Counter[tuple[str, ...] | str]:
    return Counter(
        items[start : start + length] if isinstance(items, str) else tuple(items[start : start + length])
        for start in range(len(items) - length + 1)
    )


# ---------------------------------------------------------------- corpora as sums of them


def bleu(sums: Numbers) -> Numbers:
    """BLEU = min(1, exp(1 − r/c)) · (Π_n p_n)^¼, in percent (Papineni et al. 2002).

    Where no n-gram of a length matches, p_n is halved once more for each such length (sacreBLEU's "exp").
    """
    written, wanted = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2 : 2 + WORDS], sums[..., 2 + WORDS :]
    missed = (matches == 0) & (totals > 0)
    instead = 0.5 ** np.cumsum(missed, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(missed, instead, matches) / totals)
        brevity = np.minimum(0.0, 1.0 - wanted / written)
        scores = 100 * np.exp(brevity + logs.mean(axis=-1))
    # nothing written, nothing long enough for some n, or not one word right
    return np.where((written > 0) & (totals > 0).all(axis=-1) & (matches > 0).any(axis=-1), scores, 0.0)


def chrf(sums: Numbers) -> Numbers:
    """chrF = (1 + β²) · P · R / (β² · P + R), in percent; P and R are means over n = 1 … 6 (Popović 2015)."""
    matches, written, wanted = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
    counted = (written > 0) & (wanted > 0)
    orders = np.maximum(1, counted.sum(axis=-1))
    precision = (matches / np.maximum(1, written)).sum(axis=-1, where=counted) / orders
    recall = (matches / np.maximum(1, wanted)).sum(axis=-1, where=counted) / orders
    weighted = BETA**2 * precision + recall
    return np.where(weighted > 0, 100 * (1 + BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1), 0.0)


# ---------------------------------------------------------------- draws


def draws(systems: Sequence[Numbers], metric: Metric, samples: int = SAMPLES, seed: int = SEED) -> Numbers:
    """(systems, samples): the score of each system on the same `samples` draws from the test set."""
    count = len(systems[0])
    if any(len(system) != count for system in systems):
        raise ValueError("paired draws need the same sentences of every system")
    table = np.concatenate(systems, axis=1)
    chance = np.random.default_rng(seed)
    sums = np.empty((samples, table.shape[1]))
    for number in range(samples):
        times_drawn = np.bincount(chance.integers(count, size=count), minlength=count)
        sums[number] = times_drawn @ table
    return np.stack([metric(part) for part in np.split(sums, len(systems), axis=1)])


def estimate(score: float, drawn: Numbers) -> Estimate:
    """The score with the middle 95 % of its draws; of several seeds both are means over them."""
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Estimate(score, float(low), float(high))


def p_value(difference: float, drawn: Numbers) -> float:
    """How often a difference this large comes by chance alone, were both systems equally good (two-sided).

    The draws of the difference, moved to have the mean 0, stand for what chance does (as sacreBLEU computes it). The
    difference itself is counted as one more draw, so that no finite number of draws gives p = 0.
    """
    as_large = np.abs(drawn - drawn.mean()) >= abs(difference)
    return float((as_large.sum() + 1) / (len(drawn) + 1))
