"""Why the scores are divided by √d_k.

"We suspect that for large values of d_k, the dot products grow large in magnitude, pushing the softmax function into
regions where it has extremely small gradients. To counteract this effect, we scale the dot products by 1/√d_k."

If the components of q and k are independent with mean 0 and variance 1, q · k = Σ q_i k_i has variance d_k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.recall import Recall, count, updates_to_learn
from jumok.layers.attention import Dot, ScaledDot, attention_weights

WIDTHS = (4, 16, 64, 256, 1024)  # at which a softmax is looked at
TRAINED = (16, 64, 256)  # at which attention is trained
UPDATES = 200
KEYS = 32
SCORERS = {"q · k": Dot, "q · k / √d_k": ScaledDot}


def measure(seed: int, effort: float) -> Numbers:
    generator = torch.Generator().manual_seed(seed)
    looks: dict[str, list[Numbers]] = {name: [] for name in SCORERS}
    for width in WIDTHS:
        query, key = (torch.randn(64, KEYS, width, generator=generator).double() for _ in range(2))
        for name, scorer in SCORERS.items():
            looks[name].append(_look(query, key, scorer(width, width, width, 0)))
    updates = max(2, round(UPDATES * effort))
    learned = {
        "q · k": [updates_to_learn(partial(Recall, width, scale=1.0), seed, updates) for width in TRAINED],
        "q · k / √d_k": [updates_to_learn(partial(Recall, width), seed, updates) for width in TRAINED],
    }
    return {"at random": looks, "updates": updates, "updates to learn": learned}


def _look(query: Tensor, key: Tensor, scorer: Dot) -> Numbers:
    weights = attention_weights(query, key, None, scorer)
    gradient = jacobian_norm(weights).flatten()
    return {
        "spread of the scores": float(scorer(query, key).std()),
        "entropy": float(torch.special.entr(weights).sum(dim=-1).mean()) / math.log(KEYS),  # 1: looks everywhere alike
        "gradient": float(gradient.median()),
        "mean gradient": float(gradient.mean()),
    }


def jacobian_norm(weights: Tensor) -> Tensor:
    """‖∂α/∂e‖ of α = softmax(e), whose entries are α_i (δ_ij − α_j)."""
    return (torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]).norm(dim=(-2, -1))


# ---------------------------------------------------------------- the verdicts


def judge(numbers: Sequence[Numbers]) -> list[Verdict]:
    raw, scaled = (_means(numbers, name) for name in SCORERS)
    first, last = WIDTHS[0], WIDTHS[-1]
    growth = math.log(raw["spread of the scores"][-1] / raw["spread of the scores"][0]) / math.log(last / first)
    entropy, gradient, mean = (raw[name] for name in ("entropy", "gradient", "mean gradient"))
    steady = [max(scaled[name]) / min(scaled[name]) for name in ("entropy", "gradient")]
    without, with_ = (fmean(each["updates to learn"][name][-1] for each in numbers) for name in SCORERS)
    small = [fmean(each["updates to learn"][name][0] for each in numbers) for name in SCORERS]
    most = numbers[0]["updates"]
    return [
        Verdict(
            "The scores q · k spread as √d_k.",
            abs(growth - 0.5) < 0.05,
            f"From width {first} to {last} their standard deviation grows from {raw['spread of the scores'][0]:.1f} to "
            f"{raw['spread of the scores'][-1]:.1f}, as d_k^{growth:.2f}.",
        ),
        Verdict(
            "Unscaled, the softmax of wide vectors looks at one key only and its gradient vanishes.",
            gradient[-1] < 0.01 * gradient[0] and entropy[-1] < 0.25,
            f"From width {first} to {last} the entropy falls from {entropy[0]:.0%} to {entropy[-1]:.0%} of that of "
            f"equal weights, the median norm of ∂α/∂e from {gradient[0]:.2f} to {gradient[-1]:.4f} (its mean, held up "
            f"by the few rows with two keys alike, from {mean[0]:.2f} to {mean[-1]:.2f}).",
        ),
        Verdict(
            "Divided by √d_k, entropy and gradient are the same at every width.",
            max(steady) < 1.25,
            f"Over all widths entropy stays within {steady[0] - 1:.0%} and gradient within {steady[1] - 1:.0%}.",
        ),
        Verdict(
            "Without the division wide attention learns worse.",
            without > 1.5 * with_,
            f"At width {TRAINED[-1]} it needs {count(without, most)} updates with the best learning rate, divided by "
            f"√d_k {count(with_, most)}; at width {TRAINED[0]}, {count(small[0], most)} and {count(small[1], most)}.",
        ),
    ]


def _means(numbers: Sequence[Numbers], name: str) -> dict[str, list[float]]:
    looks = [each["at random"][name] for each in numbers]
    return {what: [fmean(look[i][what] for look in looks) for i in range(len(WIDTHS))] for what in looks[0][0]}


# ---------------------------------------------------------------- the figure


def draw(figure: Any, numbers: Sequence[Numbers]) -> None:
    entropy, gradient, learned = figure.subplots(1, 3)
    for name, colour, marker in zip(SCORERS, ("#b3560a", "#3a78c9"), ("s", "o"), strict=True):
        means = _means(numbers, name)
        entropy.plot(WIDTHS, means["entropy"], color=colour, marker=marker, label=name)
        gradient.plot(WIDTHS, means["gradient"], color=colour, marker=marker, label=f"{name}, median")
        gradient.plot(WIDTHS, means["mean gradient"], color=colour, linestyle=":", label=f"{name}, mean")
        updates = [fmean(each["updates to learn"][name][i] for each in numbers) for i in range(len(TRAINED))]
        learned.plot(TRAINED, updates, color=colour, marker=marker, label=name)
    entropy.set_ylabel("entropy of the weights (1: all alike)")
    entropy.set_ylim(0, 1.05)
    gradient.set_ylabel("norm of ∂α/∂e")
    gradient.set_yscale("log")
    most = numbers[0]["updates"]
    learned.set_ylabel(f"updates until it is learned (at most {most})")
    learned.set_ylim(0, most * 1.1)
    for axes, ticks in ((entropy, WIDTHS), (gradient, WIDTHS), (learned, TRAINED)):
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [str(width) for width in ticks])
        axes.set_xlabel("width d_k")
        axes.legend(fontsize=8, framealpha=0)
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=5,
    name="scaling",
    title="Why the scores are divided by √d_k",
    source="Vaswani et al. 2017, section 3.2.1 and footnote 4",
    about=(
        f"Random queries look at {KEYS} random keys, by q · k and by q · k / √d_k, at widths from {WIDTHS[0]} to "
        f"{WIDTHS[-1]}: how spread are the scores, how sharp the weights, how large the gradient through the softmax? "
        "Then one attention head learns to recall 16 values by their names: how many updates does it need?"
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    size=(11.0, 3.6),
)
