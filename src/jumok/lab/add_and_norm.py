"""Experiment 9. Why Add & Norm: stacks of 2 to 24 blocks, with and without residual connection and normalisation.

    plain       x ← f(x)
    norm only   x ← norm(f(x))
    add only    x ← x + f(x)
    post-norm   x ← norm(x + f(x))     the paper's (Vaswani et al. 2017, 3.1)
    pre-norm    x ← x + f(norm(x))     with one more norm at the end

f is attention, then the feed-forward network: the house's own, in its own blocks. Each word of a text is asked for the
word before it (the first for the last); every stack learns that for the same number of updates, with warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.labeller import Labeller
from jumok.lab.training import seeded, train
from jumok.layers.block import Block

DEPTHS = (2, 6, 12, 24)
KINDS = ("plain", "norm only", "add only", "post-norm", "pre-norm")
WORDS, LENGTH, BATCH = 16, 12, 16
WIDTH = 32
UPDATES = 90
LEARNING_RATE, WARMUP = 4e-3, 0.3  # post-norm learns best with a long warm-up; pre-norm does not mind
CHANCE = math.log(WORDS)  # the loss of a model that has learned nothing
LEARNED = CHANCE / 2
WORST = 1000.0  # what is beyond it, or no number, has exploded and is no more than that


class Around(nn.Module):
    """What stands around a sublayer where the block's own Add & Norm is taken away."""

    def __init__(self, add: bool, normalise: bool) -> None:
        super().__init__()
        self.add, self.norm = add, nn.LayerNorm(WIDTH) if normalise else nn.Identity()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(x + sublayer(x) if self.add else sublayer(x))


def stack_of(kind: str, depth: int) -> Labeller:
    model = Labeller(
        WORDS, WORDS, width=WIDTH, heads=2, layers=depth, feed_forward=2 * WIDTH, activation="relu",
        position="rotary", norm="pre" if kind == "pre-norm" else "post",
    )  # fmt: skip
    if kind not in ("post-norm", "pre-norm"):
        for block in model.encoder.blocks:
            for place in ("attention_norm", "feed_forward_norm"):
                setattr(block, place, Around(add=kind == "add only", normalise=kind == "norm only"))
    return model


def loss_on(model: Labeller, texts: int) -> Tensor:
    """Cross-entropy of "which word was before this one?" on fresh random texts."""
    ids_BT = torch.randint(WORDS, (texts, LENGTH))
    return F.cross_entropy(model.head(model(ids_BT)).flatten(0, 1), ids_BT.roll(1, dims=1).flatten())


def reach(model: Labeller) -> float:
    """‖∂ loss / ∂ first block‖ / ‖∂ loss / ∂ last block‖ before any training: how much of the gradient comes down."""
    blocks = [block for block in model.encoder.blocks if isinstance(block, Block)]
    gradients = torch.autograd.grad(
        loss_on(model, 4 * BATCH), [*blocks[0].feed_forward.parameters(), *blocks[-1].feed_forward.parameters()]
    )
    norms = [float(gradient.double().norm()) for gradient in gradients]
    half = len(norms) // 2
    return known(math.hypot(*norms[:half]) / max(math.hypot(*norms[half:]), 1e-300))


def measure(seed: int, effort: float) -> Numbers:
    depths = DEPTHS if effort >= 0.5 else DEPTHS[:2]
    loss: dict[str, list[float]] = {}
    gradient: dict[str, list[float]] = {}
    for kind in KINDS:
        loss[kind], gradient[kind] = [], []
        for depth in depths:
            with seeded(seed):
                model = stack_of(kind, depth)
                gradient[kind].append(reach(model))
                train(model, lambda _, model=model: loss_on(model, BATCH), _updates(effort), LEARNING_RATE, WARMUP)  # type: ignore[misc]
                with torch.inference_mode():
                    final = float(loss_on(model, 16 * BATCH))
            loss[kind].append(known(final))
    return {"depths": list(depths), "updates": _updates(effort), "loss": loss, "gradient": gradient}


def known(value: float) -> float:
    """A number that can be drawn."""
    return min(value, WORST) if math.isfinite(value) else WORST


def _updates(effort: float) -> int:
    return max(2, round(UPDATES * effort))


