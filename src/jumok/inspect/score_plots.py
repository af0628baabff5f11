"""Drawings beside scores, as SVG inside a page: how sure and how right a classifier is; predicted by true numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jumok.inspect.curve import short
from jumok.tasks.intervals import wilson
from jumok.tasks.label_scores import Bin

WIDTH, HEIGHT = 480, 330
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 44
STRIP = 64  # below the plot: how many examples each bar stands for
LAYERS = 12  # of points: where many lie, more layers cover each other and it is darker
Place = Callable[[float], float]


def _scale(low: float, high: float, start: float, end: float) -> Place:
    return lambda value: round(start + (end - start) * (value - low) / (high - low), 1)


# ---------------------------------------------------------------- calibration


def reliability(bins: Sequence[Bin]) -> str:
    """Accuracy by top probability, with intervals, over the line where both are the same; and the counts below."""
    x, y = _scale(0, 1, LEFT, WIDTH - RIGHT), _scale(0, 1, HEIGHT - BOTTOM - STRIP, TOP)
    most = max(each.count for each in bins)
    floor = HEIGHT - BOTTOM
    bar = _scale(0, most, floor, floor - STRIP + 26)
    parts = [*_grid(y, (0, 0.25, 0.5, 0.75, 1), _percent)]
    for each in bins:
        left, right = x(each.low) + 1.5, x(each.high) - 1.5
        middle = round((left + right) / 2, 1)
        if each.accuracy is None or each.confidence is None:
            continue
        told = (
            f"{_percent(each.low)} to {_percent(each.high)} sure: {each.count:,} examples, "
            f"{_percent(each.confidence, 1)} sure on average, {_percent(each.accuracy, 1)} right"
        )
        between = wilson(each.right, each.count)
        parts.append(
            f'<g><title>{told}</title><rect class="back" x="{left}" y="{TOP}" width="{right - left:.1f}" '
            f'height="{floor - TOP}"/>{_box("bar", left, right, y(each.accuracy), y(0))}'
            f'<line class="whisker" x1="{middle}" x2="{middle}" y1="{y(between.low)}" y2="{y(between.high)}"/>'
            f'<line class="sure" x1="{left}" x2="{right:.1f}" y1="{y(each.confidence)}" y2="{y(each.confidence)}"/>'
            f"{_box('count', left, right, bar(each.count), floor)}"
            f'<text class="small" x="{middle}" y="{bar(each.count) - 4:.1f}" text-anchor="middle">'
            f"{_count(each.count)}</text>"
            "</g>"
        )
    parts.append(f'<line class="same" x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}"/>')
    parts += [_below(x(tick / 5), _percent(tick / 5), floor + 16) for tick in range(6)]
    parts.append(_below((LEFT + WIDTH - RIGHT) / 2, "how sure the model was (top probability)", HEIGHT - 8))
    return _svg(parts, "Accuracy by how sure the model was, and the number of examples")


def _box(name: str, left: float, right: float, top: float, bottom: float) -> str:
    return (
        f'<rect class="{name}" x="{left}" y="{top}" width="{right - left:.1f}" height="{max(bottom - top, 0.5):.1f}"/>'
    )


# ---------------------------------------------------------------- numbers


def scatter(gold: Sequence[float], predicted: Sequence[float]) -> str:
    """Each example a point, over the line where the prediction is right; both axes have the same range."""
    low, high = min(*gold, *predicted, math.inf), max(*gold, *predicted, -math.inf)
    if low == high:
        low, high = low - 0.5, high + 0.5
    ticks = ticks_between(low, high)
    room = 0.03 * (high - low)
    x = _scale(low - room, high + room, LEFT, WIDTH - RIGHT)
    y = _scale(low - room, high + room, HEIGHT - BOTTOM, TOP)
    size = 5 if len(gold) <= 500 else 3.5 if len(gold) <= 5000 else 2
    layers = [
        "".join(
            f"M{x(true)} {y(given)}h0"
            for true, given in zip(gold[first::LAYERS], predicted[first::LAYERS], strict=True)
        )
        for first in range(LAYERS)
    ]
    parts = [
        *_grid(y, ticks, short),
        *(_below(x(tick), short(tick), HEIGHT - BOTTOM + 17) for tick in ticks),
        f'<line class="same" x1="{x(low)}" y1="{y(low)}" x2="{x(high)}" y2="{y(high)}"/>',
        *(f'<path class="points" stroke-width="{size}" d="{path}"/>' for path in layers if path),
        _below((LEFT + WIDTH - RIGHT) / 2, "true value (across), predicted (up)", HEIGHT - 8),
    ]
    return _svg(parts, "Predicted by true values")


def ticks_between(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about `count` of them."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.10g}") for number in range(first, last + 1)]


# ---------------------------------------------------------------- what both need


def _grid(y: Place, ticks: Sequence[float], said: Callable[[float], str]) -> list[str]:
    return [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick)}" y2="{y(tick)}"/>'
        f'<text x="{LEFT - 7}" y="{y(tick) + 4}" text-anchor="end">{said(tick)}</text>'
        for tick in ticks
    ]


def _below(x: float, text: str, y: float) -> str:
    anchor = "end" if x > WIDTH - RIGHT - 14 else "middle"
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'


def _svg(parts: Sequence[str], told: str) -> str:
    inner = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{told}">\n{inner}\n</svg>'


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def _count(count: int) -> str:
    return f"{count:,}" if count < 10_000 else f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"
