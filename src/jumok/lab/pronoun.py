""" "A dog devoured his treat, because he was hungry.": does attention find whom a pronoun means?

A small encoder labels every English word with its French one (pronoun_sentences.py); a pronoun is to be written out as
the noun it stands for (they → bananes). So it must find that noun, but nothing in training says where to look. The head
that looks best from pronouns to their antecedents is chosen on one part of the sentences and measured on another,
beside the simplest guess: the nearest noun before the pronoun. Only sentences count in which all nouns agree with it.

Then a linear probe looks for the antecedent in what each sublayer has at the pronoun: score(noun s) = (A h) · E[s]. It
reads h from the attention's output, from the value projection W^V x (the linear layer that attention averages), and
from the feed-forward output (two linear layers at each place).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import Sequences
from jumok.data.grammar.named import the_hungry_dog
from jumok.inspect.record import record
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.labeller import Labeller
from jumok.lab.pronoun_sentences import Example, example_of, examples
from jumok.lab.training import seeded, train
from jumok.layers.block import Block

SUBLAYERS = ("attention", "value projection", "feed-forward")
LAYERS, HEADS, WIDTH = 2, 4, 64
UNKNOWN = 1


def measure(seed: int, effort: float) -> Numbers:
    sizes = {"train": 8000, "valid": 1500, "test": 800}
    parts = {part: examples(part, max(60, round(size * effort)), seed) for part, size in sizes.items()}
    return {"baselines": baselines(ambiguous(parts["test"])), **learn(parts, seed, effort)}


def ambiguous(found: Sequence[Example]) -> list[Example]:
    """Sentences in which every noun agrees with the pronoun, so that only the meaning tells."""
    return [example for example in found if example.ambiguous]


def baselines(test: Sequence[Example]) -> dict[str, float]:
    """How often a simple guess is right; as weights, all of it on one noun, or the same on every word."""
    return {
        "nearest": mean(example.nearest == example.antecedent for example in test),
        "first": mean(example.nouns[0] == example.antecedent for example in test),
        "even": mean(1 / len(example.words) for example in test),
    }


def learn(parts: dict[str, list[Example]], seed: int, effort: float) -> Numbers:
    """Train; the best head on "valid", measured on "test"; the probes."""
    with seeded(seed):
        desk = Desk.of(parts["train"])
        batches = desk.read(parts["train"])
        mask_BT = batches.mask

        def loss_of(update: int) -> Tensor:
            rows_B = torch.randint(0, len(batches.ids), (48,))
            asked = mask_BT[rows_B]
            hidden_ND = desk.model(batches.ids[rows_B], asked)[asked]
            return F.cross_entropy(desk.model.head(hidden_ND), desk.train_labels[rows_B][asked], ignore_index=-1)

        train(desk.model, loss_of, max(2, round(1000 * effort)), learning_rate=3e-3)
        valid, test = (desk.looked_at(ambiguous(parts[part])) for part in ("valid", "test"))
        layer, head = divmod(int(valid.weight.flatten().argmax()), HEADS)
        dog = desk.looked_at([example_of(the_hungry_dog())])
        return {
            "right": test.right,
            "head": [layer, head],
            "weight": float(test.weight[layer, head]),
            "picked": float(test.picked[layer, head]),
            "weights": test.weight.tolist(),
            "dog": dog.weights[0, layer, head].tolist(),
            "probe": probes(valid, test, seed, effort),
        }


# ---------------------------------------------------------------- the model at its desk


@dataclass(frozen=True)
class Looked:
    """What the model did with some sentences, at their pronouns. L layers, H heads, S words."""

    right: float  # share of pronouns labelled right
    weights: Tensor  # (B, L, H, S), of the pronoun
    nouns: Tensor  # (B, S), True at the nouns that may be meant
    antecedent: Tensor  # (B,)
    vectors: dict[str, Tensor]  # by sublayer: (B, L, D)
    embedded: Tensor  # (B, S, D)

    def rows(self, chosen: slice) -> Looked:
        vectors = {name: each[chosen] for name, each in self.vectors.items()}
        weights, nouns, antecedent = self.weights[chosen], self.nouns[chosen], self.antecedent[chosen]
        return Looked(self.right, weights, nouns, antecedent, vectors, self.embedded[chosen])

    @property
    def weight(self) -> Tensor:
        """(L, H) α(pronoun → antecedent), the mean over sentences."""
        rows_B = torch.arange(len(self.antecedent))
        return self.weights[rows_B, :, :, self.antecedent].mean(dim=0)

    @property
    def picked(self) -> Tensor:
        """(L, H) how often the antecedent has the largest weight among the nouns."""
        best_BLH = self.weights.masked_fill(~self.nouns[:, None, None], -1).argmax(dim=-1)
        return (best_BLH == self.antecedent[:, None, None]).float().mean(dim=0)


@dataclass(frozen=True)
class Desk:
    model: Labeller
    words: dict[str, int]
    labels: dict[str, int]
    train_labels: Tensor

    @classmethod
    def of(cls, found: Sequence[Example]) -> Desk:
        words = {word: place for place, word in enumerate(sorted({w for e in found for w in e.words}), UNKNOWN + 1)}
        labels = {label: place for place, label in enumerate(sorted({label for e in found for label in e.labels}))}
        sizes = {"width": WIDTH, "heads": HEADS, "layers": LAYERS, "feed_forward": 2 * WIDTH}
        model = Labeller(len(words) + 2, len(labels), position="sinusoidal", **sizes)
        return cls(model, words, labels, _labels(labels, found))

    def read(self, found: Sequence[Example]) -> Sequences:
        return Sequences.pad([[self.words.get(word, UNKNOWN) for word in example.words] for example in found])

    @torch.no_grad()
    def looked_at(self, found: Sequence[Example]) -> Looked:
        batch, labels_BT = self.read(found), _labels(self.labels, found)
        rows_B = torch.arange(len(found))
        pronoun_B = torch.tensor([example.pronoun for example in found])
        with record(self.model, kinds=["self"]) as seen, watched(self.model, rows_B, pronoun_B) as vectors:
            logits_BL = self.model.head(self.model(batch.ids, batch.mask)[rows_B, pronoun_B])
        weights = [seen.weights(f"encoder.{layer}.self")[rows_B, :, pronoun_B] for layer in range(LAYERS)]
        nouns_BS = torch.zeros_like(batch.mask)
        for row, example in enumerate(found):
            nouns_BS[row, list(example.nouns)] = True
        return Looked(
            float((logits_BL.argmax(dim=-1) == labels_BT[rows_B, pronoun_B]).float().mean()),
            torch.stack(weights, dim=1),
            nouns_BS,
            torch.tensor([example.antecedent for example in found]),
            {name: torch.stack(each, dim=1) for name, each in vectors.items()},
            self.model.embedding(batch.ids),
        )


def _labels(known: dict[str, int], found: Sequence[Example]) -> Tensor:
    """(B, T), −1 where there is no word or no such label."""
    rows = []
    for example in found:
        labels = list(example.labels)
        labels[example.pronoun] = labels[example.antecedent]
        rows.append([known.get(label, -1) + 1 for label in labels])
    return Sequences.pad(rows).ids - 1


@contextmanager
def watched(model: Labeller, rows_B: Tensor, pronoun_B: Tensor) -> Iterator[dict[str, list[Tensor]]]:
    """What the sublayers of every block say at the pronouns."""
    vectors: dict[str, list[Tensor]] = {name: [] for name in SUBLAYERS}

    def keep(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
            if name == "attention":  # (B, H, T, D/H): the heads side by side, before W^O
                output = output.transpose(1, 2).flatten(2)
            vectors[name].append(output[rows_B, pronoun_B])

        return hook

    handles = []
    for block in model.encoder.blocks:
        assert isinstance(block, Block)
        sublayers = (block.attention.tap, block.attention.value, block.feed_forward)
        handles += [module.register_forward_hook(keep(name)) for name, module in zip(SUBLAYERS, sublayers, strict=True)]
    try:
        yield vectors
    finally:
        for handle in handles:
            handle.remove()


# ---------------------------------------------------------------- probes


def probes(valid: Looked, test: Looked, seed: int, effort: float) -> dict[str, list[dict[str, float]]]:
    """How often a probe of each sublayer finds the antecedent, by layer: fitted on three quarters of "valid"; the last
    quarter (`chosen_on`) is for choosing a layer, "test" (`found`) for the result."""
    steps, fitted = max(2, round(200 * effort)), 3 * len(valid.nouns) // 4
    fit, rest = valid.rows(slice(fitted)), valid.rows(slice(fitted, None))
    return {
        name: [probe(name, layer, (fit, rest, test), seed, steps) for layer in range(LAYERS)] for name in valid.vectors
    }


def probe(name: str, layer: int, parts: tuple[Looked, Looked, Looked], seed: int, steps: int) -> dict[str, float]:
    """score(s) = (A h + b) · E[s] over the sentence's nouns; A and b are learned."""
    fit, rest, test = parts
    with seeded(seed):
        h_BD = fit.vectors[name][:, layer]
        mean_D, spread_D = h_BD.mean(dim=0), h_BD.std(dim=0) + 1e-6  # sublayers differ in size: not the question
        matrix = nn.Linear(WIDTH, WIDTH)
        optimizer = torch.optim.AdamW(matrix.parameters(), lr=3e-3, weight_decay=0.1)

        def scores(looked: Looked) -> Tensor:
            asked_BD1 = matrix((looked.vectors[name][:, layer] - mean_D) / spread_D)[:, :, None]
            return (looked.embedded @ asked_BD1)[..., 0].div(WIDTH**0.5).masked_fill(~looked.nouns, float("-inf"))

        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(scores(fit), fit.antecedent).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            right = [float((scores(each).argmax(dim=-1) == each.antecedent).float().mean()) for each in (rest, test)]
    return {"chosen_on": right[0], "found": right[1]}


