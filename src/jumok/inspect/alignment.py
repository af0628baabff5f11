"""Attention read as word alignment, and how far it is from the alignment people made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jumok.data.pharaoh import Link, check_range, read_pharaoh
from jumok.errors import BadInput, did_you_mean
from jumok.inspect.symmetric import symmetrize, turned

Gold = tuple[set[Link], set[Link]]  # of one sentence pair: the sure links, and the possible ones


def read_gold(path: Path, sources: Sequence[str], targets: Sequence[str], one_based: bool = False) -> list[Gold]:
    """The alignments that people made of these very sentences; what does not fit them is named with its line."""
    truth = read_pharaoh(path, one_based)
    if len(truth) != len(sources):
        raise BadInput(f"{path} has {len(truth)} lines, but there are {len(sources)} sentences: they must pair up")
    for number, ((sure, possible), source, target) in enumerate(zip(truth, sources, targets, strict=True), 1):
        check_range(sure | possible, len(source.split()), len(target.split()), f"{path}, line {number}")
    return truth


def argmax_links(weights: NDArray[np.floating]) -> set[Link]:
    """Each target word is linked to the source word it looked at most: i = argmax_s weights[j, s] for every j.

    weights: (target words, source words). A row that holds no number is not linked.
    """
    if weights.size == 0:
        return set()
    strongest = np.where(np.isfinite(weights), weights, -1.0).argmax(axis=1)
    seen = np.isfinite(weights).any(axis=1)
    return {(int(source), target) for target, source in enumerate(strongest) if seen[target]}


def both_links(weights: NDArray[np.floating]) -> set[Link]:
    """Read along both axes: which source word each target word looked at most, and which target word looked most at
    each source word; where both agree is the beginning, which grows by its neighbours (grow-diag, symmetric.py).

    A function word that the decoder could guess ("pas" after "n'a") often looks elsewhere, and yet nobody looks more
    at its source ("not") than it does.
    """
    return symmetrize(argmax_links(weights), turned(argmax_links(weights.T)), "grow-diag")


def balanced_links(weights: NDArray[np.floating]) -> set[Link]:
    """As `both_links`, of weights in which each source word first shares itself out among those who look at it:

    α'_ts = α_ts / Σ_u α_us, then rows divided by their sums: one step of Sinkhorn's.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        shared = weights / weights.sum(axis=0, keepdims=True)
        shared = np.where(np.isnan(shared) & ~np.isnan(weights), 0.0, shared)
        return both_links(shared / shared.sum(axis=1, keepdims=True))


Reading = Callable[[NDArray[np.floating]], set[Link]]
READINGS: dict[str, Reading] = {"rows": argmax_links, "both": both_links, "balanced": balanced_links}


def reading_named(name: str) -> Reading:
    if name not in READINGS:
        raise BadInput(f'"{name}" is no way to read links from attention.{did_you_mean(name, READINGS)}')
    return READINGS[name]


@dataclass(frozen=True)
class AlignmentScore:
    """What was counted over a corpus: links predicted (A), sure (S), and how many of A are sure and possible (P)."""

    predicted: int = 0
    sure: int = 0
    predicted_and_sure: int = 0
    predicted_and_possible: int = 0

    @property
    def error_rate(self) -> float:
        """AER = 1 − (|A∩S| + |A∩P|) / (|A| + |S|), Och and Ney 2003; 0 is perfect."""
        total = self.predicted + self.sure
        return 1.0 - (self.predicted_and_sure + self.predicted_and_possible) / total if total else 0.0

    @property
    def precision(self) -> float:
        """|A∩P| / |A|"""
        return self.predicted_and_possible / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        """|A∩S| / |S|"""
        return self.predicted_and_sure / self.sure if self.sure else 1.0

    def to_json(self) -> dict[str, float]:
        rates = {"error_rate": self.error_rate, "precision": self.precision, "recall": self.recall}
        return {**rates, "predicted": self.predicted, "sure": self.sure}

    def __str__(self) -> str:
        rates = f"precision {self.precision:.3f}, recall {self.recall:.3f}"
        return f"AER {self.error_rate:.4f}   {rates} (argmax of attention)"

    def __add__(self, other: AlignmentScore) -> AlignmentScore:
        return AlignmentScore(
            self.predicted + other.predicted,
            self.sure + other.sure,
            self.predicted_and_sure + other.predicted_and_sure,
            self.predicted_and_possible + other.predicted_and_possible,
        )


def sentence_score(predicted: Set[Link], sure: Set[Link], possible: Set[Link]) -> AlignmentScore:
    """The counts of one sentence pair; sure links count as possible whether `possible` repeats them or not."""
    return AlignmentScore(len(predicted), len(sure), len(predicted & sure), len(predicted & (possible | sure)))


def alignment_error_rate(
    predicted: Iterable[Set[Link]], sure: Iterable[Set[Link]], possible: Iterable[Set[Link]]
) -> AlignmentScore:
    """Over a corpus: counts are added up first, then divided (not a mean over sentences)."""
    total = AlignmentScore()
    for links in zip(predicted, sure, possible, strict=True):
        total += sentence_score(*links)
    return total
