"""What is known of an image model beyond one image as an HTML file that works offline: what is shown, in a sentence;
the picture, for a light page and for a dark one; and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

import numpy as np

from jumok.inspect.attention import Weights
from jumok.inspect.html import document, escape, picture
from jumok.inspect.score_tables import numbers_table
from jumok.inspect.vision_distance import Distances
from jumok.inspect.vision_plots import draw_distances, draw_filters, draw_positions
from jumok.inspect.vision_weights import Filters

FILTERS = "What the first layer looks for"
ABOUT_FILTERS = "The principal components of the first layer's filters, the strongest first. Grey is 0."
POSITIONS = "What the model knows about places"
ABOUT_POSITIONS = "One small map for each patch, where the patch is: how alike its position is to all others."
DISTANCES = "How far the heads look"
ABOUT_DISTANCES = (
    "A dot is a head: the mean distance in pixels between a patch and the patches it looks at, weighted by how much, "
)
ABOUT_NETWORK = (
    "Beside it is a convolutional network, which sees no more than its receptive field: how wide that is stands at "
    "each point."
)


def filters_page(groups: Sequence[Filters], name: str = "") -> str:
    """Of `principal_filters`, and of a CNN's (`network_filters`) where there are some; `name` is the run's."""
    first, *others = groups
    about = ABOUT_FILTERS
    if others:
        beside = " and ".join(one.name for one in others)
        about += f" Beside them: the first filters of {beside}, as they are, the largest first."
    rows = [
        (str(number), f"{100 * share:.1f} %", f"{100 * total:.1f} %")
        for number, (share, total) in enumerate(zip(first.shares, np.cumsum(first.shares), strict=True), 1)
    ]
    table = numbers_table(("component", "of the variance", "with those before"), rows)
    return _page(FILTERS, name, about, lambda dark: draw_filters(groups, "svg", dark=dark), table)


def positions_page(alike: Weights, kind: str, name: str = "") -> str:
    """`alike` (h, w, h, w): cosines, as `position_similarity` gives them."""
    rows = [
        (str(step), *("" if value is None else f"{value:.3f}".replace("-", "−") for value in both))
        for step, both in enumerate(zip_longest(*by_steps(alike)))
    ][1:]  # each is like itself
    about = (
        f"{ABOUT_POSITIONS} Positions are {kind}. The table has the mean cosine of two patches that lie so many steps "
        "apart in one column, and in one row; --out positions.json has them all."
    )
    table = numbers_table(("steps apart", "in a column", "in a row"), rows)
    return _page(POSITIONS, name, about, lambda dark: draw_positions(alike, kind, "svg", dark=dark), table)


def by_steps(alike: Weights) -> tuple[list[float], list[float]]:
    """The mean cosine of places 0, 1, 2, … rows apart in the same column, and columns apart in the same row."""
    rows, columns = alike.shape[:2]
    down = np.einsum("icjc->ijc", alike)  # (row, row, column)
    across = np.einsum("rirj->ijr", alike)
    return (
        [float(np.diagonal(down, step).mean()) for step in range(rows)],
        [float(np.diagonal(across, step).mean()) for step in range(columns)],
    )


def distances_page(found: Distances, name: str = "") -> str:
    many = f"{found.images:,} image{'s' * (found.images != 1)} of {found.image[0]}×{found.image[1]} pixels"
    about = (
        f"{ABOUT_DISTANCES}on {many}. {ABOUT_NETWORK} A head that looks at all patches alike: {found.uniform:.1f} "
        "pixels, which is the dashed line."
    )
    names = ("layer", "nearest head", "mean", "farthest head", "CNN: if it looked evenly", "CNN: width of its field")
    rows = [
        (
            str(layer),
            *(f"{pixels:.1f}" for pixels in (*found.spread(layer), found.field_distances[layer])),
            f"{found.fields[layer]:,}",
        )
        for layer in range(found.layers)
    ]
    table = numbers_table(names, rows)
    return _page(DISTANCES, name, about, lambda dark: draw_distances(found, "svg", dark=dark), table)


def _page(heading: str, name: str, about: str, draw: Callable[[bool], bytes], table: str) -> str:
    title = f"{name}: {heading[0].lower()}{heading[1:]}" if name else heading
    figure = f"<figure>{picture(draw(False), draw(True), heading)}</figure>"
    body = (
        f"<main>\n<h1>{escape(title)}</h1>\n<p>{escape(about)}</p>\n{figure}\n"
        f"<section><h2>The numbers</h2>\n{table}</section>\n</main>"
    )
    return document(title, body, ["page.css", "evaluation.css", "vision.css"], [])
