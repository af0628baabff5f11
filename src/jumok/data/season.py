"""The season of a series, found in its autocorrelation.

    r_k = Σ_t x_t x_(t+k) / Σ_t x_t²                                   the trend taken out before
    comb(m) = mean over j of  r_(jm) − mean of r around jm             one period wide, j = 1 … 4

At a season's multiples the autocorrelation stands above its surroundings; a slow wandering, which also keeps it high,
lifts the surroundings as much and cancels out. The same is done to the differences, where a season stands out that the
wandering would bury. Several multiples of a season are equally good, so the shortest of the best is taken.
"""

from __future__ import annotations

import numpy as np

from jumok.data.series import Values

TEETH = 4
LEAST = 0.3  # of a comb that counts: random walks of 300 steps reach it in fewer than one of ten
LONGEST = 10_000  # steps: a year of hours
NEARLY = 0.8  # of the best comb: what is at least this good and shorter is taken


def find_season(values: Values) -> int:
    """The number of steps after which the series repeats itself; 1 where it does not."""
    if len(values) < 12:
        return 1
    combs = [_comb(part) for part in (values, np.diff(values))]
    comb = max(combs, key=lambda each: float(each.max()))
    best = float(comb.max())
    if best < max(LEAST, 4 / np.sqrt(len(values))):
        return 1
    season = int(np.argmax(comb >= NEARLY * best))
    while season + 1 < len(comb) and comb[season + 1] > comb[season]:
        season += 1
    return season


def autocorrelation(values: Values) -> Values:
    """r_0 … r_(n-1) of the values without their straight-line trend, each over as many pairs as it has."""
    count = len(values)
    steps = np.arange(count, dtype=np.float64)
    steps -= steps.mean()
    level = values - values.mean()
    level -= steps * (steps @ level) / (steps @ steps)
    spectrum = np.fft.rfft(level, 2 * count)
    products = np.fft.irfft(spectrum * spectrum.conj())[:count]
    tiny = 1e-12 * float(values @ values)  # a straight line has nothing left
    if products[0] <= tiny:
        return np.zeros(count)
    return products / products[0] * count / np.arange(count, 0, -1)


def _comb(values: Values) -> Values:
    related = autocorrelation(values)
    summed = np.concatenate(([0.0], np.cumsum(related)))
    count = len(values)
    result = np.zeros(min(count // 3, LONGEST) + 1)
    for season in range(2, len(result)):
        teeth = season * np.arange(1, max(1, min(TEETH, int(count * 2 / 3 / season - 0.5))) + 1)
        start = teeth - season // 2
        around = (summed[start + season] - summed[start]) / season
        result[season] = np.mean(related[teeth] - around)
    return result
