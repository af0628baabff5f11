"""One attention head or many, in the same width and with the same parameters.

    head_h = attention(x W_h^Q, x W_h^K, x W_h^V),  each d/H wide        out = [head_1; …; head_H] W^O

A head has one softmax: it looks at one place, or it averages several into one vector in which nobody can tell any more
which word stood where. So a task that needs several words at once, each in its own place, should need several heads:
here every word is to tell the four words before it, in order, after one layer of attention. Then sentences of the
embedded grammar (pronoun_sentences.py): every English word is to be labelled with its French word, after two layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batch import Sequences
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.labeller import Labeller
from jumok.lab.pronoun_sentences import Example, examples
from jumok.lab.training import seeded, train

HEADS = (1, 2, 4, 8)
WIDTH, WORDS, BEFORE, LENGTH = 64, 16, 4, 16
IN_SENTENCES = (1, 8)  # these two read the grammar's sentences as well
UNKNOWN = 1


def measure(seed: int, effort: float) -> Numbers:
    sentences = Sentences(seed, max(160, round(8000 * effort)))
    return {
        "words_before": {str(heads): words_before(heads, seed, effort) for heads in HEADS},
        "sentences": {str(heads): sentences.labelled(heads, seed, effort) for heads in IN_SENTENCES},
    }


def parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


# ---------------------------------------------------------------- four things at once


def words_before(heads: int, seed: int, effort: float) -> Numbers:
    """Random words; at every place the four words before it, nearest first."""
    with seeded(seed):
        sizes = {"width": WIDTH, "heads": heads, "layers": 1, "feed_forward": 2 * WIDTH}
        model = Labeller(WORDS + 1, BEFORE * WORDS, position="rotary", **sizes)

        def told(rows: int) -> tuple[Tensor, Tensor]:
            ids_BT = torch.randint(1, WORDS + 1, (rows, LENGTH))
            logits_BTKW = model.head(model(ids_BT)[:, BEFORE:]).unflatten(-1, (BEFORE, WORDS))
            asked = [ids_BT[:, BEFORE - back : LENGTH - back] - 1 for back in range(1, BEFORE + 1)]
            return logits_BTKW, torch.stack(asked, dim=-1)

        def loss_of(update: int) -> Tensor:
            logits_BTKW, asked_BTK = told(32)
            return F.cross_entropy(logits_BTKW.flatten(0, 2), asked_BTK.flatten())

        train(model, loss_of, max(2, round(500 * effort)), learning_rate=3e-3)
        with torch.no_grad():
            logits_BTKW, asked_BTK = told(250)
        right_BTK = logits_BTKW.argmax(dim=-1) == asked_BTK
    return {
        "by_place": right_BTK.float().mean(dim=(0, 1)).tolist(),
        "all_four": float(right_BTK.all(dim=-1).float().mean()),
        "parameters": parameters(model),
    }


# ---------------------------------------------------------------- sentences


class Sentences:
    """English sentences whose words are labelled with the French words that the grammar aligns them with: articles and
    adjectives by gender and number of their nouns, verbs by their subjects, pronouns by whom they mean."""

    def __init__(self, seed: int, count: int) -> None:
        texts = {"train": examples("train", count, seed), "test": examples("test", count // 8, seed)}
        self.words = {
            word: i for i, word in enumerate(sorted({w for e in texts["train"] for w in e.words}), UNKNOWN + 1)
        }
        self.labels = {label: i for i, label in enumerate(sorted({x for e in texts["train"] for x in e.labels}), 1)}
        self.parts = {split: self._batch(found) for split, found in texts.items()}

    def _batch(self, found: Sequence[Example]) -> tuple[Sequences, Tensor]:
        """Words and labels; a label is −1 where there is none to ask for, or one that training never showed."""
        words = Sequences.pad([[self.words.get(word, UNKNOWN) for word in one.words] for one in found])
        return words, Sequences.pad([[self.labels.get(label, 0) for label in one.labels] for one in found]).ids - 1

    def labelled(self, heads: int, seed: int, effort: float) -> Numbers:
        """Share of the words of unseen sentences that get the right label."""
        with seeded(seed):
            sizes = {"width": WIDTH, "heads": heads, "layers": 2, "feed_forward": 2 * WIDTH}
            model = Labeller(len(self.words) + 2, len(self.labels), position="sinusoidal", **sizes)
            words, labels_BT = self.parts["train"]
            mask_BT = words.mask

            def loss_of(update: int) -> Tensor:
                rows_B = torch.randint(0, len(words), (48,))
                asked = mask_BT[rows_B]
                hidden_ND = model(words.ids[rows_B], asked)[asked]
                return F.cross_entropy(model.head(hidden_ND), labels_BT[rows_B][asked], ignore_index=-1)

            train(model, loss_of, max(2, round(500 * effort)), learning_rate=3e-3)
            words, labels_BT = self.parts["test"]
            with torch.no_grad():
                right_BT = model.head(model(words.ids, words.mask)).argmax(dim=-1) == labels_BT
        return {"right": float(right_BT[labels_BT >= 0].float().mean()), "parameters": parameters(model)}


# ---------------------------------------------------------------- verdicts


def judge(seeds: Sequence[Numbers]) -> list[Verdict]:
    four = {heads: mean(numbers["words_before"][str(heads)]["all_four"] for numbers in seeds) for heads in HEADS}
    right = {heads: mean(numbers["sentences"][str(heads)]["right"] for numbers in seeds) for heads in IN_SENTENCES}
    sizes = {numbers["words_before"][str(heads)]["parameters"] for numbers in seeds for heads in HEADS}
    told = ", ".join(f"{four[heads]:.0%} with {heads}" for heads in HEADS)
    fewer = 1 - (1 - right[8]) / (1 - right[1]) if right[1] < 1 else 0.0
    return [
        Verdict(
            "What needs several words at once needs several heads: one head averages them.",
            four[1] < 0.5 < 0.9 < four[8] and len(sizes) == 1,
            f"all four words before a word are named in {told} heads, all of {min(sizes):,} parameters.",
        ),
        Verdict(
            "As many heads as there are things to look at are enough.",
            four[8] > 0.9 and four[4] > 0.95 * four[8],
            f"with four heads {four[4]:.0%} are right, with eight {four[8]:.0%}.",
        ),
        Verdict(
            "On sentences many heads are better than one too, at the same size.",
            fewer > 0.05,
            f"eight heads label {right[8]:.1%} of the words with the right French word, one head {right[1]:.1%}: "
            f"{abs(fewer):.0%} {'fewer' if fewer >= 0 else 'more'} errors.",
        ),
    ]


# ---------------------------------------------------------------- the figure

COLOURS = ("#00224e", "#575d6d", "#a59c74", "#e1cc55")  # cividis: one, two, four, eight heads


def draw(figure: Any, seeds: Sequence[Numbers]) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(2.2, 1))
    for shift, (heads, colour) in enumerate(zip(HEADS, COLOURS, strict=True)):
        found = [numbers["words_before"][str(heads)] for numbers in seeds]
        values = [mean(one["by_place"][place] for one in found) for place in range(BEFORE)]
        values.append(mean(one["all_four"] for one in found))
        places = [place + 0.2 * (shift - 1.5) for place in (0, 1, 2, 3, 4.3)]
        left.bar(places, values, 0.19, color=colour, edgecolor="#8a8f98", linewidth=0.5, label=f"{heads}")
    left.set_xticks([0, 1, 2, 3, 4.3], ["1 before", "2 before", "3 before", "4 before", "all four"])
    left.set(ylabel="words named right", ylim=(0, 1.18), yticks=(0, 0.25, 0.5, 0.75, 1))
    left.set_xlabel(f"which word is asked for (one layer, {WIDTH} wide)")
    left.legend(title="heads", ncols=4, fontsize=9, title_fontsize=9, frameon=False, loc="upper center")
    for place, heads in enumerate(IN_SENTENCES):
        values = [1 - numbers["sentences"][str(heads)]["right"] for numbers in seeds]
        bar = right.bar([place], [mean(values)], 0.6, color=COLOURS[HEADS.index(heads)], edgecolor="#8a8f98")
        right.bar_label(bar, [f"{mean(values):.1%}"], padding=3)
        right.plot([place] * len(values), values, ".", color="#d55e00", markersize=5, clip_on=False)
    right.set_xticks(range(len(IN_SENTENCES)), [f"{h} head{'s' * (h > 1)}" for h in IN_SENTENCES])
    right.set(ylabel="words with a wrong French label", xlabel="sentences (two layers; dots: seeds)")
    right.margins(y=0.18)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout(w_pad=2.5)


EXPERIMENT = Experiment(
    number=10,
    name="heads",
    title="One head against many, at the same width and with the same parameters",
    source="Vaswani et al. 2017, section 3.2.2 and table 3 (A); Michel et al. 2019 for doubts",
    about="An encoder of one layer tells at every word the four words before it, with 1, 2, 4 and 8 heads that share "
    "the same width. The same with two layers labels English words of the embedded grammar with French ones.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(10.5, 3.8),
)
