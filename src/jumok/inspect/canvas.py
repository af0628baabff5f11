"""All layers and heads of a sentence in one HTML file that works offline: drawn on a canvas, from packed bytes.

JSON numbers and a table cell for each weight end at a few hundred words. Here a weight is one byte: a step between 0
and the largest weight of its row,

    α_ts ≈ step_t · n_ts        n_ts ∈ 0 … 254 (255: not a number)        step_t = max_s α_ts / 254

so that it is off by step_t / 2 at most, which the page states with each number. The bytes are deflated (the browser
inflates them by itself, DecompressionStream) and written in base64.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.all_heads import AllHeads, Kind
from jumok.inspect.attention import Weights
from jumok.inspect.forced import Side
from jumok.inspect.html import INTRODUCTIONS, SIDES, Languages, document, embed, escape, readable

LARGEST = 10_000_000  # bytes of a file: more than this is no pleasure to open on a phone or to send
SPARE = 1000  # for the words about what is missing
SCRIPTS = ["cividis.js", "head-weights.js", "small-map.js", "map-labels.js", "heads.js"]
STEPS, NO_NUMBER = 254, 255


@dataclass(frozen=True)
class Kept:
    """How many of the maps a page holds, and how large it is."""

    maps: int
    all_maps: int
    size: int

    def __str__(self) -> str:
        """A word about what is missing; empty where nothing is."""
        if self.maps == self.all_maps:
            return ""
        return (
            f"{self.maps} of {self.all_maps} maps are kept, so that the file stays below {LARGEST / 1e6:g} MB: each "
            "layer's mean first, then from every layer in turn the head that looks most sharply. A shorter text keeps "
            "more."
        )


def page(
    shown: AllHeads,
    title: str = "Attention",
    languages: Languages = ("", ""),
    first: tuple[str, int | None, int | None] = ("cross", None, None),
    largest: int = LARGEST,
) -> tuple[str, Kept]:
    """The page, and what it keeps. It opens at `first`: a kind, a layer, a head."""
    shell = _whole(shown, [{} for _ in shown.kinds], title, languages, first)
    maps = _chosen(shown, largest - len(shell.encode()) - SPARE - 24 * shown.maps())
    text = _whole(shown, maps, title, languages, first)
    return text, Kept(sum(map(len, maps)), shown.maps(), len(text.encode()))


def write_heads(
    path: str | Path,
    shown: AllHeads,
    title: str = "Attention",
    languages: Languages = ("", ""),
    first: tuple[str, int | None, int | None] = ("cross", None, None),
) -> Kept:
    text, kept = page(shown, title, languages, first)
    with disk_errors_named("writing the page", Path(path), "Choose another place."):
        replace_file(Path(path), text)
    return kept


def _whole(
    shown: AllHeads,
    maps: Sequence[dict[int, str]],
    title: str,
    languages: Languages,
    first: tuple[str, int | None, int | None],
) -> str:
    groups = [_group(kind, kept) for kind, kept in zip(shown.kinds, maps, strict=True)]
    data = embed("heads-data", {"languages": list(languages), "groups": groups, "first": list(first)})
    blocks = "".join(
        f'<script type="text/plain" id="maps-{number}">' + "\n".join(kept.values()) + "</script>\n"
        for number, kept in enumerate(maps)
    )
    missing = str(Kept(sum(map(len, maps)), shown.maps(), 0))
    note = f'<p class="missing">{escape(missing)}</p>' if missing else ""
    body = f"""<main>
<h1>{escape(title)}</h1>
{note}
<noscript><p>The pictures are drawn by a script inside this file; please allow it.</p></noscript>
<div id="heads"></div>
</main>
{data}
{blocks}"""
    return document(title, body, ["page.css", "heads.css"], SCRIPTS)


# ---------------------------------------------------------------- bytes


def packed(weights: Weights) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """(T, S) weights as the step of each row and a byte for each weight."""
    known = np.isfinite(weights)
    highest = np.max(weights, axis=1, initial=0.0, where=known)
    step = (highest / STEPS).astype("<f4")
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(step[:, None] > 0, weights / step[:, None], 0.0)
    bytes_TS = np.where(known, np.clip(np.rint(np.where(known, steps, 0.0)), 0, STEPS), NO_NUMBER)
    return step, bytes_TS.astype(np.uint8)


def _deflated(weights: Weights) -> str:
    step, bytes_TS = packed(weights)
    return base64.b64encode(zlib.compress(step.tobytes() + bytes_TS.tobytes(), 6)).decode("ascii")


def _chosen(shown: AllHeads, room: int) -> list[dict[int, str]]:
    """For each kind its maps (number → packed), as many as there is room for; at least one."""
    taken: list[dict[int, str]] = [{} for _ in shown.kinds]
    size = 0
    for group, number in _by_worth(shown):
        text = _deflated(shown.kinds[group].weights[number])
        if size and size + len(text) + 1 > room:
            break
        taken[group][number] = text
        size += len(text) + 1
    return [dict(sorted(maps.items())) for maps in taken]


def _by_worth(shown: AllHeads) -> Iterator[tuple[int, int]]:
    """(kind, map): the means first; then from every layer in turn its sharpest head, its second sharpest, …"""
    rounds: list[tuple[int, int, int]] = []
    for group, kind in enumerate(shown.kinds):
        by_layer: dict[int, list[tuple[float, int]]] = {}
        for number, place in enumerate(kind.places):
            if place.head is None:
                rounds.append((-1, group, number))
            else:
                by_layer.setdefault(place.layer, []).append((-_sharpness(kind.weights[number]), number))
        for heads in by_layer.values():
            rounds += [(turn, group, number) for turn, (_, number) in enumerate(sorted(heads))]
    yield from ((group, number) for _, group, number in sorted(rounds))


def _sharpness(weights: Weights) -> float:
    """The mean over the rows of their largest weight."""
    return float(np.nan_to_num(weights).max(axis=1, initial=0.0).mean()) if weights.size else 0.0


# ---------------------------------------------------------------- what the script is told


def _group(kind: Kind, maps: dict[int, str]) -> dict[str, Any]:
    places = [kind.places[number] for number in maps]
    return {
        "kind": kind.kind,
        "about": INTRODUCTIONS.get(kind.kind, INTRODUCTIONS["cross"]),
        "sides": SIDES.get(kind.kind, SIDES["cross"]),
        "keys": _side(kind.keys),
        "queries": _side(kind.queries),
        "heads": kind.heads(),
        "maps": [[place.layer, -1 if place.head is None else place.head] for place in places],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "tokens": [readable(token) for token in side.tokens],
        "words": [-1 if word is None else word for word in side.words],
        "texts": [readable(text) for text in side.texts],
    }
