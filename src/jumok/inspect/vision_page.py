"""One image as one HTML file that works offline: press a patch and see what each head attends to from there; below it
what the answer hangs on, and what is known of the model beyond this image.

The weights of a layer's heads are bytes (inspect/canvas.py says how): a row for what stands for the image, then one for
each patch; a column for each patch. Behind them is a byte for each row, how much of it goes to tokens of no patch, in
255ths: a class token may have nearly all, and the steps of the patches' weights must not be coarse for that. More than
`MOST_PATCHES` patches would make a file that nobody can open, so there only the first row is kept.
"""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Weights
from jumok.inspect.canvas import packed
from jumok.inspect.html import document, embed, escape, picture, readable
from jumok.inspect.rollout import rolled_encoder
from jumok.inspect.vision import WHOLE, Map, check_place, check_view, every_layer, last_layer, predictions, rollout_maps
from jumok.inspect.vision_distance import attention_distances
from jumok.inspect.vision_gradient import gradient_maps
from jumok.inspect.vision_model_page import (
    ABOUT_DISTANCES,
    ABOUT_FILTERS,
    ABOUT_NETWORK,
    ABOUT_POSITIONS,
    DISTANCES,
    FILTERS,
    POSITIONS,
)
from jumok.inspect.vision_picture import Pixels, Shown, colour, draw_maps
from jumok.inspect.vision_plots import draw_distances, draw_filters, draw_positions
from jumok.inspect.vision_weights import Filters, position_kind, position_similarity, principal_filters
from jumok.models.vit import ImageLabeller

MOST_PATCHES, MOST_BYTES = 400, 8_000_000
LABELS, EXPLAINED = 5, 3  # that are listed, and whose maps are drawn
DOTS = 1.5  # of a picture's file for each of the page's
SCRIPTS = ["cividis.js", "head-weights.js", "vision.js"]
Drawn = Callable[[bool], bytes]  # a picture, dark or not


def page(
    model: ImageLabeller,
    image_CHW: Tensor,
    name: str,
    labels: Sequence[str],
    *,
    layer: int | None = None,
    head: int | None = None,
    place: int | None = None,
    label: int | None = None,
    network: Filters | None = None,
) -> str:
    """The page of one image (uint8). It opens at a layer, a head and a patch; `label` is explained beside the likeliest
    ones; `network` are the filters of a CNN to stand beside the model's."""
    if image_CHW.dim() != 3:
        raise BadInput(f"a page is about one image, (C, H, W), not {tuple(image_CHW.shape)}")
    layer = last_layer(model) if layer is None else layer
    check_view(model, layer, head)
    images_BCHW, image = image_CHW[None], image_CHW.cpu().numpy()
    grid = check_place(model, images_BCHW, place)
    if len(labels) != model.scores.out_features:
        raise BadInput(f"{len(labels)} names for a model that tells {model.scores.out_features} labels apart")
    chances = predictions(model, images_BCHW)[0]
    block, maps = _attention_block(model, images_BCHW, image, grid, (layer, head, place))
    body = "\n".join(
        [
            "<main>",
            f"<h1>{escape(name)}</h1>",
            _answers(chances, labels),
            "<noscript><p>The maps are drawn by a script inside this file; please allow it.</p></noscript>",
            block,
            _explained(model, images_BCHW, image, name, chances, labels, label),
            _beyond(model, images_BCHW, network),
            "</main>",
            maps,
        ]
    )
    return document(f"{name}: what the model looks at", body, ["page.css", "vision.css"], SCRIPTS)


def write_page(path: Path, text: str) -> None:
    with disk_errors_named("writing the page", path, "Choose another --out."):
        replace_file(path, text)


# ---------------------------------------------------------------- what can be pressed


def _attention_block(
    model: ImageLabeller,
    images_BCHW: Tensor,
    image: Pixels,
    grid: tuple[int, int],
    first: tuple[int, int | None, int | None],
) -> tuple[str, str]:
    """The part of the page that the script fills, and its data."""
    section, patches = model.section, grid[0] * grid[1]
    cells = (1 + patches) * patches * (section.layers * section.heads + 1)
    whole = patches <= MOST_PATCHES and cells <= MOST_BYTES
    every = _rows(model, images_BCHW, whole)
    layers = [
        {"name": str(number), "heads": section.heads, "about": f"layer {number}"} for number in range(section.layers)
    ]
    layers.append({"name": "all, by rollout", "heads": 1, "about": "all layers, followed by rollout"})
    data = {
        "grid": grid, "added": model.reader.added, "rows": 1 + patches if whole else 1,
        "size": [image.shape[2], image.shape[1]], "layers": layers, "whole": WHOLE[section.pooling],
        "first": [first[0], -1 if first[1] is None else first[1], -1 if first[2] is None or not whole else first[2]],
    }  # fmt: skip
    lines = "\n".join(_deflated(each, model.reader.added) for each in every)
    maps = embed("vision-data", data) + f'\n<script type="text/plain" id="vision-maps">{lines}</script>'
    how = (
        "Press a patch of the image to see where each head of the chosen layer looks from there."
        if whole
        else f"What each of {patches:,} patches looks at would be too much to keep in this file, so this is seen from "
        f"the {WHOLE[section.pooling]} only."
    )
    block = f"""<section id="vision" aria-label="Attention">
<h2>Where the heads look</h2>
<p>{how} Colours run from 0 to the largest weight of each map; under it stands how large that is, and how many times the
mean of the map.</p>
<img id="vision-image" alt="" hidden src="{_png_uri(image)}">
</section>"""
    return block, maps


