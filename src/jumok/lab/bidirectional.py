"""Reading forward only, or in both directions.

    h_t = [→h_t ; ←h_t]        (Schuster and Paliwal 1997; the encoder of Bahdanau et al. 2015, section 3.2)

What a word means may be decided by a word that comes after it. A network that reads forward has not seen that word yet;
one that reads both ways has. Two tasks, each word judged where it stands:

- made up: words of two meanings, and signs between them; the meaning is decided by the next sign after the word, or (to
  see what the second direction costs) by the last sign before it;
- the embedded grammar: which article is meant by an English "the" or "a", in French le, la, les, un, une? The noun that
  decides comes later: "the old house".

All encoders have the same width: both directions share it, so that the bidirectional one is not the larger.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data import grammar
from jumok.data.batch import PAD, UNKNOWN, Sequences
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded, train
from jumok.layers.embedding import Embedding
from jumok.layers.linear import linear
from jumok.layers.loss import IGNORED
from jumok.layers.recurrent import Recurrent

WIDTH, BATCH, LEARNING_RATE = 64, 32, 0.005
ENCODERS = {"forward": False, "bidirectional": True}
LENGTH, WORDS, SIGNS, SIGN_SHARE, MADE_UP_UPDATES = 24, 8, 2, 0.25, 300
ARTICLES = ("le", "la", "les", "un", "une")
SENTENCES, TESTED, GRAMMAR_UPDATES = 4000, 800, 500


class Tagger(nn.Module):
    """A class for every word from the encoder's state there."""

    def __init__(self, vocabulary: int, classes: int, bidirectional: bool) -> None:
        super().__init__()
        self.embedding = Embedding(vocabulary, WIDTH // 2, PAD)
        self.recurrent = Recurrent("lstm", WIDTH // 2, WIDTH, bidirectional=bidirectional, forget_bias=1.0)
        self.head = linear(WIDTH, classes)

    def forward(self, ids_BL: Tensor, lengths_B: Tensor | None = None) -> Tensor:
        return self.head(self.recurrent(self.embedding(ids_BL), lengths_B)[0])


# ---------------------------------------------------------------- the made-up language


def nearest_sign(ids_BL: Tensor, after: bool) -> Tensor:
    """(B, L): 0 or 1, the next sign after each word (or the last one before it); IGNORED at signs and where none is."""
    columns = range(LENGTH - 1, -1, -1) if after else range(LENGTH)
    found_B = torch.full((len(ids_BL),), IGNORED)
    nearest = [found_B] * LENGTH
    for column in columns:
        sign_B = ids_BL[:, column] - 1 - WORDS
        nearest[column] = torch.where(sign_B >= 0, IGNORED, found_B)
        found_B = torch.where(sign_B >= 0, sign_B, found_B)
    return torch.stack(nearest, dim=1)


def texts(count: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """(B, L) ids and (B, L, 2) meanings: word parity ⊕ sign, by the sign after the word and by the one before it."""
    words_BL = torch.randint(1, 1 + WORDS, (count, LENGTH), generator=random)
    signs_BL = torch.randint(1 + WORDS, 1 + WORDS + SIGNS, (count, LENGTH), generator=random)
    ids_BL = torch.where(torch.rand(count, LENGTH, generator=random) < SIGN_SHARE, signs_BL, words_BL)
    deciding = torch.stack([nearest_sign(ids_BL, after) for after in (True, False)], dim=-1)
    return ids_BL, torch.where(deciding == IGNORED, IGNORED, (deciding + ids_BL[..., None]) % 2)


def made_up(bidirectional: bool, seed: int, updates: int) -> dict[str, float]:
    with seeded(seed):
        model = Tagger(1 + WORDS + SIGNS, 4, bidirectional)  # two classes for each of the two questions
    random = torch.Generator().manual_seed(seed)

    def logits(ids_BL: Tensor) -> Tensor:
        return model(ids_BL).unflatten(-1, (2, 2))

    def loss(update: int) -> Tensor:
        ids_BL, meaning_BL2 = texts(BATCH, random)
        return F.cross_entropy(logits(ids_BL).flatten(0, 2), meaning_BL2.flatten(), ignore_index=IGNORED)

    train(model, loss, updates, LEARNING_RATE)
    ids_BL, meaning_BL2 = texts(200, random)
    with torch.no_grad():
        right = (logits(ids_BL).argmax(dim=-1) == meaning_BL2).float()
    asked = meaning_BL2 != IGNORED
    by_question = [right[..., question][asked[..., question]].mean().item() for question in (0, 1)]
    return dict(zip(("sign after", "sign before"), by_question, strict=True))


# ---------------------------------------------------------------- French articles


class Articles(NamedTuple):
    rows: list[list[int]]  # word numbers
    classes: list[list[int]]  # the article that a word becomes, IGNORED elsewhere
    share: float  # of the most frequent article in French for each English one: what guessing gives


def words_of(sentence: str) -> list[str]:
    return [re.sub(r"[^\w'-]", "", word.lower()) for word in sentence.split()]


def articles(split: str, count: int, seed: int, known: dict[str, int]) -> Articles:
    """English sentences, with the French article that each "the" and "a" is linked to; new words only from training."""
    rows, classes = [], []
    seen: dict[str, list[str]] = {}  # the French articles of each English one
    for pair in grammar.pairs("en", "fr", split, count, seed):
        source, target = words_of(pair.source), words_of(pair.target)
        links = {i: target[j] for i, j in pair.sure if source[i] in ("the", "a") and target[j] in ARTICLES}
        if not links:
            continue
        if split == "train":
            for word in source:
                known.setdefault(word, len(known) + UNKNOWN + 1)
        rows.append([known.get(word, UNKNOWN) for word in source])
        classes.append([ARTICLES.index(links[i]) if i in links else IGNORED for i in range(len(source))])
        for i, article in links.items():
            seen.setdefault(source[i], []).append(article)
    likeliest = sum(max(of.count(article) for article in ARTICLES) for of in seen.values())
    return Articles(rows, classes, likeliest / sum(len(of) for of in seen.values()))


def batch(data: Articles, chosen: Sequence[int]) -> tuple[Sequences, Tensor]:
    source = Sequences.pad([data.rows[number] for number in chosen])
    width = source.ids.size(1)
    classes = [data.classes[number] + [IGNORED] * (width - len(data.rows[number])) for number in chosen]
    return source, torch.tensor(classes)


def french(bidirectional: bool, seed: int, updates: int, training: Articles, held: Articles, vocabulary: int) -> float:
    with seeded(seed):
        model = Tagger(vocabulary, len(ARTICLES), bidirectional)
    random = torch.Generator().manual_seed(seed)

    def loss(update: int) -> Tensor:
        source, classes = batch(training, torch.randint(len(training.rows), (BATCH,), generator=random).tolist())
        return F.cross_entropy(model(source.ids, source.lengths).flatten(0, 1), classes.flatten(), ignore_index=IGNORED)

    train(model, loss, updates, LEARNING_RATE)
    source, classes = batch(held, range(len(held.rows)))
    with torch.no_grad():
        found = model(source.ids, source.lengths).argmax(dim=-1)
    return (found == classes)[classes != IGNORED].float().mean().item()


# ---------------------------------------------------------------- measured, judged, drawn


def measure(seed: int, effort: float) -> Numbers:
    known: dict[str, int] = {}
    training = articles("train", max(40, round(SENTENCES * effort)), seed, known)
    held = articles("test", max(20, round(TESTED * effort)), seed, known)
    accuracy = {}
    for name, both in ENCODERS.items():
        made = made_up(both, seed, max(2, round(MADE_UP_UPDATES * effort)))
        vocabulary = len(known) + UNKNOWN + 1
        article = french(both, seed, max(2, round(GRAMMAR_UPDATES * effort)), training, held, vocabulary)
        accuracy[name] = {**made, "French article": article}
    parameters = {
        name: sum(each.numel() for each in Tagger(2, 2, both).recurrent.parameters()) for name, both in ENCODERS.items()
    }
    return {"accuracy": accuracy, "guessing": {"French article": held.share}, "parameters": parameters}


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    forward, both = (
        {task: fmean(one["accuracy"][name][task] for one in numbers) for task in numbers[0]["accuracy"][name]}
        for name in ENCODERS
    )
    guessing = fmean(one["guessing"]["French article"] for one in numbers)
    sizes = numbers[0]["parameters"]
    able = forward["sign before"] > 0.95  # else it has learned nothing, and says nothing of where it cannot learn
    return [
        Verdict(
            "A forward encoder does not know what later words decide: there it can only guess.",
            able and forward["sign after"] < 0.6,
            f"{forward['sign after']:.1%} right where the sign comes after the word (guessing 50%), "
            f"{forward['sign before']:.1%} where it comes before.",
        ),
        Verdict(
            "Reading in both directions, each word's state knows both sides.",
            min(both["sign after"], both["sign before"]) > 0.95,
            f"{both['sign after']:.1%} where the sign comes after, {both['sign before']:.1%} where it comes before.",
        ),
        Verdict(
            "Sharing the width between two directions costs nothing on what earlier words decide.",
            able and both["sign before"] > forward["sign before"] - 0.02,
            f"{both['sign before']:.1%} against {forward['sign before']:.1%}, with {sizes['bidirectional']:,} and "
            f"{sizes['forward']:,} recurrent parameters.",
        ),
        Verdict(
            "In translation it matters: the French article of an English one follows from the noun after it.",
            both["French article"] > forward["French article"] + 0.1,
            f"{both['French article']:.1%} of the articles right against {forward['French article']:.1%} (the most "
            f"frequent one: {guessing:.1%}).",
        ),
    ]


TASKS = ("sign before", "sign after", "French article")
LABELS = ("decided by\na sign before", "decided by\na sign after", "French article\nof “the”, “a”")
LOOKS = {"forward": "#d9596b", "bidirectional": "#4477aa"}


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    panel = figure.subplots()
    guessing = [0.5, 0.5, fmean(one["guessing"]["French article"] for one in numbers)]
    for number, (name, colour) in enumerate(LOOKS.items()):
        places = np.arange(len(TASKS)) + 0.4 * number - 0.2
        found = np.array([[one["accuracy"][name][task] for task in TASKS] for one in numbers])
        panel.bar(places, found.mean(axis=0), width=0.38, color=colour, label=name)
        for row in found:
            panel.plot(places, row, ".", color="#8c8c8c", markersize=4)
        for place, value, least in zip(places, found.mean(axis=0), guessing, strict=True):
            panel.text(place, max(value, least) + 0.015, f"{value:.2f}", ha="center", fontsize=9)
    for place, value in enumerate(guessing):
        label = "guessing" if place == 0 else None
        panel.plot([place - 0.42, place + 0.42], [value, value], color="#8c8c8c", linestyle="--", label=label)
    panel.set_xticks(range(len(TASKS)), LABELS)
    panel.set_ylim(0, 1.12)
    panel.set_ylabel("share of words right, held-out texts")
    panel.grid(axis="y", alpha=0.25)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(fontsize=9, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=14,
    name="bidirectional",
    title="Reading forward only, or in both directions",
    source="Schuster and Paliwal 1997; Bahdanau et al. 2015, section 3.2",
    about="An LSTM that reads forward and one of the same width that reads both ways name, at each word, a meaning "
    "that a sign after or before it decides; and the French article that an English one becomes, on the embedded "
    "grammar with its gold alignments.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(8.5, 3.8),
)
