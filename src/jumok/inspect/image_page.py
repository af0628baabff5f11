"""An evaluation of images as one HTML file that works offline: the scores, and the images that were mistaken.

As label_page.py has it for texts; what is browsed are the mistakes alone, since pixels are larger than words. They
stand inside the page as data URIs: small ones as PNG, pixel by pixel, larger ones as JPEG.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path

from jumok.data.images.raw import Pixels
from jumok.inspect.example_browser import Browser, browser_block, shown
from jumok.inspect.html import escape
from jumok.inspect.image_mistakes import Mistake, as_image
from jumok.inspect.label_page import calibration_block, write_sections
from jumok.inspect.score_tables import confusion_block, headline_table, label_table
from jumok.tasks.label_scores import LabelScores

MOST_CHARACTERS = 8_000_000  # of all images together
SMALL = 64  # pixels: up to here nothing may be lost
QUALITY = 85
DATA_ORDER = ("file", "as in the data")


def write_image_page(
    path: str | Path, title: str, scores: LabelScores, mistakes: Sequence[Mistake], notes: Sequence[str] = ()
) -> None:
    """`mistakes`: those that are shown, the most confident first; `notes`: what else should be known, in sentences."""
    place = {label: number for number, label in enumerate(scores.labels)}
    folder = common_folder([one.name for one in mistakes])
    rows: list[list[object]] = []
    characters = 0
    for one in mistakes:
        image = data_uri(one.pixels)
        characters += len(image)
        if rows and characters > MOST_CHARACTERS:
            break
        numbers = [round(one.probability, 5), round(one.loss, 4)]
        rows.append(
            [one.number, shown(one.name[len(folder) :]), None, place[one.gold], place[one.said], *numbers, image]
        )
    browser = Browser(
        "images",
        [("", "all mistakes"), ("sure", "at least 90 % sure"), ("unsure", "less than 50 % sure")],
        [("", "most sure first"), ("unsure", "least sure first"), ("loss", "loss, highest first"), DATA_ORDER],
        scores.labels,
        "class",
        "names",
    )
    listing = browser_block(browser, rows, told(len(rows), scores, folder))
    if mistakes and is_small(mistakes[0].pixels):
        listing = listing.replace('class="examples images"', 'class="examples images enlarged"', 1)
    sections = [
        ("scores", "Scores", headline_table(scores.headline(), [*scores.notes(), *notes])),
        ("labels", "Classes", label_table(scores)),
        ("confusions", "Confusions", confusion_block(scores)),
        ("calibration", "Calibration", calibration_block(scores)),
        ("examples", "Mistakes", listing),
    ]
    write_sections(path, title, f"{scores.count:,} images, {len(scores.labels)} classes", sections)


def told(listed: int, scores: LabelScores, folder: str = "") -> str:
    """Which mistakes are listed, as HTML."""
    wrong = scores.count - int(scores.confusion.trace())
    if not wrong:
        return "<p>No image was taken for something else.</p>"
    below = f" Their names are those below <code>{escape(folder)}</code>." if folder else ""
    if listed == wrong:
        return f"<p>All images that were taken for something else, as the model looks at them.{below}</p>"
    return (
        f'<p class="left-out">To stay small, this page holds {listed:,} of the {wrong:,} images that were taken for '
        "something else: of each confusion those that the model was most sure of. The scores above are of all."
        f"{below}</p>"
    )


def common_folder(names: Sequence[str]) -> str:
    """What all names begin with, up to a slash: it would be written below every image."""
    low, high = min(names, default=""), max(names, default="")  # what these two share, all others between them share
    same = 0
    while same < min(len(low), len(high)) and low[same] == high[same]:
        same += 1
    return low[: low.rfind("/", 0, same) + 1]


def data_uri(pixels: Pixels) -> str:
    """(H, W, C) as an address that holds the image itself."""
    buffer = io.BytesIO()
    if is_small(pixels):
        kind = "png"
        as_image(pixels).save(buffer, "PNG", optimize=True)
    else:
        kind = "jpeg"
        as_image(pixels).save(buffer, "JPEG", quality=QUALITY)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def is_small(pixels: Pixels) -> bool:
    return max(pixels.shape[:2]) <= SMALL
