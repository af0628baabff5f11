"""How a training went, as small SVG pictures for a page: one for each quantity, readable without any script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumok.inspect.html import embed, escape

WIDTH, HEIGHT = 480, 230
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 10, 30  # margins around the plot
MOST_POINTS = 400  # more than the plot has pixels to tell apart
SHADES = ("first", "second", "third", "fourth")  # of the curves in one picture
_NOT_A_SCORE = {"step", "loss", "mae", "perplexity", "best", "seconds", "tokens", "sentences", "learning_rate"}

Point = tuple[float, float | None]  # (step, value); None where it was not a number


@dataclass(frozen=True)
class Series:
    name: str
    points: list[Point]

    @property
    def finite(self) -> list[tuple[float, float]]:
        return [(step, value) for step, value in self.points if value is not None]


@dataclass(frozen=True)
class Panel:
    title: str
    series: list[Series]


def panels(events: Iterable[Any], counted: str = "tokens") -> list[Panel]:
    """What metrics.jsonl tells: loss, scores on held-out data, learning rate, speed; only what is there."""
    known = [event for event in events if isinstance(event, Mapping) and _is_step(event.get("step"))]
    training = [event for event in known if event.get("event") == "train"]
    validation = [event for event in known if event.get("event") == "valid"]
    scores = dict.fromkeys(
        key for event in validation for key, value in event.items() if key not in _NOT_A_SCORE and _is_number(value)
    )
    candidates = [
        Panel("Loss", [series_of("training", "loss", training), series_of("held-out", "loss", validation)]),
        Panel("Scores on held-out data", [series_of(score_name(key), key, validation) for key in scores]),
        Panel("Learning rate", [series_of("learning rate", "learning_rate", training)]),
        Panel("Speed", [series_of(f"{counted} per second", "tokens_per_second", training)]),
    ]
    kept = [Panel(panel.title, [series for series in panel.series if series.finite]) for panel in candidates]
    return [panel for panel in kept if panel.series]


def curve_block(events: Iterable[Any], counted: str = "tokens") -> str:
    """The pictures and their numbers. The page needs report.css and curve.js. `counted`: what speed is measured in."""
    drawn = panels(events, counted)
    if not drawn:
        return '<p class="quiet">No training steps were recorded.</p>'
    figures = "\n".join(_figure(index, panel) for index, panel in enumerate(drawn))
    data = [
        {"names": [series.name for series in panel.series], "points": [series.finite for series in panel.series]}
        for panel in drawn
    ]
    return f'<div class="curves">\n{figures}\n</div>\n{embed("curve-data", data)}'


# ---------------------------------------------------------------- from events to points


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    """A number that can be drawn; a loss of 1e30 has exploded and is no more than that."""
    return float(value) if _is_number(value) and abs(value) < 1e30 else None


def _is_step(value: object) -> bool:
    step = _number(value)
    return step is not None and step >= 0


def score_name(key: str) -> str:
    return {"bleu": "BLEU", "chrf": "chrF"}.get(key.lower(), key.replace("_", " "))


def series_of(name: str, key: str, events: Sequence[Mapping[str, Any]]) -> Series:
    points = [(float(event["step"]), _number(event[key])) for event in events if key in event]
    return Series(name, _thin(sorted(points, key=lambda point: point[0])))


def _thin(points: list[Point]) -> list[Point]:
    """Means over neighbouring points where there are too many; a stretch without any number stays a gap."""
    size = -(-len(points) // MOST_POINTS)
    if size <= 1:
        return points
    result: list[Point] = []
    for start in range(0, len(points), size):
        group = points[start : start + size]
        values = [value for _, value in group if value is not None]
        result.append((group[-1][0], sum(values) / len(values) if values else None))
    return result


# ---------------------------------------------------------------- from points to SVG


def ticks(highest: float, count: int = 5) -> list[float]:
    """Round numbers from 0 to at least `highest`, about `count` of them."""
    if highest < 1e-300:  # zero, or so little that its parts are zero
        return [0.0, 1.0]
    raw = highest / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    return [step * index for index in range(math.ceil(highest / step - 1e-9) + 1)]


def _figure(index: int, panel: Panel) -> str:
    last_step = max(step for series in panel.series for step, _ in series.finite)
    highest = max(0.0, *(value for series in panel.series for _, value in series.finite))
    x_ticks, y_ticks = ticks(last_step), ticks(highest)
    x_end, y_end = max(last_step, 1.0), y_ticks[-1]

    def place(step: float, value: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * step / x_end
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * max(value, 0.0) / y_end
        return round(x, 1), round(y, 1)

    parts = []
    for tick in y_ticks:
        y = place(0, tick)[1]
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{short(tick)}</text>')
    for tick in x_ticks:
        if tick <= x_end:
            x = place(tick, 0)[0]
            anchor = "end" if x > WIDTH - RIGHT - 12 else "middle"
            parts.append(f'<text x="{x}" y="{HEIGHT - 10}" text-anchor="{anchor}">{short(tick)}</text>')
    for number, series in enumerate(panel.series):
        shade = SHADES[number % len(SHADES)]
        for stretch in _stretches(series.points):
            corners = [place(*point) for point in stretch]
            if len(corners) > 1:
                line = " ".join(f"{x},{y}" for x, y in corners)
                parts.append(f'<polyline class="{shade}" points="{line}"/>')
            if len(series.points) <= 40 or len(corners) == 1:
                parts += [f'<circle class="{shade}" cx="{x}" cy="{y}" r="2.6"/>' for x, y in corners]
    parts.append(f'<line class="cross" x1="0" x2="0" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
    names = [
        f'<span class="{SHADES[number % len(SHADES)]}">{escape(series.name)} '
        f"<b>{_exact(series.finite[-1][1])}</b></span>"
        for number, series in enumerate(panel.series)
    ]
    steps = f"step {short(last_step)}" if last_step < 1000 else f"step {last_step:,.0f}"
    svg = "\n".join(parts)
    return (
        f'<figure class="curve" data-index="{index}" data-left="{LEFT}" data-right="{WIDTH - RIGHT}" '
        f'data-end="{x_end:g}">\n<h3>{escape(panel.title)} <small>by step</small></h3>\n'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" aria-label="{escape(panel.title)} by step">\n'
        f'{svg}\n</svg>\n<figcaption aria-live="polite"><span class="at">{steps}</span> {" ".join(names)}</figcaption>'
        "</figure>"
    )


def _stretches(points: Sequence[Point]) -> Iterator[list[tuple[float, float]]]:
    """The points between the gaps."""
    stretch: list[tuple[float, float]] = []
    for step, value in points:
        if value is not None:
            stretch.append((step, value))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def short(value: float) -> str:
    """A number for an axis: 0.0005, 2.5, 12k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.6g}{letter}"
    return f"{value:.6g}"


def _exact(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
