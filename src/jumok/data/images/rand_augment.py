"""RandAugment (Cubuk et al. 2020): a few operations on each picture, drawn out of 14, all at one magnitude.

The batch is put into a random order and dealt out to the operations (`augment_draws.py`), so that each computes on
about a fourteenth of the pictures, and its draws have the shapes they always have. Ranges are the usual ones: at
magnitude 10 shears of 0.3, turns by 30°, shifts by 0.45 of the side, enhancements by 0.9 (all of them either way), 4 of
8 bits, and all levels inverted.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from jumok.data.images import augment_colour as colour
from jumok.data.images.augment_draws import dealt, places, shuffled
from jumok.data.images.augment_geometry import warp

MOVED = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")
LEVELS = ("autocontrast", "equalize", "solarize", "posterize", "brightness", "contrast", "saturation", "sharpness")
OPERATIONS = ("identity", *LEVELS, *MOVED)
STRONGEST = 10.0


class RandAugment(nn.Module):
    """(B, C, H, W) of uint8, before and after."""

    moves: Tensor

    def __init__(self, operations: int, magnitude: float) -> None:
        super().__init__()
        self.operations, self.level = operations, magnitude / STRONGEST
        # on the device beforehand: a recording cannot fetch it
        self.register_buffer("moves", _moves(self.level), persistent=False)

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

        def on(names: tuple[str, ...], change: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
            first = OPERATIONS.index(names[0])
            some = places(count, len(OPERATIONS), first, first + len(names))
            images[some] = change(images[some], operation[some] - first, upwards[some])

        # which is 0 where it is the operation's turn: at both ends there may be a picture of its neighbour's
        on(("autocontrast",), lambda part, which, _: colour.autocontrast(part, which == 0))
        on(("equalize",), lambda part, which, _: colour.equalize(part, which == 0))
        threshold = 256 - int(256 * self.level)
        on(("solarize",), lambda part, which, _: colour.solarize(part, torch.where(which == 0, threshold, 256)))
        bits = 8 - round(4 * self.level)
        on(("posterize",), lambda part, which, _: colour.posterize(part, torch.where(which == 0, bits, 8)))
        on(("brightness",), lambda part, which, up: colour.brightness(part, self._factor(which == 0, up)))
        on(("contrast",), lambda part, which, up: colour.contrast(part, self._factor(which == 0, up)))
        on(("saturation",), lambda part, which, up: colour.saturation(part, self._factor(which == 0, up)))
        on(("sharpness",), lambda part, which, up: colour.sharpness(part, self._factor(which == 0, up)))
        on(MOVED, self._move)

    def _factor(self, wanted: Tensor, upwards: Tensor) -> Tensor:
        change = 0.9 * self.level
        return torch.where(wanted, torch.where(upwards == 1, 1 + change, 1 - change), 1.0)

    def _move(self, images: Tensor, which: Tensor, upwards: Tensor) -> Tensor:
        wanted = (which >= 0) & (which < len(MOVED))
        # the last row is no move at all
        row = torch.where(wanted, 2 * which + upwards, 2 * len(MOVED))
        return warp(images, in_pixels(self.moves.index_select(0, row), *images.shape[2:]))


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
