"""What all pictures that matplotlib draws here have in common: style and file. The same input gives the same bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jumok.inspect.attention import visible
from jumok.inspect.fonts import families_for

Format = Literal["png", "svg"]
_METADATA: dict[str, dict[str, str | None]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": "jumok"}}


def ink_and_paper(dark: bool) -> tuple[str, str]:
    return ("#e6e8ec", "#14171c") if dark else ("#1d2129", "#ffffff")


@contextmanager
def style(text: str, dark: bool) -> Iterator[None]:
    """Our own style on top of matplotlib's defaults, so that a user's matplotlibrc changes nothing; in fonts that have
    every character of the text."""
    ink, paper = ink_and_paper(dark)
    settings = {
        "font.family": families_for(visible(text)),
        "svg.fonttype": "path",  # looks the same where the font is missing
        "svg.hashsalt": "jumok",  # the same ids in the same picture
        "text.usetex": False,
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.facecolor": paper,
        "figure.facecolor": paper,
        "savefig.facecolor": paper,
    }
    with matplotlib.style.context(["default", settings]):
        yield


def sheet(width: float, height: float) -> Figure:
    """Paper of this size, in inches, to draw on within `style`."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def saved(figure: Any, format: Format) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=format, dpi=150, bbox_inches="tight", pad_inches=0.15, metadata=_METADATA[format])
    return buffer.getvalue()


def short(text: str, longest: int) -> str:
    """Something that can be drawn; of what is too long the beginning and the end, in which names differ."""
    text = visible(text)
    if len(text) <= longest:
        return text
    end = (longest - 1) // 3
    return text[: longest - 1 - end] + "…" + text[len(text) - end :]