# ---------------------------------------------------------------- verdicts


MARGIN = 0.02  # what a probe must be better by, to be called better


def judge(seeds: Sequence[Numbers]) -> list[Verdict]:
    base = {name: mean(numbers["baselines"][name] for numbers in seeds) for name in ("nearest", "first", "even")}
    weight, picked, right = (mean(numbers[name] for numbers in seeds) for name in ("weight", "picked", "right"))

    def best(sublayer: str) -> float:
        layers = list(zip(*(numbers["probe"][sublayer] for numbers in seeds), strict=True))
        chosen = max(layers, key=lambda layer: mean(one["chosen_on"] for one in layer))
        return mean(one["found"] for one in chosen)

    def by_layer(sublayer: str) -> str:
        layers = zip(*(numbers["probe"][sublayer] for numbers in seeds), strict=True)
        return ", ".join(f"{mean(one['found'] for one in layer):.0%}" for layer in layers)

    def better(other: str, claim: str) -> Verdict:
        attention, rest = best("attention"), best(other)
        told = f"a probe finds it in {attention:.1%} of the sentences from attention, in {rest:.1%} from the {other}"
        layers = f"{by_layer('attention')} against {by_layer(other)}"
        return Verdict(
            claim, attention > rest + MARGIN, f"{told}, each in its best layer (from the first on: {layers})."
        )

    return [
        Verdict(
            "A head learns to look from a pronoun to its antecedent.",
            weight > base["nearest"] and picked > base["nearest"],
            f"the best head puts {weight:.0%} of its weight on the antecedent and prefers it among the nouns in "
            f"{picked:.0%} of the sentences; the nearest noun is right in {base['nearest']:.0%} (the first in "
            f"{base['first']:.0%}; even weights give {base['even']:.0%}). The model writes {right:.0%} of the pronouns "
            "out right.",
        ),
        better(
            "value projection",
            "The antecedent is found from attention outputs better than from the linear layer that attention averages.",
        ),
        better("feed-forward", "And better than from the linear layers behind it, the feed-forward network's."),
    ]