def judge(seeds: Sequence[Numbers]) -> list[Verdict]:
    depths = seeds[0]["depths"]
    deep = depths[-1]

    def loss(kind: str, depth: int) -> float:
        return fmean(numbers["loss"][kind][depths.index(depth)] for numbers in seeds)

    def told(*kinds: str, depth: int = deep) -> str:
        return ", ".join(f"{kind} {loss(kind, depth):.3g}" for kind in kinds)

    gradient = {kind: fmean(numbers["gradient"][kind][-1] for numbers in seeds) for kind in KINDS}
    by_chance = f"(chance: {CHANCE:.2f})"
    return [
        Verdict(
            claim="Without residual connections a deep stack does not learn, though a shallow one does.",
            holds=loss("plain", depths[0]) < LEARNED < min(loss("plain", deep), loss("norm only", deep))
            and loss("pre-norm", deep) < LEARNED,
            because=f"loss at depth {depths[0]}: {told('plain', 'norm only', depth=depths[0])}; at depth {deep}: "
            f"{told('plain', 'norm only')}, with residuals {told('pre-norm')} {by_chance}",
        ),
        Verdict(
            claim="Residual connections alone are not enough: a deep stack needs normalisation too.",
            holds=loss("add only", deep) > LEARNED > loss("pre-norm", deep),
            because=f"loss at depth {deep}: {told('add only', 'pre-norm')}; at depth {depths[0]}: "
            f"{told('add only', 'pre-norm', depth=depths[0])} {by_chance}",
        ),
        Verdict(
            claim="Pre-norm learns at depths where post-norm does not.",
            holds=loss("pre-norm", deep) < LEARNED < loss("post-norm", deep),
            because=f"loss at depth {deep}: {told('post-norm', 'pre-norm')} {by_chance}; before training the first "
            f"block's gradient is {gradient['post-norm']:.2g} of the last one's with post-norm, "
            f"{gradient['pre-norm']:.2g} with pre-norm",
        ),
    ]


LOOKS = {
    "plain": ("#8a8f98", ":", "o"),
    "norm only": ("#8a8f98", "--", "s"),
    "add only": ("#a0519a", "-.", "v"),
    "post-norm": ("#b3560a", "-", "D"),
    "pre-norm": ("#3a78c9", "-", "^"),
}


def draw(figure: Any, seeds: Sequence[Numbers]) -> None:
    depths = seeds[0]["depths"]
    left, right = figure.subplots(1, 2)
    for axes, key in ((left, "loss"), (right, "gradient")):
        for kind, (colour, line, marker) in LOOKS.items():
            means = [fmean(numbers[key][kind][place] for numbers in seeds) for place in range(len(depths))]
            axes.plot(depths, means, color=colour, linestyle=line, marker=marker, label=kind, linewidth=1.8)
        axes.set_yscale("log")
        axes.set_xticks(depths)
        axes.set_xlabel("blocks in the stack")
        axes.grid(alpha=0.25)
    left.axhline(CHANCE, color="#8a8f98", linewidth=0.8)
    left.annotate("chance", (depths[-1], CHANCE), (0, 5), textcoords="offset points", ha="right", fontsize=8)
    left.set_ylabel("loss (1000: exploded)")
    right.axhline(1.0, color="#8a8f98", linewidth=0.8)
    right.set_ylabel("at the first block / at the last")
    right.set_title("the gradient before training", fontsize=10)
    left.set_title(f"the loss after {seeds[0]['updates']} updates", fontsize=10)
    left.legend(fontsize=8, loc="upper left")
    figure.tight_layout()


EXPERIMENT = Experiment(
    number=9,
    name="add-and-norm",
    title="Add & Norm: how deep a stack can learn",
    source="Vaswani et al. 2017, 3.1 (Add & Norm); He et al. 2016 (residuals); Xiong et al. 2020 (pre-norm, post-norm)",
    about="Stacks of 2 to 24 Transformer blocks learn which word stood before each word. Residual connection and "
    "normalisation are taken away one by one, and put after (post) or before (pre) the sublayers; the same updates, "
    "learning rate and warm-up for all. Measured are the loss on fresh texts, and before training how much of the last "
    "block's gradient reaches the first.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(9.0, 4.0),
)
