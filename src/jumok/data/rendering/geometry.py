"""Where the letters of a line come to stand in a picture: bent to an arc, turned, sheared, seen from the side.

A point (u, v) of the line, from its middle, goes to

    bent:      φ = k u,  ρ = 1/k − v      →  X = ρ sin φ,  Y = 1/k − ρ cos φ
    seen:      (x, y) = (a X + b Y, c X + d Y) / (1 + p X + q Y)
    in a box:  the smallest upright box around the line, and margins

A picture is computed the other way round: for each of its pixels, which point of the line it shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jumok.data.rendering.table import Line

EDGE = 9  # points along the upper and lower edge of a line, which its box must hold


@dataclass(frozen=True)
class View:
    """How a line is seen, a number for each picture (B,)."""

    bend: Tensor  # the arc's angle, from one end to the other; never 0
    angle: Tensor  # how far it is turned
    shear: Tensor
    from_side: Tensor  # how much nearer one end is
    from_below: Tensor
    margins: Tensor  # (B, 4): left, right, top, bottom, in heights of the line


class Camera:
    """The way between points of lines and points of pictures, which go from 0 to 1 across and down."""

    def __init__(self, line: Line, view: View) -> None:
        self.middle_x, self.middle_y = (line.left + line.right) / 2, (line.top + line.bottom) / 2
        wide, high = (line.right - line.left).clamp(min=1), (line.bottom - line.top).clamp(min=1)
        # a single letter is higher than wide: bent as far as a word, its top would be folded over the arc's centre
        self.curvature = (view.bend / wide).clamp(-1 / high, 1 / high)
        scale = torch.maximum(wide, high) / 2
        sine, cosine = torch.sin(view.angle), torch.cos(view.angle)
        # rows of a matrix, columns for X, Y and 1
        self.matrix = (cosine, view.shear * cosine - sine, sine, view.shear * sine + cosine)
        self.vanishing = (view.from_side / scale, view.from_below / scale)
        along = torch.linspace(-0.5, 0.5, EDGE, device=wide.device)
        u_BE = torch.cat([along, along])[None] * wide[:, None]
        v_BE = high[:, None] * torch.cat([along.new_full((EDGE,), -0.5), along.new_full((EDGE,), 0.5)])[None]
        x_BE, y_BE = self._seen(*self._bent(u_BE, v_BE))
        left, right, top, bottom = x_BE.amin(1), x_BE.amax(1), y_BE.amin(1), y_BE.amax(1)
        unit = torch.minimum(bottom - top, high * 1.5)  # of a steep line the box is high, its margins are not
        add = view.margins * unit[:, None]
        self.left, self.top = left - add[:, 0], top - add[:, 2]
        self.wide, self.high = right + add[:, 1] - self.left, bottom + add[:, 3] - self.top

    def to_line(self, x_BP: Tensor, y_BP: Tensor) -> tuple[Tensor, Tensor]:
        """Points of the line that points of the picture show."""
        x_BP = self.left[:, None] + x_BP * self.wide[:, None]
        y_BP = self.top[:, None] + y_BP * self.high[:, None]
        (a, b, c, d), (p, q) = ([each[:, None] for each in group] for group in (self.matrix, self.vanishing))
        # a X + b Y = x (1 + p X + q Y) and c X + d Y = y (1 + p X + q Y), solved for X and Y
        xx, xy, yx, yy = a - p * x_BP, b - q * x_BP, c - p * y_BP, d - q * y_BP
        bottom = xx * yy - xy * yx
        bottom = torch.where(bottom.abs() < 1e-6, 1e-6, bottom)
        bent_x, bent_y = (x_BP * yy - y_BP * xy) / bottom, (y_BP * xx - x_BP * yx) / bottom
        k, sign = self.curvature[:, None], torch.sign(self.curvature)[:, None]
        from_centre = 1 / k - bent_y
        u_BP = torch.atan2(sign * bent_x, sign * from_centre) / k
        v_BP = 1 / k - sign * torch.sqrt(bent_x * bent_x + from_centre * from_centre)
        return u_BP + self.middle_x[:, None], v_BP + self.middle_y[:, None]

    def to_picture(self, x_BP: Tensor, y_BP: Tensor) -> tuple[Tensor, Tensor]:
        """Where points of the line are shown."""
        x_BP, y_BP = self._seen(*self._bent(x_BP - self.middle_x[:, None], y_BP - self.middle_y[:, None]))
        return (x_BP - self.left[:, None]) / self.wide[:, None], (y_BP - self.top[:, None]) / self.high[:, None]

    def _bent(self, u_BP: Tensor, v_BP: Tensor) -> tuple[Tensor, Tensor]:
        k = self.curvature[:, None]
        radius_BP = 1 / k - v_BP
        # 1/k − ρ cos φ = v cos φ + (1 − cos φ)/k, where (1 − cos φ)/k = 2 sin²(φ/2)/k loses no digits
        half_sine = torch.sin(k * u_BP / 2)
        return radius_BP * torch.sin(k * u_BP), v_BP * torch.cos(k * u_BP) + 2 * half_sine * half_sine / k

    def _seen(self, x_BP: Tensor, y_BP: Tensor) -> tuple[Tensor, Tensor]:
        (a, b, c, d), (p, q) = ([each[:, None] for each in group] for group in (self.matrix, self.vanishing))
        bottom = 1 + p * x_BP + q * y_BP
        return (a * x_BP + b * y_BP) / bottom, (c * x_BP + d * y_BP) / bottom