def _rows(model: ImageLabeller, images_BCHW: Tensor, whole: bool) -> list[Weights]:
    """For each layer and head, and then for the rollout, (rows, tokens)."""
    added, means, found = model.reader.added, [], []
    pooled_T: Weights = np.zeros(0, np.float32)
    for part in every_layer(model, images_BCHW):
        pooled_T = part.pooled[0].numpy()
        for weights_BHTS in part.layers:
            means.append(weights_BHTS[0].mean(dim=0).numpy())
            found += [_kept(pooled_T, weights, added, whole) for weights in weights_BHTS[0].numpy()]
    return [*found, _kept(pooled_T, rolled_encoder(means), added, whole)]


def _kept(pooled_T: Weights, weights: Weights, added: int, whole: bool) -> Weights:
    first = (pooled_T @ weights)[None]
    return np.concatenate([first, weights[added:]]) if whole else first


def _deflated(weights: Weights, added: int) -> str:
    step, steps = packed(weights[:, added:])
    elsewhere = np.rint(255 * weights[:, :added].sum(axis=1).clip(0, 1)).astype(np.uint8)
    content = step.tobytes() + steps.tobytes() + elsewhere.tobytes()
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


# ---------------------------------------------------------------- the rest of the page


def _answers(chances: Weights, labels: Sequence[str]) -> str:
    best = np.argsort(-chances, kind="stable")[:LABELS]
    rows = "".join(
        f'<tr><th scope="row">{escape(labels[number])}</th><td><progress max="1" value="{chances[number]:.4f}">'
        f"</progress></td><td>{100 * chances[number]:.1f} %</td></tr>"
        for number in best
    )
    return f'<table class="answers"><caption>What the model says</caption>{rows}</table>'


def _explained(
    model: ImageLabeller,
    images_BCHW: Tensor,
    image: Pixels,
    name: str,
    chances: Weights,
    labels: Sequence[str],
    label: int | None,
) -> str:
    best = [int(number) for number in np.argsort(-chances, kind="stable")[:EXPLAINED]]
    asked = [label, *(number for number in best if number != label)][:EXPLAINED] if label is not None else best
    named = [f"{readable(labels[number])} {100 * chances[number]:.0f} %" for number in asked]
    found = gradient_maps(model, images_BCHW.expand(len(asked), -1, -1, -1), asked)
    rolled = rollout_maps(model, images_BCHW)
    maps = [*rolled, *(Map(one.values, said, one.elsewhere) for one, said in zip(found, named, strict=True))]
    about = (
        "Rollout follows attention through all layers. The maps behind it are for one label each: attention counts "
        "where more of it would have raised that label's score (gradient-weighted, Chefer et al. 2021)."
    )
    drawn = _figure(
        lambda dark: draw_maps([Shown(image, name, maps)], legend="", dark=dark),
        f"The image, rollout, and gradient-weighted maps for {', '.join(named)}",
    )
    return f"<section><h2>What the answer hangs on</h2>\n<p>{about}</p>\n{drawn}</section>"


def _beyond(model: ImageLabeller, images_BCHW: Tensor, network: Filters | None) -> str:
    """What does not depend on this image, or hardly."""
    distances = attention_distances(model, images_BCHW)
    filters = [principal_filters(model), *([network] if network is not None else [])]
    parts = [
        f"<h2>{DISTANCES}</h2>",
        f"<p>{ABOUT_DISTANCES}on this image alone. {ABOUT_NETWORK}</p>",
        _figure(lambda dark: draw_distances(distances, dark=dark), "Mean attention distance of each head by layer"),
        f"<h2>{FILTERS}</h2>",
        f"<p>{ABOUT_FILTERS}</p>",
        _figure(lambda dark: draw_filters(filters, dark=dark), "Principal components of the first layer's filters"),
    ]
    if model.reader.positions is not None:
        alike, kind = position_similarity(model, model.reader.grid(images_BCHW)), position_kind(model)
        parts += [
            f"<h2>{POSITIONS}</h2>",
            f"<p>{ABOUT_POSITIONS}</p>",
            _figure(lambda dark: draw_positions(alike, kind, dark=dark), "Cosines of position embeddings"),
        ]
    return "<section>" + "\n".join(parts) + "</section>"


def _figure(draw: Drawn, about: str) -> str:
    """A picture for a light page and one for a dark."""
    light, dark = draw(False), draw(True)
    width = round(struct.unpack(">I", light[16:20])[0] / DOTS)
    return f"<figure>{picture(light, dark, about, width)}</figure>"


def _png_uri(image: Pixels) -> str:
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(colour(image))).save(buffer, "PNG", optimize=True)
    return _uri(buffer.getvalue())


def _uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
