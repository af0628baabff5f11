"""Experiment 3. Teacher forcing: a decoder that learned with the true words before it must later read its own.

    teacher forcing      it reads y_(t-1), the true word                             (Williams and Zipser 1989)
    free running         it reads ŷ_(t-1) = argmax p(y_(t-1) | …), its own
    scheduled sampling   the true word with probability ε, which falls during training   (Bengio et al. 2015)

The exposure gap is how many more words are right with the true past than with the model's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from jumok.data.batch import PairBatch
from jumok.data.grammar import Pair
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import written
from jumok.lab.translating import Corpus, learned, sentences
from jumok.recipe import Seq2SeqSection
from jumok.tasks.metrics import corpus_scores
from jumok.tasks.translator import Translator

POSITIONS = 7  # words of the translation that are looked at one by one
LONGEST = 8  # words of a source, punctuation counts, to learn from and to test
UPDATES = 450
LEAST_TRUTH = 0.25

# ε, the share of true words read, by how much of the training is done (from 0 to 1)
ARMS: dict[str, Callable[[float], float]] = {
    "teacher forcing": lambda done: 1.0,
    "free running": lambda done: 0.0,
    "scheduled sampling": lambda done: max(LEAST_TRUTH, 1.0 - done),
}

# no attention: what such a decoder knows of the sentence is in its state, which its own words change
SECTION = Seq2SeqSection(
    cell="lstm", embedding=96, width=96, layers=1, bidirectional=True, attention="none", dropout=0.1,
    tie_embeddings=True,
)  # fmt: skip


def measure(seed: int, effort: float) -> Numbers:
    whole = effort >= 0.5
    corpus = Corpus.of(sentences("train", 16_000 if whole else 1_000, seed, size=6), LONGEST)
    test = corpus.within(sentences("test", 1_600 if whole else 80, seed, size=6), LONGEST)[: 800 if whole else 40]
    updates = max(2, round(UPDATES * effort))
    numbers: Numbers = {"updates": updates}
    for arm, truth in ARMS.items():
        translator = learned(
            corpus, SECTION, updates, seed, batch=64, learning_rate=8e-3,
            teacher_forcing=lambda update, truth=truth: truth(update / updates),  # type: ignore[misc]
        )  # fmt: skip
        numbers[arm] = accuracy(translator, test)
        outputs = translator.translate([pair.source for pair in test])
        numbers[arm]["bleu"] = corpus_scores(outputs, [pair.target for pair in test])[0].score
    return numbers


@torch.inference_mode()
def accuracy(translator: Translator, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The share of words predicted right with the true past and with the model's own: over all words, and at each of
    the first positions (of the sentences that are so long)."""
    model = translator.model
    batch = PairBatch.of(
        translator.source.encode([pair.source for pair in pairs]),
        translator.target.encode([pair.target for pair in pairs]),
    )
    true_BT, real_BT = batch.target.ids[:, 1:], batch.target.mask[:, 1:]
    forced_BT = model.head(model(batch.source, batch.target.ids[:, :-1])).argmax(dim=-1)
    free_BT = written(model, batch.source, true_BT.size(1))
    found: dict[str, Any] = {}
    for past, own_BT in (("true past", forced_BT), ("own past", free_BT)):
        right_BT = (own_BT == true_BT) & real_BT
        found[past] = float(right_BT.sum() / real_BT.sum())
        found[f"{past} by position"] = _ratio(right_BT, real_BT)
    return found


def _ratio(right_BT: Tensor, real_BT: Tensor) -> list[float]:
    return (right_BT.sum(dim=0) / real_BT.sum(dim=0).clamp(min=1))[:POSITIONS].tolist()


def judge(seeds: Sequence[Numbers]) -> list[Verdict]:
    def mean(arm: str, key: str) -> float:
        return fmean(numbers[arm][key] for numbers in seeds)

    def gap(arm: str) -> float:
        return mean(arm, "true past") - mean(arm, "own past")

    def gap_at(arm: str, places: range) -> float:
        return fmean(
            numbers[arm]["true past by position"][place] - numbers[arm]["own past by position"][place]
            for numbers in seeds
            for place in places
        )

    teacher, free, scheduled = ARMS
    early, late = gap_at(teacher, range(1, 3)), gap_at(teacher, range(POSITIONS - 3, POSITIONS))
    words = f"words right with the true past and with its own: {mean(teacher, 'true past'):.3f} and "
    measures = {"BLEU of its own translations": ("bleu", 1), "words right with its own past": ("own past", 3)}
    told = "; ".join(
        f"{what}: " + ", ".join(f"{arm} {mean(arm, key):.{digits}f}" for arm in ARMS)
        for what, (key, digits) in measures.items()
    )

    def better(claim: str, arm: str, other: str) -> Verdict:
        by = [mean(arm, key) > mean(other, key) for key, _ in measures.values()]
        because = told if by[0] == by[1] else f"the two measures disagree: {told}"
        return Verdict(f"After {seeds[0]['updates']} updates {claim}", all(by), because)

    return [
        Verdict(
            claim="A model taught by teacher forcing does worse on its own words, more so the later in the sentence.",
            holds=gap(teacher) > 0.02 and late > early,
            because=f"{words}{mean(teacher, 'own past'):.3f}; the gap is {early:.3f} at words 2–3 and {late:.3f} at "
            f"words {POSITIONS - 2}–{POSITIONS}",
        ),
        better("a model taught by teacher forcing translates better than one that read its own words.", teacher, free),
        Verdict(
            claim="Scheduled sampling narrows the exposure gap.",
            holds=gap(scheduled) < gap(teacher),
            because="the gap is " + ", ".join(f"{gap(arm):.3f} ({arm})" for arm in ARMS),
        ),
        better("scheduled sampling translates better than teacher forcing.", scheduled, teacher),
    ]


COLOURS = {"teacher forcing": "#b3560a", "scheduled sampling": "#3a78c9", "free running": "#8a8f98"}


def draw(figure: Any, seeds: Sequence[Numbers]) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    for arm, colour in COLOURS.items():
        for past, line, marker in (("true past", "--", "^"), ("own past", "-", "o")):
            lists = [numbers[arm][f"{past} by position"] for numbers in seeds]
            means = [fmean(values) for values in zip(*lists, strict=False)]
            positions = range(1, len(means) + 1)
            left.plot(positions, means, color=colour, linestyle=line, marker=marker, label=f"{arm}, {past}")
    left.set_xlabel("word of the translation")
    left.set_ylabel("share predicted right")
    left.set_ylim(bottom=0)
    left.grid(alpha=0.25)
    left.legend(fontsize=7, title="how it learned, what it reads now", title_fontsize=7)
    heights = [fmean(numbers[arm]["bleu"] for numbers in seeds) for arm in COLOURS]
    bars = right.bar([arm.replace(" ", "\n") for arm in COLOURS], heights, color=list(COLOURS.values()))
    right.bar_label(bars, fmt="%.1f", fontsize=8)
    right.set_ylabel("BLEU of its own translations")
    right.tick_params(axis="x", labelsize=8)
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=3,
    name="teacher-forcing",
    title="Teacher forcing, the exposure gap, and scheduled sampling",
    source="Williams and Zipser 1989; Bengio et al. 2015, 2.4 (scheduled sampling); Ranzato et al. 2016 (exposure)",
    about="A small LSTM encoder–decoder without attention learns the embedded grammar, French to English, in three "
    "ways: reading the true words, its own, or more and more of its own. Measured are the words predicted right with "
    "the true past and with its own, position by position, and BLEU.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(10.0, 4.2),
)
