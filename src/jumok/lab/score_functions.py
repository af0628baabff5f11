"""Experiment 4. The score functions side by side: what they cost, and what they learn to look at.

    dot         s · h                        Luong et al. 2015
    scaled      s · h / √d                   Vaswani et al. 2017
    general     s · W h                      Luong et al. 2015
    additive    v · tanh(W s + U h)          Bahdanau et al. 2015; Luong's "concat"
    location    W_a s, the key is not read   Luong et al. 2015

Five models, alike but for the score, learn to translate; the attention of each is compared with the gold alignment of
the words (AER, 0 is perfect). The numbers in an LSTM's state lie between -1 and 1, so products of two states are small
from the start; where they are large, dividing by √d is another matter: see `scaling`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

import torch
from torch import Tensor

from jumok.inspect.alignment import alignment_error_rate
from jumok.inspect.forced import word_links
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded
from jumok.lab.translating import Corpus, learned, sentences
from jumok.layers.attention import Scorer, attention, build_scorer
from jumok.recipe import Seq2SeqSection
from jumok.tasks.metrics import corpus_scores

SCORERS = ("dot", "scaled-dot", "general", "additive", "location")
LONGEST = 10  # words of a source, punctuation counts; also of those to test: location has learned no place beyond
UPDATES = 300
MARGIN = 1.0  # of BLEU: what is better by less is not called better, since with another seed it may be worse
BATCH, LENGTH, WIDTH = 8, 64, 128  # of the attention that is timed


def measure(seed: int, effort: float) -> Numbers:
    whole = effort >= 0.5
    corpus = Corpus.of(sentences("train", 16_000 if whole else 1_000, seed, size=8), LONGEST)
    test = corpus.within(sentences("test", 1_000 if whole else 50, seed, size=8), LONGEST)[: 400 if whole else 20]
    numbers: Numbers = {"bleu": {}, "aer": {}, **costs(seed, rounds=15 if whole else 2)}
    for scorer in SCORERS:
        section = Seq2SeqSection(
            cell="lstm", embedding=96, width=96, layers=1, bidirectional=True, attention="luong", scorer=scorer,
            dropout=0.1, tie_embeddings=True,
        )  # fmt: skip
        translator = learned(corpus, section, max(2, round(UPDATES * effort)), seed, batch=64, learning_rate=8e-3)
        sources, targets = [pair.source for pair in test], [pair.target for pair in test]
        numbers["bleu"][scorer] = corpus_scores(translator.translate(sources), targets)[0].score
        links = word_links(translator, sources, targets)
        sure, possible = [set(pair.sure) for pair in test], [set(pair.possible) for pair in test]
        numbers["aer"][scorer] = alignment_error_rate(links, sure, possible).error_rate
    return numbers


def costs(seed: int, rounds: int) -> dict[str, dict[str, float]]:
    """One attention, forwards and backwards: milliseconds of one thread, and megabytes kept in between. The scorers
    take turns, so that whatever else the machine does meets them all."""
    with seeded(seed):
        texts = torch.randn(3, BATCH, LENGTH, WIDTH)
        scorers = {name: build_scorer(name, WIDTH, WIDTH, WIDTH, LENGTH) for name in SCORERS}
    kept = {name: megabytes(scorer, texts) for name, scorer in scorers.items()}
    taken: dict[str, list[float]] = {name: [] for name in SCORERS}
    for _ in range(rounds):
        for name, scorer in scorers.items():
            begun = time.process_time()
            looked(scorer, texts).sum().backward()  # type: ignore[no-untyped-call]
            taken[name].append(1000 * (time.process_time() - begun))
    return {"milliseconds": {name: median(times) for name, times in taken.items()}, "megabytes": kept}


def looked(scorer: Scorer, texts: Tensor) -> Tensor:
    query, key, value = (text.clone().requires_grad_() for text in texts)
    return attention(query, scorer.prepare(key), value, None, scorer)


def megabytes(scorer: Scorer, texts: Tensor) -> float:
    """What autograd keeps for the backward pass; what is kept twice counts once."""
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        return kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        looked(scorer, texts)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values()) / 1e6


def judge(seeds: Sequence[Numbers]) -> list[Verdict]:
    def means(key: str) -> dict[str, float]:
        return {scorer: fmean(numbers[key][scorer] for numbers in seeds) for scorer in SCORERS}

    def told(values: dict[str, float], digits: int, names: Sequence[str] = SCORERS) -> str:
        return ", ".join(f"{name} {values[name]:.{digits}f}" for name in names)

    aer, bleu, time_of, kept_of = means("aer"), means("bleu"), means("milliseconds"), means("megabytes")
    by_content = ("dot", "general", "additive")  # Luong's three
    return [
        Verdict(
            claim="To look by content aligns words better than to look by location.",
            holds=max(aer[name] for name in by_content) < aer["location"],
            because=f"AER: {told(aer, 3)}",
        ),
        Verdict(
            claim="To look by content translates better than to look by location.",
            holds=min(bleu[name] for name in by_content) > bleu["location"] + MARGIN,
            because=f"BLEU: {told(bleu, 1)} (better: by more than {MARGIN:g})",
        ),
        Verdict(
            claim="To divide the dot product by √d makes it learn better.",
            holds=bleu["scaled-dot"] > bleu["dot"] + MARGIN and aer["scaled-dot"] < aer["dot"],
            because=f"BLEU: {told(bleu, 1, ('scaled-dot', 'dot'))}; AER: {told(aer, 3, ('scaled-dot', 'dot'))}",
        ),
        Verdict(
            claim="The additive score (concat) does worse than dot and general in Luong's decoder.",
            holds=bleu["additive"] < min(bleu["dot"], bleu["general"]) - MARGIN,
            because=f"BLEU: {told(bleu, 1, by_content)}; AER: {told(aer, 3, by_content)}",
        ),
        Verdict(
            claim="Dot-product attention is much faster and more space-efficient than additive attention.",
            holds=time_of["additive"] > 2 * time_of["dot"] and kept_of["additive"] > 2 * kept_of["dot"],
            because=f"{LENGTH} queries, {LENGTH} keys, {BATCH} rows, width {WIDTH}, forwards and backwards: dot "
            f"{time_of['dot']:.1f} ms and {kept_of['dot']:.1f} MB kept, additive "
            f"{time_of['additive']:.1f} ms and {kept_of['additive']:.1f} MB",
        ),
    ]


PANELS = (
    ("bleu", "BLEU (higher is better)", "%.1f", False),
    ("aer", "AER (lower is better)", "%.2f", False),
    ("milliseconds", "ms, forwards and backwards", "%.1f", True),
    ("megabytes", "MB kept for the backward pass", "%.1f", True),
)


def draw(figure: Any, seeds: Sequence[Numbers]) -> None:
    for axes, (key, label, written_as, logarithmic) in zip(figure.subplots(1, 4), PANELS, strict=True):
        means = [fmean(numbers[key][scorer] for numbers in seeds) for scorer in SCORERS]
        axes.barh(SCORERS, means, color="#3a78c9")
        for place, (scorer, mean) in enumerate(zip(SCORERS, means, strict=True)):
            found = [numbers[key][scorer] for numbers in seeds]
            if len(seeds) > 1:
                axes.plot(found, [place] * len(seeds), "|", color="#b3560a")
            behind = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
            axes.annotate(written_as % mean, (max(found), place), **behind)
        if logarithmic:
            axes.set_xscale("log")
        axes.set_xlabel(label, fontsize=9)
        axes.margins(x=0.25)
        axes.invert_yaxis()
        axes.tick_params(labelsize=8)
        if key != "bleu":
            axes.set_yticklabels([])
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=4,
    name="score-functions",
    title="The score functions side by side",
    source="Luong et al. 2015, 3.1, Tables 4 and 6; Bahdanau et al. 2015, A.1.2; Vaswani et al. 2017, 3.2.1",
    about="Five encoder–decoders with Luong's attention, alike but for the score, learn the embedded grammar from "
    f"French to English, from sentences of at most {LONGEST} words. Measured are BLEU on other such sentences, the "
    "alignment error rate of the attention against the gold alignment, and what one attention costs: time of one "
    "thread, and memory kept for the backward pass.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(11.0, 3.2),
)
