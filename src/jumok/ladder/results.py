"""What a ladder has found so far, from the files of its runs: a row for each rung, and how the rungs differ."""

from __future__ import annotations

import statistics as plain
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from jumok.inspect.attention import Attention
from jumok.ladder import statistics
from jumok.ladder.folder import LadderFolder
from jumok.ladder.plan import Attempt, Plan
from jumok.ladder.rungs import Rung
from jumok.ladder.scoring import drawn_sentences, read_attention, read_score, read_translations
from jumok.ladder.statistics import Estimate, Numbers
from jumok.training.comparison import Summary, differences, summarise

MOST_GROUPS = 6  # of sentences by their length
SHOWN = 4  # translations that are shown of every rung


@dataclass(frozen=True)
class Scored:
    """An attempt with its scores."""

    attempt: Attempt
    summary: Summary
    found: dict[str, Any]
    outputs: list[str]
    bleu: Numbers  # a row of counts for each test sentence
    chrf: Numbers


@dataclass(frozen=True)
class Row:
    """A rung; numbers are means over its seeds."""

    rung: Rung
    model: str
    parameters: int
    updates: float
    minutes: float | None
    tokens_per_second: float | None
    sentences_per_second: float
    bleu: Estimate
    chrf: Estimate
    each: dict[int, float]  # BLEU by seed
    tutorial: float  # BLEU, lower-cased and tokenised
    gain: float | None = None  # BLEU over the rung below, of the seeds that both have
    p: float | None = None  # of that gain

    @property
    def spread(self) -> float | None:
        """The standard deviation of BLEU over the seeds."""
        return plain.stdev(self.each.values()) if len(self.each) > 1 else None

    def to_json(self) -> dict[str, Any]:
        values = {key: value for key, value in asdict(self).items() if key != "rung"}
        return {"rung": self.rung.name, "recipe": self.rung.recipe, "spread": self.spread, **values}


@dataclass(frozen=True)
class Group:
    """Test sentences of about the same length."""

    shortest: int  # in words of the source
    longest: int
    sentences: int
    bleu: dict[str, float]  # by rung, mean over its seeds

    @property
    def label(self) -> str:
        return str(self.shortest) if self.shortest == self.longest else f"{self.shortest}–{self.longest}"


@dataclass(frozen=True)
class Results:
    rows: list[Row]
    groups: list[Group]
    differing: dict[str, list[Any]]  # keys in which the rungs' recipes differ, with each rung's value
    signatures: dict[str, str]
    sentences: int
    device: str
    side_by_side: dict[str, int]  # by run: how many trained beside each other
    scored: list[Scored] = field(repr=False, default_factory=list)
    pairs: list[tuple[str, str]] = field(repr=False, default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "rungs": [row.to_json() for row in self.rows],
            "by_length": [{**asdict(group), "label": group.label} for group in self.groups],
            "differences": {
                key: dict(zip([row.rung.name for row in self.rows], values, strict=True))
                for key, values in self.differing.items()
            },
            "signatures": self.signatures,
            "sentences": self.sentences,
            "device": self.device,
            "side_by_side": self.side_by_side,
            "bootstrap": {"samples": statistics.SAMPLES, "seed": statistics.SEED, "confidence": statistics.CONFIDENCE},
        }

    def first_of(self, rung: Rung) -> Scored:
        """The attempt that stands for a rung in pictures: that of its first seed."""
        return next(one for one in self.scored if one.attempt.rung == rung)

    def pictures(self) -> list[tuple[Rung, Attention]]:
        """What each rung that attends looked at, sentence by sentence: the rungs of one sentence stand together."""
        found = [(row.rung, read_attention(self.first_of(row.rung).found)) for row in self.rows]
        sentences = sorted({sentence for _, pictures in found for sentence in pictures})
        return [(rung, pictures[one]) for one in sentences for rung, pictures in found if one in pictures]

    def examples(self) -> list[tuple[str, str, dict[str, str]]]:
        """Some sentences with their references and each rung's translation of them."""
        readable = drawn_sentences([source for source, _ in self.pairs], SHOWN)
        firsts = {row.rung.title: self.first_of(row.rung).outputs for row in self.rows}
        return [
            (*self.pairs[place], {title: outputs[place] for title, outputs in firsts.items()}) for place in readable
        ]


