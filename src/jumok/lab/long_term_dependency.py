"""How far back does learning reach? The gradient over distance, and recall of the first token.

The state at the end of a text depends on a word d steps before through d applications of the same cell, so its gradient
is a product of d Jacobians:

    ∂h_T/∂x_t = (∂h_T/∂h_(T-1)) ⋯ (∂h_(t+1)/∂h_t) · ∂h_t/∂x_t

In a plain RNN each factor is diag(1 − h²) U. In an LSTM the way through the cell state is ∂c_t/∂c_(t-1) = f_t, the
forget gate: which is σ(b) ≈ ½ as PyTorch starts it (b = 0), so that half is lost at every step, however good the
architecture. The bias is the lesson: started with b = 5 the gate is 0.993 and the gradient arrives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded
from jumok.layers.embedding import Embedding
from jumok.layers.linear import linear
from jumok.layers.recurrent import Recurrent
from jumok.layers.stack import Stack
from jumok.recipe import TransformerLanguageSection

WIDTH, VALUES, NOISE = 32, 8, 8
LAGS = (5, 10, 20, 40, 80)
FARTHEST = LAGS[-1]
UPDATES, BATCH, LEARNING_RATE = 300, 64, 0.02
LEARNED = 0.02  # a loss below which there is nothing left to learn
# name: cell, forget bias (None: as PyTorch starts it, uniform around 0)
NETWORKS: dict[str, tuple[str, float | None]] = {
    "RNN": ("rnn", None),
    "LSTM": ("lstm", None),
    "LSTM, forget bias 1": ("lstm", 1.0),
    "LSTM, forget bias 5": ("lstm", 5.0),
    "GRU": ("gru", None),
    "attention": ("attention", None),
}


class Reader(nn.Module):
    """Tokens in, the last position's state out; one layer of the house's own."""

    def __init__(self, cell: str, forget_bias: float | None) -> None:
        super().__init__()
        self.embedding = Embedding(1 + VALUES + NOISE, WIDTH, 0)
        self.body: Stack | Recurrent
        if cell == "attention":
            section = TransformerLanguageSection(width=WIDTH, heads=2, layers=1, feed_forward=2 * WIDTH, dropout=0.0)
            self.body = Stack(section, 1, "causal", "reader")
        else:
            self.body = Recurrent(cell, WIDTH, WIDTH)
            start_as_pytorch_does(self.body, forget_bias)
        self.head = linear(WIDTH, VALUES)

    def last(self, x_BLD: Tensor) -> Tensor:
        outputs = self.body(x_BLD) if isinstance(self.body, Stack) else self.body(x_BLD)[0]
        return outputs[:, -1]

    def forward(self, ids_BL: Tensor) -> Tensor:
        return self.head(self.last(self.embedding(ids_BL)))


def start_as_pytorch_does(recurrent: Recurrent, forget_bias: float | None) -> None:
    """U(−1/√d, 1/√d) for everything, as nn.LSTM does; then the forget gate's bias as asked for."""
    for parameter in recurrent.parameters():
        nn.init.uniform_(parameter, -(WIDTH**-0.5), WIDTH**-0.5)
    if forget_bias is not None:
        for name, parameter in recurrent.named_parameters():
            if "bias" in name:  # there are two, which are added; the gates lie as input, forget, candidate, output
                nn.init.constant_(parameter.data.chunk(4)[1], forget_bias if "bias_ih" in name else 0.0)


def gradient_by_distance(reader: Reader, x_1LD: Tensor) -> list[float]:
    """‖∂h_T/∂x_(T-d)‖ for d = 0, 1, … (Frobenius): one row for each unit of h_T, so that one backward pass does it."""
    x_ULD = x_1LD.expand(WIDTH, -1, -1).clone().requires_grad_()
    last_UU = reader.last(x_ULD)
    (gradient_ULD,) = torch.autograd.grad(last_UU.diagonal().sum(), x_ULD)
    norms: list[float] = gradient_ULD.pow(2).sum(dim=(0, 2)).sqrt().flip(0).tolist()
    return norms


