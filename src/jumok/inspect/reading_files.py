"""What `jumok attend` gives for pictures of words: a film (.html), a sheet of frames (.png, .svg), numbers (.json), or
lines for the terminal: a strip for each character, the picture's columns from left to right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.console import Console

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Weights, visible
from jumok.inspect.pictures import check_picture_path
from jumok.inspect.reading_attention import Frames
from jumok.inspect.reading_drift import drift_of
from jumok.tasks.intervals import signed

KINDS = (".html", ".png", ".svg", ".json")
BLOCKS, ASCII = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
WIDEST = 64  # cells of a strip: with more columns, neighbours share one
FORMAT = 1


def write_frames(shown: Sequence[Frames], path: Path, dark: bool = False) -> None:
    """Into a file; its ending decides."""
    check_picture_path(path, KINDS)
    kind = path.suffix.lower()
    content: str | bytes
    if kind == ".html":
        from jumok.inspect.reading_film import page

        content = page(shown)
    elif kind == ".json":
        content = to_json(shown)
    else:
        from jumok.inspect.reading_picture import draw_frames

        content = draw_frames(shown, "png" if kind == ".png" else "svg", dark=dark)
    with disk_errors_named("writing the picture", path, "Choose another --out."):
        replace_file(path, content)


# ---------------------------------------------------------------- numbers


def to_json(shown: Sequence[Frames]) -> str:
    pictures = [_picture(one) for one in shown]
    return json.dumps({"format": FORMAT, "pictures": pictures}, ensure_ascii=False, allow_nan=False) + "\n"


def _picture(one: Frames) -> dict[str, Any]:
    drift = drift_of(one)
    characters = [
        {
            "character": character, "probability": round(one.confidences[number], 6),
            "centre": [round(float(value), 6) for value in one.centres[number]],
            "place": round(float(drift.places[number]), 6), "drift": round(float(drift.widths[number]), 6),
            "drift_share": round(float(drift.shares[number]), 6),
            "weights": [[round(float(value), 7) for value in row] for row in one.maps[number]],
        }
        for number, character in enumerate(one.characters)
    ]  # fmt: skip
    return {
        "name": one.name, "size": list(one.size), "text": one.text, "probability": round(one.confidence, 6),
        "about": one.about, "max_difference": one.max_difference, "grid": list(one.maps.shape[1:]),
        "box": [round(value, 6) for value in one.box], "drift": drift.to_json(), "characters": characters,
    }  # fmt: skip


# ---------------------------------------------------------------- the terminal


def show(shown: Sequence[Frames], console: Console | None = None) -> None:
    console = console or Console()
    console.file.write(lines(shown, console.encoding))
    console.file.flush()


def lines(shown: Sequence[Frames], encoding: str = "utf-8") -> str:
    """For each picture what was read, then a line for each character."""
    shades, minus = (BLOCKS, "−") if _is_rich(encoding) else (ASCII, "-")
    told: list[str] = []
    for one in shown:
        drift = drift_of(one)
        told += [f"{visible(one.name)}: {visible(one.text) or '(nothing)'}   {100 * one.confidence:.1f} %"]
        names = [visible(character) if not character.isspace() else "_" for character in one.characters]
        margin = max(map(cell_len, names), default=1)
        for number, name in enumerate(names):
            strip, away = _strip(one.maps[number], shades), signed(float(drift.widths[number]), 2).replace("−", minus)
            label = name + " " * (margin - cell_len(name))
            told.append(f"  {label} {100 * one.confidences[number]:5.1f} %  |{strip}|  drift {away:>6}")
        if names:
            even = "" if drift.known else ", if they stand evenly"
            told.append(f"  mean drift {signed(drift.mean, 2)} character widths{even}")
        told.append("")
    told.append("; ".join(dict.fromkeys(one.about for one in shown)))
    return "".join(line.encode(encoding, "backslashreplace").decode(encoding).rstrip() + "\n" for line in told)


def _is_rich(encoding: str) -> bool:
    try:
        return bool((BLOCKS + "−").encode(encoding))
    except (UnicodeEncodeError, LookupError):
        return False


def _strip(map_hw: Weights, shades: str) -> str:
    columns = map_hw.sum(axis=0)
    if len(columns) > WIDEST:
        columns = np.array([part.sum() for part in np.array_split(columns, WIDEST)])
    most = float(columns.max())
    levels = np.rint((len(shades) - 1) * columns / most).astype(int) if most > 0 else np.zeros(len(columns), int)
    return "".join(shades[level] for level in levels)