def results(plan: Plan, folder: LadderFolder, pairs: Sequence[tuple[str, str]]) -> Results:
    """All that is scored so far, compared."""
    references = [reference for _, reference in pairs]
    scored = []
    for attempt in plan.attempts:
        run = folder.run(attempt)
        found = read_score(run)
        if found is not None:
            outputs = read_translations(run)
            counts = statistics.bleu_counts(outputs, references), statistics.chrf_counts(outputs, references)
            scored.append(Scored(attempt, summarise(run.path), found, outputs, *counts))
    by_rung = {rung: [one for one in scored if one.attempt.rung == rung] for rung in plan.rungs}
    by_rung = {rung: ones for rung, ones in by_rung.items() if ones}
    first: dict[str, Any] = scored[0].found if scored else {"scores": [], "device": ""}
    beside = folder.side_by_side()
    return Results(
        _rows(by_rung),
        _groups(by_rung, [source for source, _ in pairs]),
        differences([ones[0].summary for ones in by_rung.values()]),
        {score["name"]: score["signature"] for score in first["scores"]},
        len(pairs),
        first["device"],
        {one.attempt.name: beside[one.attempt.name] for one in scored if one.attempt.name in beside},
        scored,
        list(pairs),
    )


def _rows(by_rung: dict[Rung, list[Scored]]) -> list[Row]:
    rows: list[Row] = []
    below: dict[int, tuple[float, Numbers]] = {}  # by seed: BLEU and its draws
    scored = [one for ones in by_rung.values() for one in ones]
    if not scored:
        return []
    drawn_bleu = iter(statistics.draws([one.bleu for one in scored], statistics.bleu))
    drawn_chrf = iter(statistics.draws([one.chrf for one in scored], statistics.chrf))
    for rung, ones in by_rung.items():
        each = {one.attempt.seed: (_bleu(one), next(drawn_bleu)) for one in ones}
        bleu_draws = np.mean([draws for _, draws in each.values()], axis=0)
        chrf_draws = np.mean([next(drawn_chrf) for _ in ones], axis=0)
        bleu, chrf = (plain.mean(one.found["scores"][place]["score"] for one in ones) for place in (0, 1))
        gain, p = _gain(each, below)
        below = each
        rows.append(
            Row(
                rung,
                ones[0].summary.model,
                ones[0].found["parameters"],
                plain.mean(one.summary.updates for one in ones),
                _mean([one.summary.minutes for one in ones]),
                _mean([one.summary.tokens_per_second for one in ones]),
                plain.mean(one.found["sentences_per_second"] for one in ones),
                statistics.estimate(bleu, bleu_draws),
                statistics.estimate(chrf, chrf_draws),
                {seed: score for seed, (score, _) in each.items()},
                plain.mean(one.found["tutorial"] for one in ones),
                gain,
                p,
            )
        )
    return rows


def _gain(
    each: dict[int, tuple[float, Numbers]], below: dict[int, tuple[float, Numbers]]
) -> tuple[float | None, float | None]:
    """BLEU over the rung below and its p, of the seeds that both have: what failed counts on neither side."""
    both = [(each[seed], below[seed]) for seed in each if seed in below]
    if not both:
        return None, None
    gain = plain.mean(ours[0] - theirs[0] for ours, theirs in both)
    return gain, statistics.p_value(gain, np.mean([ours[1] - theirs[1] for ours, theirs in both], axis=0))


def _bleu(one: Scored) -> float:
    return float(one.found["scores"][0]["score"])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return plain.mean(known) if known else None


def _groups(by_rung: dict[Rung, list[Scored]], sources: Sequence[str]) -> list[Group]:
    """Sentences in groups of about the same number, from short to long; no length is in two of them."""
    lengths = np.array([len(source.split()) for source in sources])
    shares = np.linspace(0, 100, MOST_GROUPS + 1)[1:]
    edges = np.unique(np.percentile(lengths, shares, method="higher"))
    found, start = [], -1
    for edge in edges:
        inside = (lengths > start) & (lengths <= edge)
        start = int(edge)
        if inside.any():
            bleu = {
                rung.name: float(np.mean([statistics.bleu(one.bleu[inside].sum(axis=0)) for one in ones]))
                for rung, ones in by_rung.items()
            }
            found.append(Group(int(lengths[inside].min()), int(lengths[inside].max()), int(inside.sum()), bleu))
    return found