def texts(count: int, lag: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """The value to remember, then `lag` tokens that do not matter; and which value it was."""
    value_B1 = torch.randint(VALUES, (count, 1), generator=random)
    noise_BL = torch.randint(NOISE, (count, lag), generator=random)
    return torch.cat((1 + value_B1, 1 + VALUES + noise_BL), dim=1), value_B1[:, 0]


def recall(name: str, lag: int, seed: int, updates: int) -> float:
    """The share of first tokens that a network names after training at this lag; guessing gives 1/8."""
    with seeded(seed):
        reader = Reader(*NETWORKS[name])
    random = torch.Generator().manual_seed(1000 * seed + lag)

    optimizer = torch.optim.Adam(reader.parameters(), lr=LEARNING_RATE)
    recent: list[float] = []
    for update in range(updates):
        ids_BL, value_B = texts(BATCH, lag, random)
        loss = F.cross_entropy(reader(ids_BL), value_B)
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * min(1.0, (update + 1) / 30, 1.5 * (1 - update / updates))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        recent = [*recent[-9:], loss.item()]
        if len(recent) == 10 and max(recent) < LEARNED:
            break
    ids_BL, value_B = texts(400, lag, random)
    with torch.no_grad():
        return float((reader(ids_BL).argmax(dim=-1) == value_B).float().mean())


def measure(seed: int, effort: float) -> Numbers:
    gradient: dict[str, list[float]] = {}
    for name, (cell, forget_bias) in NETWORKS.items():
        with seeded(seed):  # the same words for all, in double precision because what is left may be very little
            rows = torch.randn(4, 1, FARTHEST + 1, WIDTH, dtype=torch.float64)
            reader = Reader(cell, forget_bias).double()
        norms = np.array([gradient_by_distance(reader, row) for row in rows])
        gradient[name] = np.exp(np.log(norms / norms[:, :1]).mean(axis=0)).tolist()  # relative to distance 0
    updates = max(2, round(UPDATES * effort))
    accuracy = {name: [recall(name, lag, seed, updates) for lag in LAGS] for name in NETWORKS}
    return {"gradient": gradient, "lags": list(LAGS), "updates": updates, "accuracy": accuracy}


def factor(by_distance: Sequence[float]) -> float:
    """What one step back multiplies the gradient by, between distances 5 and 40."""
    return math.exp((math.log(by_distance[40]) - math.log(by_distance[5])) / 35)


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    step = {name: fmean(factor(one["gradient"][name]) for one in numbers) for name in NETWORKS}
    left = {name: math.exp(fmean(math.log(one["gradient"][name][FARTHEST]) for one in numbers)) for name in NETWORKS}
    right = {
        name: [fmean(of) for of in zip(*(one["accuracy"][name] for one in numbers), strict=True)] for name in NETWORKS
    }
    gates = {bias: 1 / (1 + math.exp(-bias)) for bias in (0, 1, 5)}
    of_bias = {0: step["LSTM"], 1: step["LSTM, forget bias 1"], 5: step["LSTM, forget bias 5"]}
    near = fmean(one["gradient"]["attention"][1] for one in numbers)
    plain, default, biased = right["RNN"][-1], right["LSTM"][-1], right["LSTM, forget bias 5"][-1]
    return [
        Verdict(
            "In a plain RNN the gradient vanishes exponentially with the distance.",
            step["RNN"] < 0.9 and left["RNN"] < 1e-4,
            f"Each step back leaves {step['RNN']:.2f} of it; after {FARTHEST} steps {left['RNN']:.0e}.",
        ),
        Verdict(
            "Gates keep the gradient from vanishing: an LSTM or a GRU does not have the RNN's problem.",
            left["LSTM"] > 0.01 and left["GRU"] > 0.01,
            f"Started as PyTorch does, after {FARTHEST} steps {left['LSTM']:.0e} is left in the LSTM and "
            f"{left['GRU']:.0e} in the GRU ({step['LSTM']:.2f} and {step['GRU']:.2f} a step).",
        ),
        Verdict(
            "What decides is the forget gate: the larger its bias at the start, the farther the gradient reaches.",
            of_bias[0] < of_bias[1] < of_bias[5] and left["LSTM, forget bias 5"] > 0.1,
            "A step leaves "
            + ", ".join(f"{of_bias[bias]:.2f} with bias {bias} (where f = σ(b) = {gates[bias]:.2f})" for bias in gates)
            + f"; after {FARTHEST} steps {left['LSTM, forget bias 5']:.2f} is left with bias 5.",
        ),
        Verdict(
            "With attention the distance does not matter to the gradient.",
            near / 3 < left["attention"] < 3 * near,
            f"At distance {FARTHEST} it is {left['attention']:.1e} of that at 0, at distance 1 "
            f"{near:.1e}: {step['attention']:.3f} a step.",
        ),
        Verdict(
            "Where the gradient arrives, the network learns to remember: the first token over 80 others.",
            min(biased, right["attention"][-1]) > 0.75 and max(plain, default) < 0.25,
            f"Recall over {FARTHEST} tokens after {numbers[0]['updates']} updates at most (guessing {1 / VALUES:.0%}): "
            f"RNN {plain:.0%}, LSTM {default:.0%}, with forget bias 1 {right['LSTM, forget bias 1'][-1]:.0%}, "
            f"with 5 {biased:.0%}, GRU {right['GRU'][-1]:.0%}, attention {right['attention'][-1]:.0%}; over 5 tokens "
            f"{min(of[0] for of in right.values()):.0%} at least.",
        ),
    ]


LOOKS = {  # to be told apart on white and on black paper
    "RNN": ("#8c8c8c", "-", "o"),
    "LSTM": ("#4477aa", ":", "s"),
    "LSTM, forget bias 1": ("#4477aa", "--", "s"),
    "LSTM, forget bias 5": ("#4477aa", "-", "s"),
    "GRU": ("#b59a1e", "-", "^"),
    "attention": ("#d9596b", "-", "D"),
}


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    left, right = figure.subplots(1, 2)
    for name, (colour, line, marker) in LOOKS.items():
        logs = np.log([one["gradient"][name] for one in numbers])
        left.plot(np.exp(logs.mean(axis=0)), color=colour, linestyle=line, label=name)
        accuracy = np.array([one["accuracy"][name] for one in numbers])
        right.plot(LAGS, accuracy.mean(axis=0), color=colour, linestyle=line, marker=marker, markersize=4, label=name)
        if len(numbers) > 1:
            right.fill_between(LAGS, accuracy.min(axis=0), accuracy.max(axis=0), color=colour, alpha=0.12, linewidth=0)
    left.set_yscale("log")
    left.set_ylim(1e-16, 10)
    left.set_xlabel("distance d in steps")
    left.set_ylabel("‖∂h_T/∂x_(T-d)‖ before training, 1 at d = 0")
    right.axhline(1 / VALUES, color="#7f7f7f", linewidth=0.8)
    right.text(LAGS[0], 1 / VALUES - 0.055, "guessing", fontsize=8)
    right.set_xscale("log")
    right.set_xticks(LAGS, LAGS)
    right.minorticks_off()
    right.set_ylim(0, 1.05)
    right.set_xlabel("lag: tokens between the first and its recall")
    right.set_ylabel("recall after training")
    right.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for panel in (left, right):
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=1,
    name="long-term-dependency",
    title="How far back does learning reach?",
    source="Hochreiter 1991; Bengio et al. 1994; the forget bias: Gers et al. 2000, Jozefowicz et al. 2015",
    about="The gradient of a network's last state by each word vector before it, at the start of training, for an RNN, "
    "an LSTM with three forget biases, a GRU and causal self-attention. Then each is trained to name the first token "
    "of a text after 5 to 80 tokens that do not matter.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(11.0, 4.2),
)
