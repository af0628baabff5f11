"""Exploding gradients, with and without clipping.

The gradient through time is a product of Jacobians. Where they stretch, it grows exponentially with the distance: the
error surface of a recurrent network has cliffs, and a step taken at the foot of one throws the weights far away.
Clipping (Pascanu, Mikolov and Bengio 2013, algorithm 1) keeps the gradient's direction and limits its length:

    g ← g · min(1, c / ‖g‖)

The network is an RNN that must say at the end which of four inputs it saw first, after 40 steps of noise. To remember
it needs a state that does not fade, which is where gradients explode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

import matplotlib
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded
from jumok.layers.linear import linear
from jumok.layers.recurrent import Recurrent

WIDTH, VALUES, STEPS, NOISE = 32, 4, 40, 0.3
UPDATES, BATCH, CLIP = 450, 32, 1.0
GAINS = (0.8, 1.0, 1.2, 1.5, 2.0)  # of the recurrent matrix: what it multiplies lengths by before the tanh
RATES = {"SGD": (0.01, 0.03, 0.1, 0.3), "Adam": (0.001, 0.003, 0.01, 0.03)}
GUESSING = math.log(VALUES)  # the loss of who knows nothing
LEARNED = 0.1
WORST = 10.0  # a loss above is as bad, and some are not numbers any more
# an explosion is a gradient so many times as large as the median of the updates around it (itself among them): compared
# with all of the training, it would be the fall of the norm while something is learned that is measured
SUDDEN, AROUND = 10, 21
RARE = 0.01  # of the updates, at most


class Latch(nn.Module):
    def __init__(self, gain: float = 1.0) -> None:
        super().__init__()
        self.recurrent = Recurrent("rnn", VALUES + 1, WIDTH)  # its recurrent matrix starts orthogonal
        self.head = linear(WIDTH, VALUES)
        for name, parameter in self.recurrent.named_parameters():
            if "weight_hh" in name:
                parameter.data.mul_(gain)

    def forward(self, x_BLD: Tensor) -> Tensor:
        return self.head(self.recurrent(x_BLD)[0][:, -1])


def inputs(count: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """One of the first four channels is 1 at the first step; the fifth is noise all the time."""
    value_B = torch.randint(VALUES, (count,), generator=random)
    x_BLD = torch.zeros(count, STEPS, VALUES + 1)
    x_BLD[torch.arange(count), 0, value_B] = 1.0
    x_BLD[..., -1] = NOISE * torch.randn(count, STEPS, generator=random)
    return x_BLD, value_B


def trained(optimizer_name: str, rate: float, clip: float | None, seed: int, updates: int) -> dict[str, Any]:
    """The losses of a training and the gradients' norms, before they were clipped."""
    with seeded(seed):
        model = Latch()
    random = torch.Generator().manual_seed(seed)
    kind = torch.optim.SGD if optimizer_name == "SGD" else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=rate)
    losses, norms = [], []
    for _ in range(updates):
        x_BLD, value_B = inputs(BATCH, random)
        loss = F.cross_entropy(model(x_BLD), value_B)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), clip or math.inf)))
        optimizer.step()
        losses.append(loss.item())
        if not math.isfinite(losses[-1]) or not math.isfinite(norms[-1]):
            break
    return {
        "explosions": explosions([norm if math.isfinite(norm) else math.inf for norm in norms]),
        "updates": len(norms),
        "losses": [min(loss, WORST) if math.isfinite(loss) else WORST for loss in losses],
        "norms": [norm for norm in norms if math.isfinite(norm)],
        "final": min(WORST, fmean(losses[-max(1, updates // 6) :])) if math.isfinite(losses[-1]) else WORST,
    }


def explosions(norms: Sequence[float]) -> int:
    """How many gradients are far larger than those of the updates around them, or no number any more."""
    half = AROUND // 2
    around = [median(norms[max(0, place - half) : place + half + 1]) for place in range(len(norms))]
    return sum(norm == math.inf or norm > SUDDEN * usual for norm, usual in zip(norms, around, strict=True))


def growth(gain: float, seed: int) -> list[float]:
    """‖∂h_T/∂h_(T-d)‖₂, the largest stretch of any direction, before training, for d = 0 … 39."""
    with seeded(seed):
        model = Latch(gain).double()
        x_BLD, _ = inputs(1, torch.Generator().manual_seed(seed))
    weights = model.recurrent._weights(0)
    states = model.recurrent(x_BLD.double())[0][0].detach()
    product, stretches = torch.eye(WIDTH, dtype=torch.float64), [1.0]
    for state in states[1:].flip(0):  # ∂h_t/∂h_(t-1) = diag(1 − h_t²) U
        product = product @ ((1 - state**2)[:, None] * weights.hidden_weight.detach())
        stretches.append(float(torch.linalg.matrix_norm(product, 2)))
    return stretches


def measure(seed: int, effort: float) -> Numbers:
    updates = max(3, round(UPDATES * effort))
    shown, final, sudden = {}, {}, {}
    for name, rates in RATES.items():
        for way, clip in (("not clipped", None), ("clipped", CLIP)):
            runs = [trained(name, rate, clip, seed, updates) for rate in rates]
            final[f"{name}, {way}"] = [run["final"] for run in runs]
            sudden[f"{name}, {way}"] = [[run["explosions"], run["updates"]] for run in runs]
            if name == "SGD":
                shown[way] = {"losses": runs[1]["losses"], "norms": runs[1]["norms"]}
    return {
        "growth": {f"{gain:g}": growth(gain, seed) for gain in GAINS},
        "shown": shown,
        "final": final,
        "explosions and updates": sudden,
    }


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    steps = STEPS - 1
    stretch = {
        gain: math.exp(fmean(math.log(one["growth"][gain][-1]) for one in numbers)) for gain in numbers[0]["growth"]
    }
    final = {
        name: [fmean(losses) for losses in zip(*(one["final"][name] for one in numbers), strict=True)]
        for name in numbers[0]["final"]
    }
    exploded = [run for one in numbers for run in one["explosions and updates"]["SGD, not clipped"]]
    share = sum(count for count, _ in exploded) / sum(updates for _, updates in exploded)
    struck = sum(count > 0 for count, _ in exploded)
    learned = {name: sum(loss < LEARNED for one in numbers for loss in one["final"][name]) for name in final}
    runs = len(numbers) * len(RATES["SGD"])
    best = {name: min(losses) for name, losses in final.items()}
    return [
        Verdict(
            "The gradient through time explodes where the recurrent matrix stretches, and vanishes where it shrinks.",
            stretch["0.8"] < 1e-2 and stretch["1.5"] > 10,
            f"Over {steps} steps it is multiplied by "
            + ", ".join(f"{value:.1e} (matrix times {gain})" for gain, value in stretch.items())
            + ".",
        ),
        Verdict(
            "Explosions are rare and sudden: single gradients are far larger than those just before and after.",
            struck >= len(exploded) / 2 and share <= RARE,
            f"SGD without clipping: {share:.2%} of the norms are above {SUDDEN} times the median of the {AROUND} "
            f"around them, in {struck} of {len(exploded)} trainings (to hold: in half of them, at most {RARE:.0%}).",
        ),
        Verdict(
            "With clipping SGD learns at rates at which it does not learn without.",
            learned["SGD, clipped"] > runs / 2 > learned["SGD, not clipped"],
            f"Learned (loss below {LEARNED}, guessing {GUESSING:.2f}) in {learned['SGD, clipped']} of {runs} trainings "
            f"with clipping, {learned['SGD, not clipped']} without; mean losses at rates "
            f"{', '.join(f'{rate:g}' for rate in RATES['SGD'])}: "
            f"{', '.join(f'{loss:.2f}' for loss in final['SGD, clipped'])} against "
            f"{', '.join(f'{loss:.2f}' for loss in final['SGD, not clipped'])}.",
        ),
        Verdict(
            "Adam, which divides by the gradient's size, mostly learns without clipping.",
            learned["Adam, not clipped"] >= 0.75 * runs,
            f"Learned in {learned['Adam, not clipped']} of {runs} trainings without clipping, "
            f"{learned['Adam, clipped']} with; best mean loss {best['Adam, not clipped']:.4f} and "
            f"{best['Adam, clipped']:.4f}.",
        ),
    ]


LOOKS = {"not clipped": ("#d9596b", "-"), "clipped": ("#4477aa", "-")}


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    stretches, norms, losses = figure.subplots(1, 3)
    for number, gain in enumerate(GAINS):
        shade = matplotlib.colormaps["plasma"](0.2 + 0.6 * number / (len(GAINS) - 1))
        mean = np.exp(np.log([one["growth"][f"{gain:g}"] for one in numbers]).mean(axis=0))
        stretches.plot(mean, color=shade, label=f"U times {gain:g}")
    stretches.set_yscale("log")
    stretches.set_xlabel("distance d in steps")
    stretches.set_ylabel("‖∂h_T/∂h_(T-d)‖ before training")
    for way, (colour, line) in LOOKS.items():
        shown = numbers[0]["shown"][way]
        norms.plot(shown["norms"], color=colour, linestyle=line, linewidth=0.9, label=way)
        for name, marker, dashes in (("SGD", "o", "-"), ("Adam", "^", "--")):
            mean_of = np.mean([one["final"][f"{name}, {way}"] for one in numbers], axis=0)
            losses.plot(
                RATES[name],
                mean_of,
                color=colour,
                linestyle=dashes,
                marker=marker,
                markersize=4,
                label=f"{name}, {way}",
            )
    norms.axhline(CLIP, color="#8c8c8c", linewidth=0.8)
    norms.set_yscale("log")
    norms.set_xlabel(f"update (SGD, rate {RATES['SGD'][1]:g})")
    norms.set_ylabel("norm of the gradient, before clipping")
    losses.axhline(GUESSING, color="#8c8c8c", linewidth=0.8)
    losses.text(RATES["Adam"][0], GUESSING * 1.08, "guessing", fontsize=8)
    losses.set_xscale("log")
    losses.set_yscale("log")
    losses.set_xlabel("learning rate")
    losses.set_ylabel("loss at the end of training")
    losses.set_ylim(3e-6, 4)
    for panel, place in ((stretches, "lower left"), (norms, "upper right"), (losses, "lower right")):
        panel.legend(fontsize=8, frameon=False, loc=place)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=12,
    name="clipping",
    title="Exploding gradients, with and without clipping",
    source="Bengio et al. 1994; Pascanu, Mikolov and Bengio 2013, sections 2 and 3.2",
    about="How far the recurrent matrix stretches a gradient over 40 steps before training; then an RNN learns to "
    "remember its first input for 40 steps of noise, by SGD and by Adam at four learning rates each, with the "
    "gradient's norm clipped to 1 and without.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(12.5, 4.0),
)
