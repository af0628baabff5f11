"""Decoding as a film: word after word, what the model has written and where it looked for it, as an animated GIF."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from PIL import Image

from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Attention
from jumok.inspect.drawing import ink_and_paper, short, style
from jumok.inspect.figures import AXES, LONGEST_LABEL, heat_map

START, STEP, END = 1200, 900, 3500  # milliseconds: each word can be read, the whole be looked at
MOST_TOKENS = 60  # more rows would be a film of minutes, with words too small to read
LOOKED = 0.06  # keys with less than this step back while a word is written
DOTS = 110  # an inch: a film is looked at on a screen


def film(attention: Attention, *, title: str = "", dark: bool = False) -> bytes:
    """A frame before the first word, then one for each: its row appears, and the words so far below. It loops."""
    if not attention.source or not attention.target:
        raise BadInput("there is no film to show: the sentence is empty")
    longest = max(len(attention.source), len(attention.target))
    if longest > MOST_TOKENS:
        raise BadInput(f"{longest} tokens are too many for a film (at most {MOST_TOKENS}); write .html instead")
    text = "".join((AXES, title, "0123456789.−attentionweight…␣", *attention.source, *attention.target))
    with style(text, dark):
        stage = _Stage(attention, title, dark)
        images = [stage.frame(written) for written in range(len(attention.target) + 1)]
    palette = _palette(dark)
    frames = [_indexed(image, palette) for image in images]
    times = [START, *[STEP] * (len(frames) - 2), END]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0)
    return buffer.getvalue()


def write_film(path: str | Path, attention: Attention, *, title: str = "", dark: bool = False) -> None:
    moving = film(attention, title=title, dark=dark)
    with disk_errors_named("writing the film", Path(path), "Choose another place."):
        replace_file(Path(path), moving)


def _palette(dark: bool) -> NDArray[np.uint8]:
    """The colours of all frames: the scale as it is, and the shades between paper and what is written on it."""
    ink, paper, accent = (np.array(to_rgb(colour)) for colour in (*ink_and_paper(dark), _accent(dark)))
    scale = matplotlib.colormaps["cividis"](np.linspace(0, 1, 160))[:, :3]
    shades = [paper + (colour - paper) * np.linspace(0, 1, 48)[:, None] for colour in (ink, accent)]
    return (np.concatenate([scale, *shades]) * 255).round().astype(np.uint8)


def _indexed(image: Image.Image, palette: NDArray[np.uint8]) -> Image.Image:
    """Each dot as the number of the nearest colour. (Pillow's own way rounds colours before it compares them.)"""
    dots = np.asarray(image).astype(np.int32)
    codes, where = np.unique(dots @ np.array([65536, 256, 1], dtype=np.int32), return_inverse=True)
    colours = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
    nearest = ((colours[:, None] - palette[None].astype(np.int32)) ** 2).sum(axis=2).argmin(axis=1)
    indexed = Image.fromarray(nearest.astype(np.uint8)[where].reshape(dots.shape[:2]), "P")
    indexed.putpalette(palette.tobytes())
    return indexed


def _accent(dark: bool) -> str:
    return "#8ab4f8" if dark else "#1a56b0"


class _Stage:
    """The whole picture, of which a frame shows what is there so far: nothing moves from frame to frame."""

    def __init__(self, attention: Attention, title: str, dark: bool) -> None:
        self.weights = attention.weights
        self.ink, _ = ink_and_paper(dark)
        self.accent = _accent(dark)
        self.figure = heat_map(attention, title, dark)
        self.figure.set_dpi(DOTS)
        self.axes = self.figure.axes[0]
        columns = self.weights.shape[1]
        self.now = self.axes.add_patch(
            Rectangle((-0.5, -0.5), columns, 1, fill=False, edgecolor=self.accent, linewidth=2.2, clip_on=False)
        )
        self.words = self._written([short(token, LONGEST_LABEL) for token in attention.target])
        self.queries, self.keys = self.axes.get_yticklabels(), self.axes.get_xticklabels()
        renderer = self.figure.canvas.get_renderer()
        self.box = self.figure.get_tightbbox(renderer).padded(0.15)

    def _written(self, tokens: list[str]) -> list[Any]:
        """The words below the map, side by side, in as many lines as they need."""
        renderer = self.figure.canvas.get_renderer()
        width, height = (size * DOTS for size in self.figure.get_size_inches())
        line, space, right = 0.3 * DOTS, 0.07 * DOTS, max(width, 3.4 * DOTS)
        x, y, words = 0.0, -0.68 * DOTS, []
        for token in tokens:
            word = self.axes.text(0, 0, token, transform=self.axes.transAxes, fontsize=13, parse_math=False)
            wide = word.get_window_extent(renderer).width
            if x and x + wide > right:
                x, y = 0.0, y - line
            word.set_position((x / width, y / height))
            x += wide + space
            words.append(word)
        return words

    def frame(self, written: int) -> Image.Image:
        now = written - 1
        shown = np.full_like(self.weights, np.nan)
        shown[:written] = self.weights[:written]
        self.axes.images[0].set_data(shown)
        self.now.set_visible(now >= 0)
        self.now.set_y(now - 0.5)
        for labels in (self.queries, self.words):
            for row, text in enumerate(labels):
                text.set_visible(row <= now)
                text.set_color(self.accent if row == now else self.ink)
        for column, text in enumerate(self.keys):
            faint = now >= 0 and self.weights[now, column] < LOOKED  # what is not a number is not known to be little
            text.set_alpha(0.35 if faint else 1.0)
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DOTS, bbox_inches=self.box)
        return Image.open(buffer).convert("RGB")
