"""Without positions a Transformer cannot see word order; which positions go on beyond the lengths of training?

Attention sums over a set. So an encoder without positions gives every word the same vector wherever it stands: with P
a permutation of the words, f(P x) = P f(x). That is checked as a number, and by a task in which order is everything:
name the word before each word. The same task, learned from texts of 24 words, is then read at up to 64.

One-hot positions times a matrix are the rows of that matrix: they are the learned positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.labeller import Labeller
from jumok.lab.training import seeded, train
from jumok.layers.position import Sinusoidal

KINDS = ("none", "learned", "sinusoidal", "rotary", "relative")
UPDATES = 950  # as many for all as learned positions need, which take the longest
WORDS = 16
TRAINED, LONGEST = 24, 64  # words of a text in training, and of the longest that is read afterwards
LENGTHS = (8, 16, 24, 32, 40, 48, 56, 64)
LONG = 48  # where lengths are judged: twice the training's
WIDTH = 64


def measure(seed: int, effort: float) -> Numbers:
    return {
        "moved": {kind: difference_when_moved(kind, seed) for kind in KINDS},
        "accuracy": {kind: accuracy_by_length(kind, seed, effort) for kind in KINDS},
        "properties": {name: properties(scheme) for name, scheme in SCHEMES.items()},
        "spread": spread_of_distances(),
    }


# ---------------------------------------------------------------- is order seen at all?


def labeller(kind: str) -> Labeller:
    sizes = {"width": WIDTH, "heads": 4, "layers": 1, "feed_forward": 128}
    return Labeller(WORDS + 1, WORDS + 1, position=kind, max_positions=LONGEST, **sizes)


def difference_when_moved(kind: str, seed: int) -> float:
    """max |f(P x) − P f(x)| of a fresh encoder, relative to max |f(x)|: 0 says that order changes nothing."""
    with seeded(seed), torch.no_grad():
        model = labeller(kind)
        if model.encoder.relative is not None:
            torch.nn.init.normal_(model.encoder.relative.weight.weight)  # it begins at 0, where it says nothing yet
        ids_BT = torch.randint(1, WORDS + 1, (8, TRAINED))
        order_T = torch.randperm(TRAINED)
        hidden_BTD = model(ids_BT)
        difference_BTD = model(ids_BT[:, order_T]) - hidden_BTD[:, order_T]
    return float(difference_BTD.abs().max() / hidden_BTD.abs().max())


def accuracy_by_length(kind: str, seed: int, effort: float) -> dict[str, Any]:
    """Learn "which word stands before this one?" at one length, then read shorter and longer texts."""
    with seeded(seed):
        model = labeller(kind)

        def loss_of(update: int) -> Tensor:
            ids_BT = torch.randint(1, WORDS + 1, (32, TRAINED))
            return F.cross_entropy(model.head(model(ids_BT)[:, 1:]).flatten(0, 1), ids_BT[:, :-1].flatten())

        train(model, loss_of, max(2, round(UPDATES * effort)), learning_rate=3e-3)
        right: dict[int, Tensor] = {}
        for length in LENGTHS:
            with torch.no_grad():
                ids_BT = torch.randint(1, WORDS + 1, (100, length))
                right[length] = (model.head(model(ids_BT)[:, 1:]).argmax(dim=-1) == ids_BT[:, :-1]).float()
    return {
        "by_length": [float(right[length].mean()) for length in LENGTHS],
        "trained": float(right[TRAINED].mean()),
        "beyond": float(right[LONG][:, TRAINED - 1 :].mean()),  # words that stand where no training word stood
    }


# ---------------------------------------------------------------- the three properties, as numbers

Scheme = Callable[[int], Tensor]  # vectors (N, D) for the positions of a text of N words
SCHEMES: dict[str, Scheme] = {
    "the number t": lambda length: torch.arange(length, dtype=torch.float64)[:, None],
    "the share t/(N−1)": lambda length: torch.linspace(0, 1, length, dtype=torch.float64)[:, None],
    "one-hot": lambda length: torch.eye(length, dtype=torch.float64),
    "sinusoidal": lambda length: Sinusoidal(WIDTH).formula(torch.arange(length, dtype=torch.float64)),
}
SHORT_TEXT, LONG_TEXT = 32, 512


def properties(scheme: Scheme) -> dict[str, Any]:
    """unique: the smallest distance between two positions.  any length: by what factor the width or the largest number
    grows when a text is 16 times as long.  distance: between neighbours, for texts of several lengths."""
    short, long = scheme(SHORT_TEXT), scheme(LONG_TEXT)
    apart = torch.cdist(long, long).fill_diagonal_(torch.inf)
    growth = max(long.size(1) / short.size(1), float(long.abs().max() / short.abs().max()))
    steps = [float((vectors := scheme(length))[1].sub(vectors[0]).norm()) for length in (8, 16, 32, 64, 128, 256, 512)]
    return {"unique": float(apart.min()), "growth": growth, "steps": steps}


def spread_of_distances() -> float:
    """How far ‖PE(t + k) − PE(t)‖ of sinusoidal positions depends on t: (largest − smallest) / mean, the worst k."""
    vectors = SCHEMES["sinusoidal"](LONG_TEXT)
    worst = 0.0
    for offset in (1, 4, 16, 64):
        distance = (vectors[offset:] - vectors[:-offset]).norm(dim=1)
        worst = max(worst, float((distance.max() - distance.min()) / distance.mean()))
    return worst


# ---------------------------------------------------------------- verdicts


def judge(seeds: Sequence[Numbers]) -> list[Verdict]:
    def accuracy(kind: str, where: str) -> float:
        return mean(numbers["accuracy"][kind][where] for numbers in seeds)

    others = [kind for kind in KINDS if kind != "none"]
    unmoved = max(numbers["moved"]["none"] for numbers in seeds)
    moved = min(numbers["moved"][kind] for numbers in seeds for kind in others)
    known, beyond = ({kind: accuracy(kind, where) for kind in KINDS} for where in ("trained", "beyond"))
    table = seeds[0]["properties"]
    sinusoidal, share, one_hot = table["sinusoidal"], table["the share t/(N−1)"], table["one-hot"]

    def learned(kind: str) -> bool:
        return known[kind] > 0.9

    def goes_on(kind: str) -> bool:
        return learned(kind) and beyond[kind] >= 0.9 * known[kind]

    def told(kind: str) -> str:
        return f"{kind} {known[kind]:.0%} → {beyond[kind]:.0%}"

    places = f"accuracy on texts of {TRAINED} words → on words {TRAINED + 1} to {LONG} of longer ones: "
    return [
        Verdict(
            "Without positions word order is invisible: the encoder gives each word the same vector in any order.",
            unmoved < 1e-5 and moved > 1e-2,
            f"moving the words changes the vectors by {unmoved:.0e} of their size without positions, by at least "
            f"{moved:.0e} with any.",
        ),
        Verdict(
            "So a task in which order decides cannot be learned without positions, and can with them.",
            known["none"] < 0.3 and all(map(learned, others)),
            f"the word before each word is named right {known['none']:.0%} of the time without positions "
            f"({1 / WORDS:.0%} by chance), with them "
            + ", ".join(f"{known[kind]:.0%} ({kind})" for kind in others)
            + ".",
        ),
        Verdict(
            "Learned (one-hot) positions end where training ended.",
            learned("learned") and not goes_on("learned"),
            places + told("learned") + ".",
        ),
        Verdict(
            "Sinusoidal positions let a model read texts longer than those of training.",
            goes_on("sinusoidal"),
            places + told("sinusoidal") + f" (learned: {beyond['learned']:.0%}).",
        ),
        Verdict(
            "Rotary positions, which only tell distances, go on beyond the lengths of training.",
            goes_on("rotary"),
            places + told("rotary") + ".",
        ),
        Verdict(
            "So does a relative bias.",
            goes_on("relative"),
            places + told("relative") + ".",
        ),
        Verdict(
            "Sinusoidal positions are unique.",
            sinusoidal["unique"] > 0.1,
            f"among {LONG_TEXT} positions the nearest two are {sinusoidal['unique']:.2f} apart.",
        ),
        Verdict(
            "Sinusoidal positions exist for any length, in the same width and range.",
            sinusoidal["growth"] < 1.01 < one_hot["growth"],
            f"a text 16 times as long needs {sinusoidal['growth']:.2f} times the width or range; one-hot positions "
            f"need {one_hot['growth']:.0f} times the width, plain numbers {table['the number t']['growth']:.0f} times "
            "the range.",
        ),
        Verdict(
            "Their distances do not depend on the text's length, nor on the place in it.",
            _ratio(sinusoidal["steps"]) < 1 + 1e-9 and seeds[0]["spread"] < 1e-6,
            f"neighbours are as far apart in 8 words as in 512 (ratio {_ratio(sinusoidal['steps']):.3f}; with t/(N−1) "
            f"{_ratio(share['steps']):.0f}), and ‖PE(t+k) − PE(t)‖ varies over t by {seeds[0]['spread']:.0e}.",
        ),
    ]


def _ratio(steps: Sequence[float]) -> float:
    return max(steps) / min(steps)


# ---------------------------------------------------------------- the figure

COLOURS = {"none": "#8a8f98", "learned": "#d55e00", "sinusoidal": "#0072b2", "rotary": "#009e73", "relative": "#cc79a7"}
MARKERS = {"none": "x", "learned": "s", "sinusoidal": "o", "rotary": "^", "relative": "D"}
SCHEME_COLOURS = {"the number t": "#8a8f98", "the share t/(N−1)": "#e69f00", "one-hot": "#d55e00"}


def draw(figure: Any, seeds: Sequence[Numbers]) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    left.axvspan(TRAINED, LONGEST + 2, color="#8a8f98", alpha=0.12, linewidth=0)
    left.text(TRAINED + 1, 1.03, "longer than in training →", fontsize=9, va="bottom")
    for kind in KINDS:
        rows = [numbers["accuracy"][kind]["by_length"] for numbers in seeds]
        means = [mean(values) for values in zip(*rows, strict=True)]
        left.plot(LENGTHS, means, color=COLOURS[kind], marker=MARKERS[kind], markersize=5, label=kind)
    left.axhline(1 / WORDS, color="#8a8f98", linestyle=(0, (2, 2)), linewidth=1)
    left.text(LONGEST + 1, 1 / WORDS + 0.01, "by chance", fontsize=8, ha="right", va="bottom")
    left.set(
        xlabel="words of the text", ylabel="the word before it, named right", xlim=(6, LONGEST + 2), ylim=(0, 1.02)
    )
    left.legend(
        title="positions", fontsize=9, title_fontsize=9, frameon=False, loc="center left", bbox_to_anchor=(0.0, 0.6)
    )
    lengths = (8, 16, 32, 64, 128, 256, 512)
    for name in SCHEMES:
        steps = seeds[0]["properties"][name]["steps"]
        dashes = (0, (4, 2)) if name == "one-hot" else "solid"
        right.plot(lengths, steps, color=SCHEME_COLOURS.get(name, COLOURS["sinusoidal"]), linestyle=dashes, label=name)
    right.set(xscale="log", yscale="log", xlabel="words of the text, N", ylabel="distance of neighbouring positions")
    right.set_xticks(lengths, [str(length) for length in lengths])
    right.minorticks_off()
    right.legend(title="position as", fontsize=9, title_fontsize=9, frameon=False, loc="lower left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout(w_pad=2.5)


EXPERIMENT = Experiment(
    number=8,
    name="position",
    title="Word order, and lengths beyond training: none, learned, sinusoidal, rotary and relative positions",
    source="Vaswani et al. 2017, 3.5; Gehring et al. 2017; Su et al. 2021; Raffel et al. 2020; Press et al. 2022",
    about="An encoder of one layer names the word before each word of random texts; it is trained on texts of 24 words "
    "and read at 8 to 64. Before training, its words are put in another order and the vectors are compared. Three "
    "properties of position vectors are computed from their formulas.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(10.5, 4.2),
)
