"""Where each character of a word looked, frame by frame, as one HTML file that works offline.

What is said in numbers stands in the page itself; a script draws maps over pictures on canvases and plays them. A map
comes as a byte for each cell of the grid, in 255ths of its largest weight, and is interpolated where it is drawn.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from jumok.data.images.picture import fit
from jumok.data.images.raw import Pixels
from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Weights
from jumok.inspect.html import document, embed, escape, readable
from jumok.inspect.reading_attention import MOST_PICTURES, Frames
from jumok.inspect.reading_drift import WordDrift, drift_of
from jumok.tasks.intervals import signed

STYLES, SCRIPTS = ["page.css", "reading-film.css"], ["cividis.js", "reading-film.js"]
SMALL = (44, 150)  # pixels of a picture in the index
MOST_LABELS = 40  # characters in the strip of drift: with more they would lie over each other
ATTENTION = (
    "While the model wrote a character it looked at the picture: the brighter, the more. Colours run from 0 to the "
    "largest weight of each frame."
)
COLUMNS = (
    "This model has no attention. Each column of the picture says a character or nothing, and the brighter a column, "
    "the more of the ways to write this word have the character there (CTC: the columns where it was written)."
)
KEYS = (
    '<p class="quiet">Keys, in a film: <kbd>Space</kbd> plays and stops, <kbd>←</kbd> <kbd>→</kbd> step, '
    "<kbd>Home</kbd> and <kbd>End</kbd> go to the first and last character. Point at a character to see its frame.</p>"
)


def page(shown: Sequence[Frames]) -> str:
    """The page of one picture, or of several with an index."""
    if not shown:
        raise BadInput("there is no picture to show: give one at least")
    if len(shown) > MOST_PICTURES:
        raise BadInput(f"{len(shown)} pictures are too many for one page (at most {MOST_PICTURES}): give fewer at once")
    drifts = [drift_of(one) for one in shown]
    body = "\n".join(
        [
            "<main>",
            "<h1>Where each character looked</h1>",
            f"<p>{COLUMNS if shown[0].is_ctc else ATTENTION}</p>",
            f'<div class="legend"><span>0</span><i></i><span>largest</span><span>{escape(shown[0].about)}</span></div>',
            _about_places(shown),
            KEYS,
            "<noscript><p>The films are drawn by a script inside this file; please allow it.</p></noscript>",
            _index(shown) if len(shown) > 1 else "",
            *(_section(number, *both) for number, both in enumerate(zip(shown, drifts, strict=True))),
            "</main>",
            embed("reading-data", [_data(*both) for both in zip(shown, drifts, strict=True)]),
        ]
    )
    title = shown[0].text or "nothing" if len(shown) == 1 else f"{len(shown)} pictures"
    return document(f"Where each character looked: {title}", body, STYLES, SCRIPTS)


def write_page(path: Path, shown: Sequence[Frames]) -> None:
    with disk_errors_named("writing the page", path, "Choose another --out."):
        replace_file(path, page(shown))


def _about_places(shown: Sequence[Frames]) -> str:
    where = (
        "Where the characters of a picture are is not known here, so they are taken to stand evenly: character t of n "
        "at (t − ½) / n of the width. Where letters are of unequal width or the word does not fill its picture, a part "
        "of the drift is due to that."
        if any(one.places is None for one in shown)
        else "Where the characters are is known: the pictures were rendered."
    )
    return (
        '<p>The <span class="ring">ring</span> is the centre of a map, the <span class="tick">triangles</span> are the '
        f"character. What lies between them is the drift. {where}</p>"
    )


# ---------------------------------------------------------------- a picture


def _index(shown: Sequence[Frames]) -> str:
    entries = "".join(
        f'<li><a href="#picture-{number}"><img src="{_uri(_small(one.picture))}" alt="">'
        f"<b>{_quoted(one)}</b><small>{escape(Path(one.name).name)}</small></a></li>"
        for number, one in enumerate(shown, 1)
    )
    return f'<nav class="pictures" aria-label="Pictures"><ol>{entries}</ol></nav>'


def _section(index: int, one: Frames, drift: WordDrift) -> str:
    number = index + 1
    about = f"{escape(Path(one.name).name)} · {100 * one.confidence:.1f} % sure{' of the word' * bool(one.text)}"
    parts = [
        f'<section class="reading" id="picture-{number}" data-index="{index}" aria-labelledby="word-{number}">',
        f'<header><h2 id="word-{number}">{_quoted(one)}</h2><span>{about}</span></header>',
        f'<img class="source" alt="The picture {escape(one.name)}" src="{_uri(one.picture)}">',
    ]
    if one.characters:
        parts += ['<div class="film"></div>', _strip(one, drift), _summary(drift), _table(number, one, drift)]
    else:
        parts.append(
            '<p class="quiet">The model reads nothing in this picture, so there is no character to follow.</p>'
        )
    return "\n".join([*parts, "</section>"])


def _quoted(one: Frames) -> str:
    return f"“{escape(one.text)}”" if one.text else "nothing"


def _summary(drift: WordDrift) -> str:
    said = f"Mean drift {signed(drift.mean, 2)} character widths, {100 * drift.mean_share:.1f} % of the picture's width"
    if math.isfinite(drift.slope):
        more = "more" if drift.slope >= 0 else "less"
        said += f"; {signed(abs(drift.slope), 3)} {more} with each character (least squares over {len(drift.widths)})"
    return f'<p class="drift-mean">{said}.</p>'


def _strip(one: Frames, drift: WordDrift) -> str:
    """Below the picture and as wide: a line from each character to the centre of its map."""
    lines = []
    labels = len(one.characters) <= MOST_LABELS
    for number, character in enumerate(one.characters):
        place, centre = (f"{100 * min(max(x, 0.0), 1.0):.2f}%" for x in (drift.places[number], drift.centres[number]))
        label = f'<text x="{place}" y="12">{escape(blank(character))}</text>' if labels else ""
        lines.append(
            f'<g data-frame="{number}">{label}<line x1="{place}" y1="18" x2="{centre}" y2="42"/>'
            f'<circle cx="{centre}" cy="42" r="4"/></g>'
        )
    about = "Each character where it is, above, and the centre of its map, below"
    return f'<svg class="strip" role="img" aria-label="{about}">{"".join(lines)}</svg>'


def _table(number: int, one: Frames, drift: WordDrift) -> str:
    rows = "".join(
        f'<tr data-frame="{place}"><th scope="row">{escape(blank(character))}</th>'
        f"<td>{100 * one.confidences[place]:.1f} %</td><td>{one.maps[place].max():.3f}</td>"
        f"<td>{drift.centres[place]:.3f}</td><td>{drift.places[place]:.3f}</td>"
        f"<td>{signed(drift.shares[place], 3)}</td><td>{signed(drift.widths[place], 2)}</td></tr>"
        for place, character in enumerate(one.characters)
    )
    heads = "".join(
        f'<th scope="col">{name}</th>'
        for name in (
            "character", "probability", "largest weight", "centre of the map, x", "character, x",
            "drift (of the width)", "drift (character widths)",
        )
    )  # fmt: skip
    where = "known" if drift.known else "taken to stand evenly"
    return (
        f'<details><summary>In numbers</summary><div class="scroll"><table><caption>x runs from 0 to 1 across the '
        f"picture; places of characters are {where}.</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
        "</table></div></details>"
    )


# ---------------------------------------------------------------- for the script


def _data(one: Frames, drift: WordDrift) -> dict[str, Any]:
    frames = [
        {
            "character": readable(blank(character)), "sure": round(one.confidences[number], 6),
            "most": round(float(one.maps[number].max()), 5), "map": _bytes(one.maps[number]),
            "centre": [round(float(value), 5) for value in one.centres[number]],
            "place": round(float(drift.places[number]), 5), "drift": round(float(drift.widths[number]), 6),
            "share": round(float(drift.shares[number]), 6),
        }
        for number, character in enumerate(one.characters)
    ]  # fmt: skip
    box = [round(value, 6) for value in one.box]
    return {"word": readable(one.text), "grid": list(one.maps.shape[1:]), "box": box, "frames": frames}


def _bytes(map_hw: Weights) -> str:
    most = float(map_hw.max())
    steps = np.rint(255 * (map_hw / most if most > 0 else map_hw)).astype(np.uint8)
    return base64.b64encode(steps.tobytes()).decode("ascii")


def blank(character: str) -> str:
    """A blank can be seen."""
    return "␣" if character.isspace() else character


def _small(picture: Pixels) -> Pixels:
    height, width = picture.shape[:2]
    scale = min(2 * SMALL[0] / height, 2 * SMALL[1] / width)  # twice as many pixels: for a phone
    return (
        fit(picture, (max(1, round(height * scale)), max(1, round(width * scale))), "squash") if scale < 1 else picture
    )


def _uri(picture: Pixels) -> str:
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
