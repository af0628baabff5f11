"""What study notes often get wrong about attention, each built as the note has it and measured beside the paper's way.

1. "The scores are divided by d_k."                     softmax(q · k / d_k) v        the paper: / √d_k
2. "The weights are scaled after the softmax."          softmax(q · k) / √d_k · v     the paper: before it
3. "Each step has a W^Q of its own."                    q_t = W^Q_t x_t               the paper: one W^Q for all steps
4. "Positions are added to what the heads give out."    heads(x) + PE                 the paper: heads(x + PE)

A note is wrong about the paper in any case. The question here is what would happen if one built it that way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.inspect.record import record
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.labeller import Labeller
from jumok.lab.recall import LEARNED, PAIRS, Pairs, Recall, count, draw_pairs, updates_to_learn
from jumok.lab.training import seeded, train
from jumok.layers.block import Block
from jumok.layers.position import Sinusoidal

WIDTHS, WIDTH, UPDATES = (64, 256), 64, 200
KNOWN_STEPS = 12  # of the 16 that are asked for: those of training
WORDS, LENGTH, LABELLED = 16, 12, 300  # naming the word before: of how many words, texts how long, updates
RATE = 0.005
PAPER, BY_WIDTH, AFTER = "by √d_k", "by d_k", "by √d_k, after the softmax"


def measure(seed: int, effort: float) -> Numbers:
    updates = max(2, round(UPDATES * effort))
    return {
        "updates": updates,
        "scaled": {
            name: {
                "updates to learn": [updates_to_learn(partial(make, width), seed, updates) for width in WIDTHS],
                **_start(partial(make, WIDTHS[-1]), seed),
            }
            for name, make in SCALINGS.items()
        },
        "steps": {name: _steps(make, seed, updates) for name, make in STEPS.items()},
        "positions": {
            name: [_names_the_word_before(layers, late, seed, effort) for layers in (1, 2)]
            for name, late in (("before the heads", False), ("after the heads", True))
        },
    }


# ---------------------------------------------------------------- 1 and 2: the scale


def scaled_after(width: int) -> Recall:
    """softmax(q · k) / √d_k · v: altered at the tap, through which all attention goes."""
    model = Recall(width, scale=1.0)
    model.attention.tap.register_forward_hook(lambda tap, inputs, output: output / width**0.5)
    return model


SCALINGS: dict[str, Callable[[int], Recall]] = {
    PAPER: Recall,
    BY_WIDTH: lambda width: Recall(width, scale=1 / width),
    AFTER: scaled_after,
}


@torch.no_grad()
def _start(make: Callable[[], Recall], seed: int) -> Numbers:
    """The weights before training: how even they are (1: all alike), and what they sum to as the values get them."""
    with seeded(seed):
        model = make()
        pairs = draw_pairs(torch.Generator().manual_seed(seed), rows=200)
        with record(model) as seen:
            model(pairs)
        weights = seen.records[0].weights
        ones = torch.ones(1, 1, PAIRS, weights.size(-1))  # as values: then the output is the sum of the weights
        query, key = torch.zeros(1, 1, PAIRS, 1), torch.zeros(1, 1, PAIRS, 1)
        total = model.attention.tap(query, key, ones, None, model.attention.scorer)
    entropy = torch.special.entr(weights).sum(dim=-1).mean()
    return {"entropy at the start": float(entropy) / math.log(PAIRS), "sum of the weights": float(total.mean())}


# ---------------------------------------------------------------- 3: a W^Q for each step


class QueryOfItsOwn(nn.Module):
    """q_t = W^Q_t x_t"""

    def __init__(self, width: int, steps: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(
            torch.stack([nn.init.xavier_uniform_(torch.empty(width, width)) for _ in range(steps)])
        )

    def forward(self, x_BTD: Tensor) -> Tensor:
        return torch.einsum("btd,tdk->btk", x_BTD, self.weight[: x_BTD.size(1)])


def one_a_step() -> Recall:
    model = Recall(WIDTH)
    model.attention.query = QueryOfItsOwn(WIDTH, PAIRS)  # type: ignore[assignment]
    return model


STEPS: dict[str, Callable[[], Recall]] = {"one W^Q": partial(Recall, WIDTH), "a W^Q for each step": one_a_step}


def _steps(make: Callable[[], Recall], seed: int, updates: int) -> Numbers:
    """Trained on the first steps; then asked at those and at the steps after them."""
    with seeded(seed):
        model = make()
        generator = torch.Generator().manual_seed(seed)

        def loss_of(update: int) -> Tensor:
            names, values, asked, answers = draw_pairs(generator)
            pairs = Pairs(names, values, asked[:, :KNOWN_STEPS], answers[:, :KNOWN_STEPS])
            return F.cross_entropy(model(pairs).flatten(0, 1), pairs.answers.flatten())

        losses = train(model, loss_of, updates, RATE)
        pairs = draw_pairs(generator, rows=500)
        with torch.no_grad():
            right_T = (model(pairs).argmax(dim=-1) == pairs.answers).float().mean(dim=0)
    return {
        "updates to learn": next((update for update, loss in enumerate(losses) if loss < LEARNED), updates),
        "parameters of W^Q": sum(each.numel() for each in model.attention.query.parameters()),
        "accuracy at steps of training": float(right_T[:KNOWN_STEPS].mean()),
        "accuracy at later steps": float(right_T[KNOWN_STEPS:].mean()),
    }


# ---------------------------------------------------------------- 4: positions after the heads


def _names_the_word_before(layers: int, late: bool, seed: int, effort: float) -> float:
    """The accuracy of naming the word before each word, in texts of random words."""
    with seeded(seed):
        model = Labeller(
            WORDS + 1,
            WORDS + 1,
            width=WIDTH,
            heads=4,
            layers=layers,
            feed_forward=128,
            position="none" if late else "sinusoidal",
        )
        positions_TD = Sinusoidal(WIDTH)(torch.arange(LENGTH))
        for block in model.encoder.blocks if late else ():
            assert isinstance(block, Block)
            block.attention.register_forward_hook(lambda attention, inputs, output: output + positions_TD)

        def logits_and_labels(rows: int) -> tuple[Tensor, Tensor]:
            ids_BT = torch.randint(1, WORDS + 1, (rows, LENGTH))
            return model.head(model(ids_BT)[:, 1:]), ids_BT[:, :-1]

        def loss_of(update: int) -> Tensor:
            logits, labels = logits_and_labels(32)
            return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

        train(model, loss_of, max(2, round(LABELLED * effort)), RATE)
        with torch.no_grad():
            logits, labels = logits_and_labels(500)
    return float((logits.argmax(dim=-1) == labels).float().mean())


# ---------------------------------------------------------------- the verdicts


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    """Learning counts as slower from one and a half times the updates on."""

    def scaled(name: str, what: str) -> float:
        return fmean(each["scaled"][name][what] for each in numbers)

    def updates(name: str, width: int) -> float:
        return fmean(each["scaled"][name]["updates to learn"][WIDTHS.index(width)] for each in numbers)

    def steps(name: str, what: str) -> float:
        return fmean(each["steps"][name][what] for each in numbers)

    def before(name: str, layers: int) -> float:
        return fmean(each["positions"][name][layers - 1] for each in numbers)

    narrow, wide = WIDTHS
    entropy = {name: scaled(name, "entropy at the start") for name in SCALINGS}
    one, own = STEPS
    known, later = "accuracy at steps of training", "accuracy at later steps"
    slower = steps(own, "updates to learn") / max(1.0, steps(one, "updates to learn"))
    most = numbers[0]["updates"]
    return [
        Verdict(
            "Dividing by d_k instead of √d_k, attention learns worse.",
            updates(BY_WIDTH, wide) > 1.5 * updates(PAPER, wide),
            f"It starts flat (at width {wide} the entropy is {entropy[BY_WIDTH]:.1%} of that of equal weights, "
            f"{entropy[PAPER]:.0%} with √d_k), and needs {updates(BY_WIDTH, wide):.0f} updates instead of "
            f"{updates(PAPER, wide):.0f}, at width {narrow} {updates(BY_WIDTH, narrow):.0f} instead of "
            f"{updates(PAPER, narrow):.0f}, each with its best learning rate.",
        ),
        Verdict(
            "Scaling after the softmax is no scaling: the softmax is saturated already, and it learns worse.",
            updates(AFTER, wide) > 1.5 * updates(PAPER, wide) and entropy[AFTER] < 0.5 * entropy[PAPER],
            f"At width {wide} the entropy at the start is {entropy[AFTER]:.0%} of that of equal weights (scaled "
            f"before: {entropy[PAPER]:.0%}), the weights sum to {scaled(AFTER, 'sum of the weights'):.3f} instead of "
            f"1, and it needs {count(updates(AFTER, wide), most)} updates instead of {updates(PAPER, wide):.0f}.",
        ),
        Verdict(
            "With a W^Q of its own for each step attention learns slower, and fails at steps training did not have.",
            slower > 1.5 and steps(own, later) < 0.5 < steps(one, later),
            f"It needs {count(steps(own, 'updates to learn'), most)} updates instead of "
            f"{steps(one, 'updates to learn'):.0f}, with "
            f"{steps(own, 'parameters of W^Q') / steps(one, 'parameters of W^Q'):.0f} times the parameters; at known "
            f"steps it is right in {steps(own, known):.0%} (one W^Q: {steps(one, known):.0%}), at later ones in "
            f"{steps(own, later):.0%} (one W^Q: {steps(one, later):.0%}).",
        ),
        Verdict(
            "Positions added after the heads come too late: the attention of that layer cannot see order.",
            before("after the heads", 1) < 0.5 < before("before the heads", 1),
            f"One layer names the word before in {before('after the heads', 1):.0%} (a guess: {1 / WORDS:.0%}), with "
            f"positions before the heads in {before('before the heads', 1):.0%}.",
        ),
        Verdict(
            "A model of two layers with positions after the heads cannot see order either.",
            before("after the heads", 2) < 0.5 < before("before the heads", 2),
            f"Its second layer reads what was added in the first: {before('after the heads', 2):.0%}, with positions "
            f"before the heads {before('before the heads', 2):.0%}.",
        ),
    ]


# ---------------------------------------------------------------- the figure


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    figure.set_layout_engine("constrained")
    scales, steps, positions = figure.subplots(1, 3, width_ratios=[1.6, 1, 1])
    blue, brown = ("#3a78c9", ""), ("#b3560a", "///")
    rows = {
        f"width {width}": [
            fmean(each["scaled"][name]["updates to learn"][place] for each in numbers) for name in SCALINGS
        ]
        for place, width in enumerate(WIDTHS)
    }
    _bars(scales, ["by √d_k", "by d_k", "by √d_k, after\nthe softmax"], rows, (blue, brown), "{:.0f}")
    most = numbers[0]["updates"]
    scales.set_ylabel(f"updates until it is learned (at most {most})")
    scales.set_xlabel("scores divided")
    scales.set_ylim(0, most * 1.3)
    accuracies = {
        name: [
            fmean(each["steps"][name][what] for each in numbers)
            for what in ("accuracy at steps of training", "accuracy at later steps")
        ]
        for name in STEPS
    }
    _bars(steps, ["steps of\ntraining", "later\nsteps"], accuracies, (blue, brown), "{:.2f}")
    seen = {
        name: [fmean(each["positions"][name][place] for each in numbers) for place in (0, 1)]
        for name in ("before the heads", "after the heads")
    }
    _bars(positions, ["1 layer", "2 layers"], seen, (blue, brown), "{:.2f}")
    for axes, what in ((steps, "accuracy of recall"), (positions, "accuracy, word before")):
        axes.set_ylabel(what)
        axes.set_ylim(0, 1.4)
        axes.set_yticks([0, 0.5, 1])


def _bars(
    axes: Any, groups: list[str], rows: dict[str, list[float]], looks: Sequence[tuple[str, str]], form: str
) -> None:
    for (name, heights), shift, (colour, hatch) in zip(rows.items(), (-0.2, 0.2), looks, strict=True):
        places = [place + shift for place in range(len(groups))]
        drawn = axes.bar(places, heights, 0.38, color=colour, hatch=hatch, label=name)
        axes.bar_label(drawn, [form.format(height) for height in heights], fontsize=8)
    axes.set_xticks(range(len(groups)), groups, fontsize=9)
    axes.legend(fontsize=8, framealpha=0, loc="upper left")


EXPERIMENT = Experiment(
    number=16,
    name="study-notes",
    title="What study notes often get wrong",
    source="study notes on Vaswani et al. 2017, sections 3.2 and 3.5; on 1/d_k see Yang et al. 2022 (µP), section 4",
    about=(
        "Four mistakes that notes on attention repeat, each built and trained beside the paper's way: one head that "
        "recalls values by their names (dividing by d_k, scaling after the softmax, a W^Q for each step), and an "
        "encoder that names the word before each word (positions added after the heads)."
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    size=(12.0, 3.8),
)
