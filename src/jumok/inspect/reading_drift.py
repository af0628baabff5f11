"""Attention drift: how far from a character its map lies (Cheng et al. 2017, "Focusing Attention").

    x̄_t = Σ_s α_ts x_s        drift d_t = x̄_t − x_t        in shares of the picture's width, and in character widths

x_t is where the character is. The renderer of words knows it; of a user's picture nobody does, and characters are taken
to stand evenly, x_t = (t + ½) / n. A character's width is the mean distance between neighbours, then 1 / n.

A decoder that writes one character after the other may lose its place as a word goes on. So what matters beside the
mean of |d| is whether it grows along the word: the slope b of |d_t| = a + b t by least squares. Attention that is
spread over all of the picture pulls every centre to the middle: d is above 0 in front then, and below 0 behind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumok.inspect.reading_attention import Frames
from jumok.inspect.reading_overlay import Numbers, middles
from jumok.tasks.intervals import finite

NARROWEST = 1e-3  # of a picture's width: letters one below the other have no width to divide by


@dataclass(frozen=True, eq=False)
class WordDrift:
    centres: Numbers  # (n,) x of the maps' centres, from 0 to 1
    places: Numbers  # (n,) x of the characters
    known: bool = True  # or taken to stand evenly

    @property
    def width(self) -> float:
        """Of a character."""
        return width_of(self.places)

    @property
    def shares(self) -> Numbers:
        """Of the picture's width; above 0: to the right of the character."""
        return self.centres - self.places

    @property
    def widths(self) -> Numbers:
        """The same in character widths."""
        found: Numbers = self.shares / self.width
        return found

    @property
    def mean(self) -> float:
        """Of |d|, in character widths; nan where nothing was read."""
        return float(abs(self.widths).mean()) if len(self.widths) else math.nan

    @property
    def mean_share(self) -> float:
        return float(abs(self.shares).mean()) if len(self.shares) else math.nan

    @property
    def slope(self) -> float:
        """Character widths more of |d| with each character; nan below three."""
        if len(self.widths) < 3:
            return math.nan
        above, below = slope_sums(abs(self.widths))
        return above / below

    def to_json(self) -> dict[str, Any]:
        return {
            "places": "known" if self.known else "evenly spaced",
            "character_width": finite(self.width) if len(self.places) else None,
            "mean": finite(self.mean),
            "mean_share": finite(self.mean_share),
            "slope": finite(self.slope),
        }


def drift_of(frames: Frames) -> WordDrift:
    if frames.places is not None:
        return WordDrift(frames.centres[:, 0], frames.places)
    shown, count = frames.box.shown, len(frames.characters)
    return WordDrift(frames.centres[:, 0], middles(count, shown.left, shown.right) if count else np.zeros(0), False)


def width_of(places: Numbers) -> float:
    """The mean distance between neighbours; a character that is alone has the picture."""
    return max(NARROWEST, float(abs(np.diff(places)).mean())) if len(places) > 1 else 1.0


def slope_sums(values: Numbers) -> tuple[float, float]:
    """b = above / below is the slope of the line through these."""
    away = np.arange(len(values)) - (len(values) - 1) / 2
    return float((away * (values - values.mean())).sum()), float((away**2).sum())
