"""Experiment 2. The bottleneck: a sentence of any length must go through one vector, unless the decoder may look back.

    without attention   s_0 = the encoder's last state, and nothing else       (Sutskever et al. 2014; Cho et al. 2014)
    with attention      a_t = Σ_s α_ts h_s beside it, at every step            (Bahdanau et al. 2015; Luong et al. 2015)

Both have the same encoder and the same number of updates. They copy random letters, and they translate the embedded
grammar; both learn from short sequences only and are then asked for longer ones too (Bahdanau's Figure 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from jumok.data.batch import END, SPECIAL_TOKENS, START, PairBatch, Sequences
from jumok.data.grammar import Pair
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded, train, written
from jumok.lab.translating import Corpus, learned, sentences
from jumok.models.build import build
from jumok.recipe import Seq2SeqSection
from jumok.tasks.metrics import corpus_scores
from jumok.tasks.translation import TranslationObjective

ARMS = ("without attention", "with attention")

LETTERS, LONGEST_COPY = 30, 10
COPY_LENGTHS = (2, 4, 6, 8, 10, 12, 14, 16, 20)
COPY_UPDATES = 400

LONGEST_SENTENCE = 12  # words to learn from, punctuation counts
BUCKETS = ((3, 5), (6, 8), (9, 12), (13, 16), (17, 21), (22, 28))  # of source words
SENTENCES = 80  # to translate in each
UPDATES = 260


def section_of(arm: str, width: int, **others: Any) -> Seq2SeqSection:
    """One encoder for both: what differs is whether the decoder may look at more than its last state."""
    attention = "none" if arm == "without attention" else "luong"
    return Seq2SeqSection(
        cell="lstm", embedding=width, width=width, layers=1, bidirectional=True, attention=attention, scorer="general",
        **others,
    )  # fmt: skip


def measure(seed: int, effort: float) -> Numbers:
    return {
        "copy": {arm: copying(arm, seed, effort) for arm in ARMS},
        "bleu": translating(seed, effort),
    }


# ---------------------------------------------------------------- copying letters


def copying(arm: str, seed: int, effort: float) -> list[float]:
    """The share of letters written right, reading its own, at each of COPY_LENGTHS."""
    with seeded(seed):
        vocabulary = len(SPECIAL_TOKENS) + LETTERS
        model = build(section_of(arm, width=64, dropout=0.0), vocabulary, vocabulary)
        objective = TranslationObjective(model)

        def loss_of(_: int) -> Tensor:
            loss = objective(letters(64, int(torch.randint(1, LONGEST_COPY + 1, ()))))
            return loss.sum / loss.count

        train(objective, loss_of, max(2, round(COPY_UPDATES * effort)), learning_rate=1e-2)
        right = []
        for length in COPY_LENGTHS:
            batch = letters(200, length)
            right.append(float((written(model, batch.source, length) == batch.source.ids[:, :-1]).float().mean()))
    return right


def letters(rows: int, length: int) -> PairBatch:
    """Random letters, to be written as they were read."""
    first = len(SPECIAL_TOKENS)
    ids = torch.randint(first, first + LETTERS, (rows, length))
    start, end = torch.full((rows, 1), START), torch.full((rows, 1), END)
    source, target = torch.cat((ids, end), dim=1), torch.cat((start, ids, end), dim=1)
    lengths = torch.full((rows,), length)
    return PairBatch(Sequences(source, lengths + 1), Sequences(target, lengths + 2))


# ---------------------------------------------------------------- translating sentences


def translating(seed: int, effort: float) -> dict[str, list[float]]:
    """BLEU in each of BUCKETS."""
    pairs = 20_000 if effort >= 0.5 else 2_000
    corpus = Corpus.of(sentences("train", pairs, seed), LONGEST_SENTENCE)
    count = SENTENCES if effort >= 0.5 else 4
    buckets = by_length(corpus, [*sentences("test", 6 * count, seed), *sentences("test", 16 * count, seed, size=20)])
    bleu: dict[str, list[float]] = {}
    for arm in ARMS:
        translator = learned(
            corpus,
            section_of(arm, width=128, dropout=0.1, tie_embeddings=True),
            max(2, round(UPDATES * effort)),
            seed,
            batch=96,
            learning_rate=8e-3,
        )
        outputs = [translator.translate([pair.source for pair in bucket[:count]]) for bucket in buckets]
        references = [[pair.target for pair in bucket[:count]] for bucket in buckets]
        bleu[arm] = [corpus_scores(out, true)[0].score for out, true in zip(outputs, references, strict=True)]
    return bleu


def by_length(corpus: Corpus, pairs: Sequence[Pair]) -> list[list[Pair]]:
    lengths = [len(row) for row in corpus.source.encode([pair.source for pair in pairs])]
    named = list(zip(pairs, lengths, strict=True))
    return [[pair for pair, length in named if low <= length <= high] for low, high in BUCKETS]


# ---------------------------------------------------------------- what the numbers say


def judge(seeds: Sequence[Numbers]) -> list[Verdict]:
    def mean(task: str, arm: str, place: int) -> float:
        return fmean(numbers[task][arm][place] for numbers in seeds)

    def kept(task: str, arm: str, short: int, long: int) -> float:
        """How much of what it can do with short ones is left with long ones."""
        return mean(task, arm, long) / max(mean(task, arm, short), 1e-9)

    def told(task: str, arm: str, short: int, long: int) -> str:
        digits = 2 if task == "copy" else 1
        return f"{arm} {mean(task, arm, short):.{digits}f} → {mean(task, arm, long):.{digits}f}"

    none, attention = ARMS
    copy = (COPY_LENGTHS.index(4), COPY_LENGTHS.index(LONGEST_COPY))
    trained = (0, next(place for place, (_, high) in enumerate(BUCKETS) if high == LONGEST_SENTENCE))
    beyond = (trained[1], len(BUCKETS) - 1)
    words = [f"{low}–{high}" for low, high in BUCKETS]

    def share(arm: str) -> str:
        points = mean("bleu", arm, trained[0]) - mean("bleu", arm, trained[1])
        return f"{told('bleu', arm, *trained)} (keeps {kept('bleu', arm, *trained):.0%}, loses {points:.1f} points)"

    return [
        Verdict(
            claim="One vector is a bottleneck: copying fails as the text grows, much more than with attention.",
            holds=mean("copy", none, copy[0]) > 0.5  # it has learned to copy at all
            and kept("copy", none, *copy) < 0.8 * kept("copy", attention, *copy),
            because=f"letters right, 4 → {LONGEST_COPY} letters (all lengths it learned from): "
            f"{told('copy', none, *copy)}, {told('copy', attention, *copy)}",
        ),
        Verdict(
            claim="As sentences grow, a model without attention keeps a smaller share of its BLEU than one with it "
            "(Figure 2).",
            holds=mean("bleu", none, 0) > 10  # it has learned to translate at all
            and kept("bleu", none, *trained) < 0.8 * kept("bleu", attention, *trained),
            because=f"BLEU, {words[0]} → {words[trained[1]]} words (lengths it learned from): "
            f"{share(none)}, {share(attention)}",
        ),
        Verdict(
            claim="With attention sentences beyond the lengths of training are translated as well as those within.",
            holds=mean("bleu", attention, beyond[0]) > 10 and kept("bleu", attention, *beyond) > 0.9,
            because=f"BLEU, {words[beyond[0]]} → {words[beyond[1]]} words: {told('bleu', attention, *beyond)}, "
            f"{told('bleu', none, *beyond)}",
        ),
    ]


LOOKS = {"without attention": ("#b3560a", "--", "s"), "with attention": ("#3a78c9", "-", "o")}


def draw(figure: Any, seeds: Sequence[Numbers]) -> None:
    left, right = figure.subplots(1, 2)
    middles = [(low + high) / 2 for low, high in BUCKETS]
    panels = ((left, "copy", COPY_LENGTHS, LONGEST_COPY), (right, "bleu", middles, LONGEST_SENTENCE))
    for axes, task, lengths, longest in panels:
        axes.axvspan(longest + 0.5, max(lengths) + 1, color="#8a8f98", alpha=0.15, linewidth=0, label="beyond training")
        for arm, (colour, line, marker) in LOOKS.items():
            for numbers in seeds if len(seeds) > 1 else ():
                axes.plot(lengths, numbers[task][arm], color=colour, linestyle=line, linewidth=0.6, alpha=0.4)
            means = [fmean(numbers[task][arm][place] for numbers in seeds) for place in range(len(lengths))]
            axes.plot(lengths, means, color=colour, linestyle=line, marker=marker, linewidth=2, label=arm)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
    left.set_title("copying", fontsize=10)
    left.set_xticks(COPY_LENGTHS)
    left.set_xlabel("letters to copy")
    left.set_ylabel("letters written right")
    right.set_title("translating", fontsize=10)
    right.set_xlabel("words in the source sentence")
    right.set_ylabel("BLEU")
    right.legend(fontsize=8)
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=2,
    name="bottleneck",
    title="The bottleneck: one vector for a whole sentence",
    source="Cho et al. 2014; Bahdanau et al. 2015, 5.1 and Figure 2",
    about="Two encoder–decoders, alike but for attention, copy random letters and translate the embedded grammar from "
    f"French to English. They learn from at most {LONGEST_COPY} letters and {LONGEST_SENTENCE} words; measured are the "
    "letters written right and BLEU against length, up to twice that.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(9.0, 4.0),
)
