"""The embedded series: what a tide gauge might write down every hour. Nothing of it is measured, all of it is drawn.

    y_t = 100 + 0.01 t + (1 + 0.6 sin(2πt/61)) · (8 sin(2πt/24) + 3 sin(4πt/24 + 1)) + z_t
    z_t = (0.9 if z_(t-1) ≤ 0 else −0.6) · z_(t-1) + ε_t,    ε_t ~ N(0, 1)

A slow rise, a daily rhythm that swells and shrinks with a period which is no multiple of a day (so that yesterday is a
poor guess for today), and weather with two regimes: what has fallen stays low for hours, what has risen falls at once.
"""

from __future__ import annotations

import numpy as np

from jumok.data.series import Series

DAY, SWELL = 24, 61


def tides(length: int) -> Series:
    """The first `length` hours; always the same ones."""
    hours = np.arange(length)
    rhythm = 8 * np.sin(2 * np.pi * hours / DAY) + 3 * np.sin(4 * np.pi * hours / DAY + 1)
    swell = 1 + 0.6 * np.sin(2 * np.pi * hours / SWELL)
    # RandomState's stream is frozen for good, that of the newer generators is not
    shocks = np.random.RandomState(1).standard_normal(length)
    weather = np.zeros(length)
    for hour in range(1, length):
        before = weather[hour - 1]
        weather[hour] = (0.9 if before <= 0 else -0.6) * before + shocks[hour]
    # rounded as a gauge would, and so that the last bit of a machine's sine makes no difference
    return Series("tides", np.round(100 + 0.01 * hours + swell * rhythm + weather, 2))


GENERATED = {"tides": tides}
