"""Why the decoder needs its mask: without it the loss leaks.

A language model is trained on all positions at once: position t is to name word t + 1. That word stands in the input,
one place further; only the mask hides it ("we need to prevent leftward information flow in the decoder to preserve the
auto-regressive property"). Left out, attention copies the answer and the loss looks wonderful. When the model then has
to write, the next word is not there to be copied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data import grammar
from jumok.data.batch import UNKNOWN
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded, train
from jumok.models.language import TransformerLanguageModel
from jumok.recipe import TransformerLanguageSection

WINDOW, UPDATES = 24, 400
MASKS = {"with the mask": True, "without": False}
PROMPT, WRITTEN = 3, 12  # words given, and words to be written after them
FIRST_WORD = UNKNOWN + 1


def measure(seed: int, effort: float) -> Numbers:
    text, unseen = (
        _words(split, max(60, round(count * effort)), seed) for split, count in (("train", 6000), ("test", 600))
    )
    ids = {word: FIRST_WORD + number for number, word in enumerate(dict.fromkeys(text))}
    known = _triples(text) | _triples(_words("train", max(60, round(20_000 * effort)), seed + 1000))
    stream, held_out = (torch.tensor([ids.get(word, UNKNOWN) for word in words]) for words in (text, unseen))
    vocabulary = ["<?>"] * FIRST_WORD + list(ids)
    updates = max(2, round(UPDATES * effort))
    numbers: Numbers = {
        "updates": updates,
        "unigram loss": _unigram_loss(stream, held_out, len(vocabulary)),
        "real text": {"triples known": _share(unseen, known)},
    }
    for name, causal in MASKS.items():
        with seeded(seed):
            model, losses = _trained(stream, len(vocabulary), causal, updates)
            windows = _windows(held_out, 200)
            copied, past_only = _losses(model, windows)
            texts = [[vocabulary[id] for id in row] for row in _write(model, windows[:100, :PROMPT])]
        numbers[name] = {
            "training losses": [round(loss, 4) for loss in losses[:: _apart(updates)]],
            "loss where the next word is in the input": copied,
            "loss with only the past to see": past_only,
            "triples known": fmean(_share(words[PROMPT - 2 :], known) for words in texts),
            "written": [" ".join(words) for words in texts[:3]],
        }
    return numbers


def _words(split: str, sentences: int, seed: int) -> list[str]:
    """Sentences of the embedded grammar, one after the other, in words and marks."""
    pairs = islice(grammar.pairs("en", "fr", split, sentences, seed), sentences)
    return [word for pair in pairs for word in re.findall(r"[\w']+|[^\w\s]", pair.source.lower())]


def _windows(stream: Tensor, rows: int) -> Tensor:
    """(B, WINDOW + 1) places of the text, drawn at random."""
    starts = torch.randint(0, len(stream) - WINDOW, (rows, 1))
    return stream[starts + torch.arange(WINDOW + 1)]


def _trained(
    stream: Tensor, vocabulary: int, causal: bool, updates: int
) -> tuple[TransformerLanguageModel, list[float]]:
    section = TransformerLanguageSection(width=64, heads=4, layers=2, feed_forward=128, dropout=0.0)
    model = TransformerLanguageModel(section, vocabulary)
    model.stack.causal = causal  # the whole difference

    def loss_of(update: int) -> Tensor:
        windows = _windows(stream, 32)
        return F.cross_entropy(model.head(model(windows[:, :-1])).flatten(0, 1), windows[:, 1:].flatten())

    return model, train(model, loss_of, updates, learning_rate=0.005)


def _apart(updates: int) -> int:
    """Every how many updates a loss is kept: some 50 in all."""
    return max(1, updates // 50)


@torch.no_grad()
def _losses(model: TransformerLanguageModel, windows: Tensor) -> tuple[float, float]:
    """The loss as training sees it, at all places but the last, whose next word is outside; and that after beginnings
    of several lengths, read on their own: what writing needs."""
    x_BT, y_BT = windows[:, :-1], windows[:, 1:]
    inside = F.cross_entropy(model.head(model(x_BT)[:, :-1]).flatten(0, 1), y_BT[:, :-1].flatten())
    ends = [
        F.cross_entropy(model.head(model(x_BT[:, :end])[:, -1]), y_BT[:, end - 1]) for end in range(4, WINDOW + 1, 4)
    ]
    return float(inside), float(torch.stack(ends).mean())


@torch.no_grad()
def _write(model: TransformerLanguageModel, ids_BT: Tensor) -> list[list[int]]:
    """Sampled word after word; all that was written is read anew for each."""
    for _ in range(WRITTEN):
        last_BV = model.head(model(ids_BT)[:, -1]).float()
        ids_BT = torch.cat([ids_BT, torch.multinomial(last_BV.softmax(dim=-1), 1)], dim=1)
    rows: list[list[int]] = ids_BT.tolist()
    return rows


def _triples(words: Sequence[str]) -> set[tuple[str, ...]]:
    return set(zip(words, words[1:], words[2:], strict=False))


def _share(words: Sequence[str], known: set[tuple[str, ...]]) -> float:
    """Of all three words in a row, how many the corpus has too."""
    return fmean(triple in known for triple in zip(words, words[1:], words[2:], strict=False))


def _unigram_loss(stream: Tensor, held_out: Tensor, vocabulary: int) -> float:
    """What one has who knows how frequent each word is, and nothing else."""
    counts = torch.bincount(stream, minlength=vocabulary).float() + 0.1
    return float(-(counts / counts.sum()).log()[held_out].mean())


# ---------------------------------------------------------------- the verdicts

INSIDE, PAST = "loss where the next word is in the input", "loss with only the past to see"


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    def mean(mask: str, what: str) -> float:
        return fmean(each[mask][what] for each in numbers)

    masked, unmasked = MASKS
    unigram = fmean(each["unigram loss"] for each in numbers)
    known = {name: mean(name, "triples known") for name in ("real text", *MASKS)}
    example = numbers[0]
    return [
        Verdict(
            "Without the causal mask the training loss leaks: it falls towards 0.",
            mean(unmasked, INSIDE) < 0.1 * mean(masked, INSIDE),
            f"Wherever the next word is in the input the loss on unseen text is {mean(unmasked, INSIDE):.3f} nats "
            f"without the mask, {mean(masked, INSIDE):.2f} with it.",
        ),
        Verdict(
            "What leaked is not knowledge: with only the past to see, the model without mask predicts worse.",
            mean(unmasked, PAST) > mean(masked, PAST) + 0.5,
            f"Its loss is then {mean(unmasked, PAST):.2f}, with the mask {mean(masked, PAST):.2f}; the frequencies of "
            f"the words alone give {unigram:.2f}.",
        ),
        Verdict(
            "So it cannot write.",
            known[unmasked] < 0.5 * known[masked],
            f"Of three words in a row that it writes, the corpus knows {known[unmasked]:.0%}; with the mask "
            f"{known[masked]:.0%}, in real unseen text {known['real text']:.0%}. "
            f"Without: “{example[unmasked]['written'][0]}”. With: “{example[masked]['written'][0]}”.",
        ),
    ]


# ---------------------------------------------------------------- the figure


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    figure.set_layout_engine("constrained")
    curves, bars, written = figure.subplots(1, 3, width_ratios=[1.5, 1.2, 1])
    looks = {"with the mask": ("#3a78c9", "-", ""), "without": ("#b3560a", "--", "///")}
    for mask, (colour, line, _) in looks.items():
        for each in numbers:
            losses = each[mask]["training losses"]
            places = [_apart(each["updates"]) * place for place in range(len(losses))]
            curves.plot(
                places, losses, color=colour, linestyle=line, linewidth=1.3, label=mask if each is numbers[0] else None
            )
    curves.set_xlabel("update")
    curves.set_ylabel("training loss (nats a word)")
    curves.set_ylim(bottom=0)
    for shift, (mask, (colour, _, hatch)) in zip((-0.2, 0.2), looks.items(), strict=True):
        heights = [fmean(each[mask][what] for each in numbers) for what in (INSIDE, PAST)]
        drawn = bars.bar([shift, 1 + shift], heights, 0.38, color=colour, hatch=hatch, label=mask)
        bars.bar_label(drawn, [f"{height:.2f}" for height in heights], fontsize=8)
    unigram = fmean(each["unigram loss"] for each in numbers)
    bars.axhline(unigram, color="gray", linestyle=":", label="word frequencies")
    bars.set_xticks([0, 1], ["next word\nin the input", "only the past\nto see"])
    bars.set_ylabel("loss on unseen text")
    bars.set_ylim(0, 1.5 * max(unigram, *(each[mask][PAST] for mask in MASKS for each in numbers)))
    names = {"real text": "real", "with the mask": "mask", "without": "no mask"}
    heights = [fmean(each[name]["triples known"] for each in numbers) for name in names]
    drawn = written.bar(list(names.values()), heights, color=["gray", "#3a78c9", "#b3560a"], hatch=["", "", "///"])
    written.bar_label(drawn, [f"{height:.0%}" for height in heights], fontsize=8)
    written.set_ylabel("word triples that the corpus knows")
    written.set_ylim(0, 1)
    for axes in (curves, bars):
        axes.legend(fontsize=8, framealpha=0, loc="upper right")


EXPERIMENT = Experiment(
    number=7,
    name="causal-mask",
    title="Without the causal mask the loss leaks",
    source="Vaswani et al. 2017, sections 3.1 and 3.2.3",
    about=(
        "A small Transformer language model learns sentences of the embedded grammar, with and without the mask; "
        "nothing else differs. Measured are the loss while the next word stands in the input, as in training, the loss "
        f"when only the past is there, and what the model writes after {PROMPT} words."
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    size=(11.0, 3.6),
)