# ---------------------------------------------------------------- the figure

COLOURS = {"attention": "#0072b2", "value projection": "#e69f00", "feed-forward": "#d55e00"}
GREY = "#8a8f98"


def draw(figure: Any, seeds: Sequence[Numbers]) -> None:
    dog, heads, probed = figure.subplots(1, 3, width_ratios=(1.1, 0.8, 1.1))
    _draw_dog(dog, seeds)
    nearest, first = (mean(numbers["baselines"][name] for numbers in seeds) for name in ("nearest", "first"))
    values = [mean(numbers[name] for numbers in seeds) for name in ("weight", "picked")]
    bars = heads.bar([0, 1], values, 0.6, color=[COLOURS["attention"], "#56b4e9"])
    heads.bar_label(bars, [f"{value:.0%}" for value in values], fontsize=9)
    heads.set_xticks([0, 1], ["weight on\nthe antecedent", "antecedent is the\npreferred noun"], fontsize=9)
    heads.set(ylabel="best head, from the pronoun", ylim=(0, 1))
    for shift, name in enumerate(SUBLAYERS):
        found = [mean(numbers["probe"][name][layer]["found"] for numbers in seeds) for layer in range(LAYERS)]
        places = [layer + 0.28 * (shift - 1) for layer in range(LAYERS)]
        bars = probed.bar(places, found, 0.26, color=COLOURS[name], label=name)
        probed.bar_label(bars, [f"{value:.0%}" for value in found], fontsize=8)
    probed.set_xticks(range(LAYERS), [f"layer {layer}" for layer in range(LAYERS)])
    probed.set(ylabel="antecedent found by a probe", ylim=(0, 1.2), yticks=(0, 0.25, 0.5, 0.75, 1))
    probed.legend(fontsize=8, frameon=False, loc="upper center", ncols=3, columnspacing=0.9, handlelength=1.2)
    for axes in (heads, probed):
        axes.axhline(nearest, color=GREY, linestyle=(0, (4, 2)), label="nearest noun")
        axes.axhline(first, color=GREY, linestyle=(0, (1, 1)), label="first noun")
    heads.legend(fontsize=8, frameon=False, loc="upper left")
    for axes in (dog, heads, probed):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout(w_pad=2)


def _draw_dog(axes: Any, seeds: Sequence[Numbers]) -> None:
    example = example_of(the_hungry_dog())
    weights = [mean(values) for values in zip(*(numbers["dog"] for numbers in seeds), strict=True)]
    places = range(len(weights))
    axes.barh(
        places, weights, color=[COLOURS["attention"] if place == example.antecedent else GREY for place in places]
    )
    names = [f"{word} (query)" if place == example.pronoun else word for place, word in enumerate(example.words)]
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set(xlabel=f"weight from “{example.words[example.pronoun]}”, best head", xlim=(0, 1))


EXPERIMENT = Experiment(
    number=15,
    name="pronoun",
    title="“A dog devoured his treat, because he was hungry.”: does attention find whom a pronoun means?",
    source="Vaswani et al. 2017, figure 5 (anaphora resolution); Clark et al. 2019, section 4.2",
    about="A small encoder labels English words with French ones; pronouns must be written out as the nouns they stand "
    "for. Its best head is chosen on some sentences and measured on others, beside the nearest noun. A linear "
    "probe looks for the antecedent in the outputs of attention and of linear layers.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(12.0, 3.8),
)
