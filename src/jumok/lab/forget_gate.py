"""The forget gate over the span it must bridge.

    c_t = f_t ⊙ c_(t-1) + i_t ⊙ g_t

The picture that is told of an LSTM: the forget gate f stands near 1 while something must be remembered, and is low
elsewhere. Here an LSTM reads tokens that do not matter; a token "store v" tells it what to remember, "ask" wants it
back, twice in a text. Its gates are then read off, step by step, in the units that carry v.

Beside it stands an LSTM whose gates see only the input (U = 0), so that the cell state is the only thing that can
remember. In the full one h_(t-1) feeds back into the cell through the candidate g: what f loses, i ⊙ g can put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.inspect.gates import lstm_step, unroll
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded, train
from jumok.layers.embedding import Embedding
from jumok.layers.linear import linear
from jumok.layers.recurrent import Recurrent

VALUES, NOISE, WIDTH, LENGTH = 6, 8, 24, 60
ASK = 1 + NOISE + VALUES
UPDATES, BATCH, LEARNING_RATE, TESTED = 600, 32, 0.01, 300
CARRIERS = 6  # units whose cell state tells v best
CUT, CUT_STEPS = 0.5, 4
NEAR_ONE = 0.95  # half is left after 14 steps, a span of middle length
NETWORKS = {"LSTM": True, "gates see only the input": False}
PHASES = ("before", "store", "span", "ask", "after")


class Texts(NamedTuple):
    ids: Tensor  # (B, L)
    values: Tensor  # (B, 2) what is stored, twice
    stores: Tensor  # (B, 2) where
    asks: Tensor  # (B, 2) where it is asked for

    def phases(self) -> dict[str, Tensor]:
        """(B, L) masks around the first of the two."""
        place, store, ask = torch.arange(LENGTH), self.stores[:, :1], self.asks[:, :1]
        return {
            "before": place < store,
            "store": place == store,
            "span": (place > store) & (place < ask),
            "ask": place == ask,
            "after": (place > ask) & (place < self.stores[:, 1:]),
        }


def texts(count: int, random: torch.Generator) -> Texts:
    def between(low: int, high: int) -> Tensor:
        return torch.randint(low, high, (count, 1), generator=random)

    first, gap = between(4, 9), between(5, 9)
    stores = torch.cat((first, first + (span := between(8, 20)) + gap), dim=1)
    asks = torch.cat((first + span, stores[:, 1:] + between(8, 20)), dim=1)
    values = torch.randint(VALUES, (count, 2), generator=random)
    ids = torch.randint(1, 1 + NOISE, (count, LENGTH), generator=random)
    ids.scatter_(1, stores, 1 + NOISE + values)
    return Texts(ids.scatter_(1, asks, ASK), values, stores, asks)


class Rememberer(nn.Module):
    def __init__(self, feedback: bool) -> None:
        super().__init__()
        self.embedding = Embedding(ASK + 1, WIDTH, 0)
        self.recurrent = Recurrent("lstm", WIDTH, WIDTH, forget_bias=1.0)
        self.head = linear(WIDTH, VALUES)
        if not feedback:
            for name, parameter in self.recurrent.named_parameters():
                if "weight_hh" in name:
                    nn.init.zeros_(parameter).requires_grad_(False)

    def forward(self, ids_BL: Tensor) -> Tensor:
        return self.head(self.recurrent(self.embedding(ids_BL))[0])


def at(x_BLD: Tensor, places_BK: Tensor) -> Tensor:
    """(B, K, D): the vectors at these places."""
    return x_BLD.gather(1, places_BK[..., None].expand(-1, -1, x_BLD.size(-1)))


def recalled(logits_BLV: Tensor, given: Texts) -> list[float]:
    """The share of right answers to the first and to the second question."""
    right_B2 = at(logits_BLV, given.asks).argmax(dim=-1) == given.values
    shares: list[float] = right_B2.float().mean(dim=0).tolist()
    return shares


@torch.no_grad()
def with_cut(model: Rememberer, ids_BL: Tensor, cut_BL: Tensor) -> Tensor:
    """The answers (B, L, V) when the forget gate lets through only half of what it would, where the mask is True."""
    x_BLD, recurrent = model.embedding(ids_BL), model.recurrent
    state = tuple(part[0] for part in recurrent.initial_state(x_BLD))
    outputs = []
    for place in range(LENGTH):
        before = state[1]
        (_, c), gates = lstm_step(x_BLD[:, place], state, recurrent._weights(0))
        lost = cut_BL[:, place, None] * (1 - CUT) * gates["forget"] * before
        c = c - lost
        state = (gates["output"] * torch.tanh(c), c)
        outputs.append(state[0])
    return model.head(torch.stack(outputs, dim=1))


def carriers(cell_BLD: Tensor, given: Texts) -> Tensor:
    """The units whose state just before the question differs most by value, against its spread within one value."""
    state_BD, value_B = at(cell_BLD, given.asks[:, :1] - 1)[:, 0], given.values[:, 0]
    means = torch.stack([state_BD[value_B == value].mean(dim=0) for value in range(VALUES)])
    within_D = (state_BD - means[value_B]).pow(2).mean(dim=0)
    return (means.var(dim=0) / (within_D + 1e-6)).argsort(descending=True)[:CARRIERS]


def examine(feedback: bool, seed: int, updates: int) -> Numbers:
    with seeded(seed):
        model = Rememberer(feedback)
    random = torch.Generator().manual_seed(seed)

    def loss(update: int) -> Tensor:
        given = texts(BATCH, random)
        return F.cross_entropy(at(model(given.ids), given.asks).flatten(0, 1), given.values.flatten())

    train(model, loss, updates, LEARNING_RATE)
    chosen_on, given = texts(TESTED, random), texts(TESTED, random)  # carriers are chosen on other texts
    with torch.no_grad():
        units = carriers(_cells(model, chosen_on), chosen_on)
        read = next(unroll(model.recurrent, model.embedding(given.ids)))
        accuracy = recalled(model(given.ids), given)
    forget_BLC, entering_BLC = read.gates["forget"][..., units], read.gates["input"][..., units]
    phases = given.phases()
    # around the first "store": the mean gate at every step from 4 before it to 8 after it
    course = [at(forget_BLC, given.stores[:, :1] + step).mean().item() for step in range(-4, 9)]
    place = torch.arange(LENGTH)
    in_span = (place > given.stores[:, :1]) & (place <= given.stores[:, :1] + CUT_STEPS)
    after = (place > given.asks[:, :1]) & (place <= given.asks[:, :1] + CUT_STEPS)
    return {
        "recall": fmean(accuracy),
        "forget": {name: forget_BLC[mask].mean().item() for name, mask in phases.items()},
        "input": {name: entering_BLC[mask].mean().item() for name, mask in phases.items()},
        "all units": {name: read.gates["forget"][mask].mean().item() for name, mask in phases.items()},
        "course": course,
        "cut in the span": recalled(with_cut(model, given.ids, in_span), given)[0],
        "cut after it": recalled(with_cut(model, given.ids, after), given)[1],
    }


def _cells(model: Rememberer, given: Texts) -> Tensor:
    cell = next(unroll(model.recurrent, model.embedding(given.ids))).cell
    assert cell is not None
    return cell


def measure(seed: int, effort: float) -> Numbers:
    updates = max(2, round(UPDATES * effort))
    return {name: examine(feedback, seed, updates) for name, feedback in NETWORKS.items()}


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    full, input_only = (
        {
            **{key: fmean(one[name][key] for one in numbers) for key in ("recall", "cut in the span", "cut after it")},
            **{phase: fmean(one[name]["forget"][phase] for one in numbers) for phase in PHASES},
        }
        for name in NETWORKS
    )
    elsewhere = (full["before"] + full["after"]) / 2
    return [
        Verdict(
            "While something must be remembered, the forget gate stands near 1.",
            full["span"] > NEAR_ONE,
            f"{full['span']:.2f} in the {CARRIERS} units that carry it: that leaves {full['span'] ** 14:.0%} of the "
            f"cell state over 14 steps, yet recall is {full['recall']:.0%}: the rest comes back through i ⊙ g.",
        ),
        Verdict(
            "Where h cannot help (U = 0), the forget gate stands near 1 across the span.",
            input_only["span"] > NEAR_ONE,
            f"{input_only['span']:.3f} in the units that carry it, recall {input_only['recall']:.0%}.",
        ),
        Verdict(
            "The forget gate is lower where there is nothing to remember.",
            full["span"] - elsewhere > 0.1,
            f"{full['before']:.2f} before and {full['after']:.2f} after the span, {full['span']:.2f} in it; with U = 0 "
            f"{input_only['before']:.2f}, {input_only['after']:.2f} and {input_only['span']:.2f}: nothing rewards "
            "forgetting there.",
        ),
        Verdict(
            "It learns to forget: it falls where something new is to be stored.",
            full["span"] - full["store"] > 0.2,
            f'At "store" {full["store"]:.2f} against {full["span"]:.2f} in the span; with U = 0 '
            f"{input_only['store']:.2f} against {input_only['span']:.2f}.",
        ),
        Verdict(
            "The gate carries the memory: halving it for four steps loses it in the span, and does no harm after it.",
            full["recall"] - full["cut in the span"] > 0.2 and full["recall"] - full["cut after it"] < 0.05,
            f"Recall {full['recall']:.0%} falls to {full['cut in the span']:.0%}, and is {full['cut after it']:.0%} "
            f"when it is halved after the question; with U = 0 {input_only['recall']:.0%}, "
            f"{input_only['cut in the span']:.0%} and {input_only['cut after it']:.0%}.",
        ),
    ]


LOOKS = {"LSTM": ("#4477aa", "s"), "gates see only the input": ("#d9596b", "o")}


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    course, phases = figure.subplots(1, 2)
    for number, (name, (colour, marker)) in enumerate(LOOKS.items()):
        courses = np.array([one[name]["course"] for one in numbers])
        course.plot(range(-4, 9), courses.mean(axis=0), color=colour, marker=marker, markersize=4, label=name)
        means = [fmean(one[name]["forget"][phase] for one in numbers) for phase in PHASES]
        phases.bar(np.arange(len(PHASES)) + 0.4 * number - 0.2, means, width=0.38, color=colour, label=name)
        for one in numbers:
            marks = [one[name]["forget"][phase] for phase in PHASES]
            phases.plot(np.arange(len(PHASES)) + 0.4 * number - 0.2, marks, ".", color="#8c8c8c", markersize=4)
    course.axvline(0, color="#8c8c8c", linewidth=0.8)
    course.set_xlabel('steps after "store v"')
    course.set_ylabel("forget gate, units that carry v")
    phases.set_xticks(range(len(PHASES)), PHASES)
    phases.set_ylabel("forget gate, mean of the phase")
    for panel in (course, phases):
        panel.set_ylim(0, 1.02)
        panel.grid(alpha=0.25)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    course.legend(fontsize=8, frameon=False, loc="lower right")
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=13,
    name="forget-gate",
    title="The forget gate over the span it must bridge",
    source="Gers, Schmidhuber and Cummins 2000, Learning to Forget; as told in most introductions to the LSTM",
    about='An LSTM reads noise, "store v", noise, "ask", twice in a text, and must answer v. Its forget gate is read '
    "off before, in and after the span, in the units that carry v; then halved in the span and elsewhere. An LSTM "
    "whose gates see only the input shows what the cell state does alone.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(10.0, 3.9),
)
