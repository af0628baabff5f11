"""Patches of an image in another order: seen with positions, and not seen without.

    f(x) = W mean_t(encoder(x_t E + P_t)) + b        without P:  f(x_π(1) … x_π(N)) = f(x_1 … x_N) for every order π

A Vision Transformer reads an image as a sequence of patches. Attention sees a set, and so does the mean over patches.
All that such a model knows of where a patch stands is what P tells it; and at the start P tells nothing: "all spatial
relations between the patches have to be learned from scratch" (Dosovitskiy et al. 2021, section 3.1).

The same small model learns the drawn shapes three times, from the same pictures: with learned positions; without any;
and with positions from pictures whose patches are shuffled, each picture in an order of its own, so that a place says
nothing of what stands there. Then some patches of held-out pictures, or all, change places among themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.images import drawn
from jumok.lab.experiment import Experiment, Numbers, Verdict
from jumok.lab.training import seeded, train
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection

LEARNED, NONE, BAG = "with positions", "without positions", "with positions, learned from shuffled patches"
WAYS = (LEARNED, NONE, BAG)
PICTURES, TESTED, UPDATES, BATCH, LEARNING_RATE = 30_000, 2000, 2000, 32, 0.0025
SIZE, PATCH = 16, 4
ROWS = SIZE // PATCH
PATCHES = ROWS * ROWS
MOVED = (0, 2, 4, 8, PATCHES)  # patches of a picture that change places; the last: all are shuffled
WIDTH = 64


class Pictures(NamedTuple):
    images: Tensor  # (N, C, H, W), 0 … 255
    labels: Tensor  # (N,)

    @classmethod
    def of(cls, split: str, count: int, seed: int) -> Pictures:
        """Other pictures for every seed."""
        numbers = np.arange(count) + seed * PICTURES
        images = torch.from_numpy(drawn.draw(numbers, split, SIZE)).permute(0, 3, 1, 2).contiguous()
        return cls(images, torch.from_numpy(drawn.labels_of(numbers)))


# ---------------------------------------------------------------- another order


def orders(count: int, moved: int, random: torch.Generator) -> Tensor:
    """(B, N) which patch comes to each place, for each picture anew. All: in any order, one as likely as another. Some:
    each comes to the place of the next that was chosen, so that as many have really moved."""
    any_BN = torch.rand(count, PATCHES, generator=random).argsort(dim=1)
    if moved == PATCHES:
        return any_BN
    chosen_BM = any_BN[:, :moved]
    return torch.arange(PATCHES).repeat(count, 1).scatter(1, chosen_BM.roll(1, dims=1), chosen_BM)


def reordered(images_BCHW: Tensor, order_BN: Tensor) -> Tensor:
    """The images with their patches in this order; inside a patch all pixels stay as they are."""
    batch, channels, height, width = images_BCHW.shape
    rows, columns = height // PATCH, width // PATCH
    grid = images_BCHW.view(batch, channels, rows, PATCH, columns, PATCH).permute(0, 2, 4, 1, 3, 5)
    chosen = grid.flatten(1, 2)[torch.arange(batch)[:, None], order_BN].view(grid.shape)
    return chosen.permute(0, 3, 1, 4, 2, 5).reshape(images_BCHW.shape)


# ---------------------------------------------------------------- learning


def build(way: str) -> ImageLabeller:
    section = VitSection(
        image=(SIZE, SIZE), patch=(PATCH, PATCH), width=WIDTH, heads=4, layers=2, feed_forward=128, pooling="mean",
        position="none" if way == NONE else "learned",
    )  # fmt: skip
    return ImageLabeller(section, len(drawn.CLASSES))


def learn(way: str, pictures: Pictures, seed: int, updates: int) -> ImageLabeller:
    with seeded(seed):
        model = build(way)
    rows, order = (torch.Generator().manual_seed(seed + number) for number in (0, 1_000_000))  # alike for all ways

    def loss_of(update: int) -> Tensor:
        chosen_B = torch.randint(len(pictures.images), (BATCH,), generator=rows)
        images_BCHW = pictures.images[chosen_B]
        if way == BAG:
            images_BCHW = reordered(images_BCHW, orders(BATCH, PATCHES, order))
        return F.cross_entropy(model(images_BCHW), pictures.labels[chosen_B])

    train(model, loss_of, updates, LEARNING_RATE)
    return model


@torch.inference_mode()
def scores(model: ImageLabeller, images_BCHW: Tensor) -> Tensor:
    return torch.cat([model(part) for part in torch.split(images_BCHW, 250)])


# ---------------------------------------------------------------- measured


def measure(seed: int, effort: float) -> Numbers:
    updates = max(2, round(UPDATES * effort))
    learned = Pictures.of("train", max(200, round(PICTURES * effort)), seed)
    held = Pictures.of("test", max(100, round(TESTED * effort)), seed)
    random = torch.Generator().manual_seed(seed)
    shown = [reordered(held.images, orders(len(held.images), moved, random)) for moved in MOVED]
    found = {way: seen(learn(way, learned, seed, updates), held, shown) for way in WAYS}
    return {
        "updates": updates,
        "pictures": len(learned.images),
        "pictures asked": len(held.images),
        **{key: {way: found[way][key] for way in WAYS} for key in ("right", "scores change by", "largest score")},
    }


def seen(model: ImageLabeller, held: Pictures, shown: Sequence[Tensor]) -> Numbers:
    """What a model says of the same pictures, with more and more patches in another place."""
    found = [scores(model, images) for images in shown]
    return {
        "right": [float((each.argmax(dim=1) == held.labels).float().mean()) for each in found],
        "scores change by": float((found[-1] - found[0]).abs().max()),
        "largest score": float(found[0].abs().max()),
    }


# ---------------------------------------------------------------- verdicts


def judge(seeds: Sequence[Numbers]) -> list[Verdict]:
    whole, shuffled = ({way: fmean(each["right"][way][n] for each in seeds) for way in WAYS} for n in (0, -1))
    change, others = max(_change(each, NONE) for each in seeds), min(_change(each, LEARNED) for each in seeds)
    largest = max(each["scores change by"][NONE] for each in seeds)
    apart = max(abs(each["right"][NONE][-1] - each["right"][NONE][0]) for each in seeds)
    asked = min(each["pictures asked"] for each in seeds)
    falls = [each["right"][LEARNED][0] - each["right"][LEARNED][-1] for each in seeds]
    gains = [each["right"][LEARNED][0] - each["right"][NONE][0] for each in seeds]
    chance = 1 / len(drawn.CLASSES)
    return [
        Verdict(
            "Without positions an image is a set of patches: shuffled, it gets the same scores, to rounding.",
            change < 1e-5 and others > 1e-2,
            f"All {PATCHES} patches shuffled, no score changes by more than {largest:.0e}, {change:.0e} of the largest "
            f"score; with positions by {others:.1f} of it, or more.",
        ),
        Verdict(
            "So its accuracy does not fall.",
            apart <= 1 / asked + 1e-9,  # one picture, whose two best scores may be equal to rounding
            f"{whole[NONE]:.1%} of whole pictures are named right, and {shuffled[NONE]:.1%} of shuffled ones.",
        ),
        Verdict(
            "With positions the accuracy falls when patches are shuffled.",
            _clear(falls),
            f"From {whole[LEARNED]:.1%} to {shuffled[LEARNED]:.1%}" + _spread(falls, "fall") + ".",
        ),
        Verdict(
            "A model that counts on positions does worse on shuffled patches than one that never had any.",
            shuffled[NONE] - shuffled[LEARNED] > 0.05,
            f"{shuffled[LEARNED]:.1%} against {shuffled[NONE]:.1%} (by chance {chance:.0%}).",
        ),
        Verdict(
            "Positions help: whole pictures are named right more often with them.",
            _clear(gains),
            f"{whole[LEARNED]:.1%} against {whole[NONE]:.1%}" + _spread(gains, "gain") + ".",
        ),
        Verdict(
            "Learned from shuffled patches, positions are worth nothing: a bag of patches is what is left.",
            shuffled[BAG] <= shuffled[NONE] + 0.02 and whole[LEARNED] - shuffled[BAG] > 0.05,
            f"{shuffled[BAG]:.1%} of shuffled pictures are named right; without positions {shuffled[NONE]:.1%}, and "
            f"with them and whole pictures {whole[LEARNED]:.1%}.",
        ),
    ]


def _change(numbers: Numbers, way: str) -> float:
    return float(numbers["scores change by"][way] / numbers["largest score"][way])


def _clear(gaps: Sequence[float]) -> bool:
    return fmean(gaps) > max(0.05, 2 * stdev(gaps) if len(gaps) > 1 else 0.0)


def _spread(gaps: Sequence[float], what: str) -> str:
    return f"; the {what} of {fmean(gaps):.1%} varies by {stdev(gaps):.1%} over seeds" if len(gaps) > 1 else ""


# ---------------------------------------------------------------- the figure

LOOKS = {LEARNED: ("#0072b2", "o", "-"), NONE: ("#d55e00", "s", "-"), BAG: ("#8a8f98", "^", (0, (4, 2)))}
EXAMPLES = (2, 14)  # numbers of held-out pictures: a heart and an arrow
SIDE = 0.64  # of a picture in the strip, in columns


def draw(figure: Any, seeds: Sequence[Numbers]) -> None:
    lines, strip = figure.add_axes((0.08, 0.47, 0.63, 0.51)), figure.add_axes((0.08, 0.01, 0.63, 0.33))
    ends: list[tuple[float, str]] = []
    for way in WAYS:
        colour, marker, line = LOOKS[way]
        right = np.array([each["right"][way] for each in seeds])
        lines.plot(range(len(MOVED)), right.mean(axis=0), color=colour, linestyle=line, marker=marker, label=way)
        lines.fill_between(
            range(len(MOVED)), right.min(axis=0), right.max(axis=0), color=colour, alpha=0.2, linewidth=0
        )
        ends.append((float(right[:, -1].mean()), way))
    chance = 1 / len(drawn.CLASSES)
    lines.plot((-0.45, len(MOVED) - 1), (chance, chance), color="#8a8f98", linestyle=(0, (1, 2)), linewidth=1)
    lines.annotate("by chance", (-0.4, chance), (0, 3), textcoords="offset points", fontsize=8)
    below = 0.0
    for height, way in sorted(ends):  # beside its line, and above the text before
        below = max(height, below)
        told = way.replace(", ", ",\n") + f"\n{height:.1%} when shuffled"
        lines.annotate(
            told, (len(MOVED) - 0.82, below), color=LOOKS[way][0], fontsize=9, va="center", annotation_clip=False
        )
        below += 0.15
    lines.set_xticks(range(len(MOVED)), ["none", *map(str, MOVED[1:-1]), f"all {PATCHES} shuffled"])
    lines.set(xlabel="patches that changed places", ylabel="pictures named right", ylim=(0, 1))
    lines.spines[["top", "right"]].set_visible(False)
    _strip(strip)
    for axes in (lines, strip):
        axes.set_xlim(-0.45, len(MOVED) - 0.55)


def _strip(axes: Any) -> None:
    """The same pictures in each column, with as many patches in another place as the tick above it says."""
    held = torch.from_numpy(drawn.draw(EXAMPLES, "test", SIZE)).permute(0, 3, 1, 2)
    random = torch.Generator().manual_seed(5)  # in which something is to be seen from two patches on
    for column, moved in enumerate(MOVED):
        shown = reordered(held, orders(len(held), moved, random)).permute(0, 2, 3, 1).numpy()
        for row, pixels in enumerate(shown):
            left, top = column - SIDE / 2, (SIDE + 0.06) * row
            axes.imshow(pixels, extent=(left, left + SIDE, top + SIDE, top), interpolation="nearest")
            for cut in np.arange(1, ROWS) * SIDE / ROWS:
                axes.plot([left + cut] * 2, [top, top + SIDE], color="white", linewidth=0.6)
                axes.plot([left, left + SIDE], [top + cut] * 2, color="white", linewidth=0.6)
    axes.set(ylim=((SIDE + 0.06) * len(held) - 0.04, -0.02), aspect="auto")
    axes.axis("off")


EXPERIMENT = Experiment(
    number=18,
    name="shuffled-patches",
    title="Patches of an image in another order, with positions and without",
    source="Dosovitskiy et al. 2021, section 3.1 and appendix D.4; Naseer et al. 2021",
    about="A small Vision Transformer learns the drawn shapes with learned positions, without any, and with positions "
    "from pictures whose patches are shuffled. Then patches of held-out pictures change places, and the three name the "
    "shapes again.",
    measure=measure,
    judge=judge,
    draw=draw,
    size=(9.0, 5.0),
)
