"""Rendered words on one sheet, as PNG: each picture, below it what it says. What a model learns from, to be looked at
before it learns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jumok.data.images.raw import Pixels
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import visible
from jumok.inspect.drawing import saved, sheet, short, style

COLUMNS = 6
WIDE, LINE, GAP = 1.7, 0.2, 0.12  # inches: a picture, a line of text, what is between them
LONGEST = 26  # characters below a picture


def write_rendered_sheet(path: Path, pictures: Sequence[tuple[Pixels, str]], dark: bool = False) -> None:
    """Pictures (H, W, C), all of one size, with their texts."""
    made = rendered_sheet(pictures, dark)
    with disk_errors_named("writing the sheet", path, "Choose another place."):
        replace_file(path, made)


def rendered_sheet(pictures: Sequence[tuple[Pixels, str]], dark: bool = False) -> bytes:
    with style("".join(text for _, text in pictures) + "…–", dark):
        high, wide = pictures[0][0].shape[:2]
        tall = WIDE * high / wide
        columns = min(COLUMNS, len(pictures))
        rows = -(-len(pictures) // columns)
        across, down = WIDE + GAP, tall + LINE + GAP
        width, height = columns * across - GAP, rows * down - GAP
        figure = sheet(width, height)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        for place, (pixels, text) in enumerate(pictures):
            row, column = divmod(place, columns)
            left, top = column * across, row * down
            shown = pixels.repeat(3, axis=2) if pixels.shape[2] == 1 else pixels
            axes.imshow(shown, extent=(left, left + WIDE, top + tall, top), aspect="auto", interpolation="nearest")
            label = short(visible(text), LONGEST) or "–"
            axes.text(left, top + tall + 0.03, label, va="top", fontsize=8, parse_math=False)
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        return saved(figure, "png")
