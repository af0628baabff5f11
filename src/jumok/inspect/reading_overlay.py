"""Where a model's grid lies on a picture: the picture as it is, not as it was brought to the model's size.

A model looks at h × w cells of its own picture, which was made of all of the given one (squash), of its middle (crop),
or of it and borders (pad). A box says what of the given picture the grid lies on, in shares of its width and height.
Between the middles of cells a map is interpolated in both directions (bilinear): M = R m Cᵀ, two small matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumok.data.images.picture import Fit
from jumok.inspect.attention import Weights

Numbers = NDArray[np.float64]
Size = tuple[int, int]  # height, width


class Box(NamedTuple):
    """From 0 to 1 across and down; beyond that where the model saw borders."""

    left: float = 0.0
    top: float = 0.0
    right: float = 1.0
    bottom: float = 1.0

    @property
    def shown(self) -> Box:
        """What of it is on the picture."""
        return Box(max(self.left, 0.0), max(self.top, 0.0), min(self.right, 1.0), min(self.bottom, 1.0))


WHOLE = Box()


def covered(picture: Size, model: Size, how: Fit) -> Box:
    """What of a picture of this size a model sees, as `data.images.picture.fit` does it."""
    if picture == model or how == "squash":
        return WHOLE
    if how == "crop":
        scale = min(side / wanted for side, wanted in zip(picture, model, strict=True))
        top, bottom = _middle(picture[0], model[0] * scale, scale == 1.0)
        left, right = _middle(picture[1], model[1] * scale, scale == 1.0)
        return Box(left, top, right, bottom)
    scale = max(side / wanted for side, wanted in zip(picture, model, strict=True))
    top, bottom = _bordered(picture[0], model[0], scale)
    left, right = _bordered(picture[1], model[1], scale)
    return Box(left, top, right, bottom)


def _middle(side: int, kept: float, whole: bool) -> tuple[float, float]:
    start = (side - round(kept)) // 2 if whole else max(0.0, (side - kept) / 2)
    return start / side, min(start + kept, side) / side


def _bordered(side: int, model: int, scale: float) -> tuple[float, float]:
    inner = max(1, min(model, round(side / scale)))
    border = (model - inner) // 2
    return -border / inner, (model - border) / inner


def middles(count: int, first: float, last: float) -> Numbers:
    """The middles of cells side by side between two edges, (count,)."""
    found: Numbers = first + (np.arange(count) + 0.5) / count * (last - first)
    return found


def spread(map_hw: Weights, box: Box, size: Size) -> Weights:
    """The map at every pixel of a picture of this size; 0 where the model saw nothing."""
    down = _between(middles(size[0], 0, 1), box.top, box.bottom, map_hw.shape[0])
    across = _between(middles(size[1], 0, 1), box.left, box.right, map_hw.shape[1])
    found: Weights = (down @ map_hw @ across.T).astype(np.float32)
    return found


def _between(places: Numbers, first: float, last: float, cells: int) -> Numbers:
    """(P, cells): how much each cell counts at each place: the two nearest share it, at the rim one has all."""
    at = (places - first) / (last - first) * cells - 0.5
    inside = (at >= -0.5) & (at <= cells - 0.5)
    at = at.clip(0, cells - 1)
    shares: Numbers = (1 - abs(at[:, None] - np.arange(cells))).clip(0) * inside[:, None]
    return shares
