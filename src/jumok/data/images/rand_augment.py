"""RandAugment (Cubuk et al. 2020): a few operations on each picture, drawn out of 14, all at one magnitude, or each at
one of its own (as Müller and Hutter 2021 draw it).

The batch is put into a random order and dealt out to the operations (`augment_draws.py`), so that each computes on
about a fourteenth of the pictures, and its draws have the shapes they always have. Ranges are the usual ones: at
magnitude 10 shears of 0.3, turns by 30°, shifts by 0.45 of the side, enhancements by 0.9 (all of them either way), 4 of
8 bits, and all levels inverted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from jumok.data.images import augment_colour as colour
from jumok.data.images.augment_draws import dealt, places, shuffled
from jumok.data.images.augment_geometry import Around, warp

MOVED = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")
LEVELS = ("autocontrast", "equalize", "solarize", "posterize", "brightness", "contrast", "saturation", "sharpness")
OPERATIONS = ("identity", *LEVELS, *MOVED)
STRONGEST = 10.0
STEPS = 31  # magnitudes that are drawn from, where they are drawn


class RandAugment(nn.Module):
    """(B, C, H, W) of uint8, before and after."""

    levels: Tensor  # (S,)
    moves: Tensor  # (S, 11, 7)
    thresholds: Tensor  # (S,)
    bits: Tensor  # (S,)

    def __init__(self, operations: int, magnitude: float, spread: float = 0.0, beyond: Around = "black") -> None:
        super().__init__()
        self.operations = operations
        self.beyond: Literal["zeros", "reflection"] = "zeros" if beyond == "black" else "reflection"
        low, high = max(0.0, magnitude - spread) / STRONGEST, magnitude / STRONGEST
        steps = STEPS if low < high else 1
        levels = [high - (high - low) * step / max(1, steps - 1) for step in range(steps)]
        # on the device beforehand: a recording cannot fetch it
        self.register_buffer("levels", torch.tensor(levels), persistent=False)
        self.register_buffer("moves", torch.stack([_moves(level) for level in levels]), persistent=False)
        thresholds = torch.tensor([256 - int(256 * level) for level in levels])
        self.register_buffer("thresholds", thresholds, persistent=False)
        self.register_buffer("bits", torch.tensor([8 - round(4 * level) for level in levels]), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        count, device = len(images), images.device
        order = torch.arange(count, device=device)
        for _ in range(self.operations):
            another = shuffled(count, device)
            order, images = order.index_select(0, another), images.index_select(0, another)
            self._deal(images)
        return images.index_select(0, order.argsort())

    def _deal(self, images: Tensor) -> None:
        """One operation on each of these pictures, which are in a random order; in place."""
        count, device = len(images), images.device
        operation = dealt(count, len(OPERATIONS), device)
        upwards = torch.randint(0, 2, (count,), device=device)
        steps = len(self.levels)
        step = torch.randint(0, steps, (count,), device=device) if steps > 1 else torch.zeros_like(upwards)

        def on(names: tuple[str, ...], change: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]) -> None:
            first = OPERATIONS.index(names[0])
            some = places(count, len(OPERATIONS), first, first + len(names))
            images[some] = change(images[some], operation[some] - first, upwards[some], step[some])

        # which is 0 where it is the operation's turn: at both ends there may be a picture of its neighbour's
        on(("autocontrast",), lambda part, which, *_: colour.autocontrast(part, which == 0))
        on(("equalize",), lambda part, which, *_: colour.equalize(part, which == 0))

        def solarize(part: Tensor, which: Tensor, _: Tensor, step: Tensor) -> Tensor:
            return colour.solarize(part, torch.where(which == 0, self.thresholds.index_select(0, step), 256))

        def posterize(part: Tensor, which: Tensor, _: Tensor, step: Tensor) -> Tensor:
            return colour.posterize(part, torch.where(which == 0, self.bits.index_select(0, step), 8))

        on(("solarize",), solarize)
        on(("posterize",), posterize)
        for name in ("brightness", "contrast", "saturation", "sharpness"):
            enhance: Callable[[Tensor, Tensor], Tensor] = getattr(colour, name)
            on((name,), lambda part, which, *drawn, do=enhance: do(part, self._factor(which == 0, *drawn)))
        on(MOVED, self._move)

    def _factor(self, wanted: Tensor, upwards: Tensor, step: Tensor) -> Tensor:
        change = 0.9 * self.levels.index_select(0, step)
        return torch.where(wanted, torch.where(upwards == 1, 1 + change, 1 - change), 1.0)

    def _move(self, images: Tensor, which: Tensor, upwards: Tensor, step: Tensor) -> Tensor:
        wanted = (which >= 0) & (which < len(MOVED))
        # the last row is no move at all
        row = torch.where(wanted, 2 * which + upwards, 2 * len(MOVED))
        moves = self.moves.flatten(0, 1).index_select(0, step * self.moves.size(1) + row)
        return warp(images, in_pixels(moves, *images.shape[2:]), self.beyond)


def in_pixels(moves: Tensor, height: int, width: int) -> Tensor:
    """The maps a … f (B, 6) of moves (B, 7): a, b, d, e, shares of the sides, and whether it is around the middle."""
    a, b, d, e, right, down, centred = moves.unbind(1)
    middle_x, middle_y = width / 2, height / 2
    c = right * width + centred * (middle_x - a * middle_x - b * middle_y)
    f = down * height + centred * (middle_y - d * middle_x - e * middle_y)
    return torch.stack((a, b, c, d, e, f), 1)


def _moves(level: float) -> Tensor:
    """Each of MOVED one way and the other, then none: (11, 7)."""
    rows: list[tuple[float, ...]] = []
    for name in MOVED:
        for sign in (-1, 1):
            angle, shear, moved = math.radians(30 * level * sign), 0.3 * level * sign, 0.45 * level * sign
            rows.append(
                {
                    "rotate": (math.cos(angle), -math.sin(angle), math.sin(angle), math.cos(angle), 0, 0, 1),
                    "shear_x": (1, shear, 0, 1, 0, 0, 0),
                    "shear_y": (1, 0, shear, 1, 0, 0, 0),
                    "translate_x": (1, 0, 0, 1, moved, 0, 0),
                    "translate_y": (1, 0, 0, 1, 0, moved, 0),
                }[name]
            )
    return torch.tensor([*rows, (1, 0, 0, 1, 0, 0, 0)], dtype=torch.float32)
