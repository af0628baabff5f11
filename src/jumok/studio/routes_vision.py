"""What the page "vision" asks: what a Vision Transformer says of a picture, and where it looks (inspect/vision*.py).

`open` takes a picture, one of the drawn examples or a file in base64, and gives it a name (`picture`) by which all else
asks for it: "example-0", or the digest of a file's bytes, of which the last few are kept. `looks` gives for each head
(first their mean) where it looks: a row for what stands for the image, then one for each patch; a column for each
patch, and a last one for what goes to no patch.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
from collections import OrderedDict
from typing import Annotated, Any

import numpy as np
import torch
from PIL import Image
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from torch import Tensor

from jumok.data.images.drawn import draw
from jumok.data.images.picture import fit, pixels_of
from jumok.data.images.raw import Pixels, RawImage
from jumok.errors import BadInput
from jumok.inspect.rollout import rolled_encoder
from jumok.inspect.vision import (
    WHOLE,
    check_place,
    check_view,
    every_layer,
    looked,
    predictions,
    start_of,
)
from jumok.inspect.vision_distance import attention_distances
from jumok.inspect.vision_gradient import gradient_maps
from jumok.inspect.vision_weights import principal_filters
from jumok.studio.answers import Asked, asked, computed, floats, json_answer, post, shelf_of
from jumok.studio.shelf import Shelf
from jumok.tasks.image_classifier import ImageClassifier

EXAMPLES = (3, 14, 25)  # numbers of drawn pictures of the test split: what no model has learned from
DRAWN = 96  # pixels of an example that a model larger than the drawings' own 32 is shown
KEPT = 8  # files
MOST_PATCHES = 400  # of which each one's looks are given at once
MOST_LETTERS = 16 << 20


class AskOpen(Asked):
    run: str
    example: Annotated[int, Field(ge=0, lt=len(EXAMPLES))] | None = None
    file: Annotated[str, Field(max_length=MOST_LETTERS)] | None = None  # base64
    name: str = "picture"
    picture: str | None = None  # one that was opened before


class Ask(Asked):
    run: str
    picture: str


class AskLooks(Ask):
    layer: Annotated[int, Field(ge=0)] | None = None  # None: all layers, by rollout
    place: Annotated[int, Field(ge=0)] | None = None  # of a picture of many patches: the only row beside the first


class AskGradient(Ask):
    label: Annotated[int, Field(ge=0)] | None = None


class AskRun(Asked):
    run: str


# ---------------------------------------------------------------- pictures

_files: OrderedDict[str, RawImage] = OrderedDict()
_last: list[tuple[Any, str, Tensor, str]] = []  # what was decoded last, and for whom: a view asks several times


def _remembered(ask: AskOpen) -> str:
    """The name of the picture that is asked for."""
    given = [one for one in (ask.example, ask.file, ask.picture) if one is not None]
    if len(given) != 1:
        raise BadInput("name an example, a file, or a picture that was opened before: one of them")
    if ask.picture is not None:
        return ask.picture
    if ask.example is not None:
        return f"example-{ask.example}"
    try:
        data = base64.b64decode(ask.file or "", validate=True)
    except (binascii.Error, ValueError):
        raise BadInput(f"{_short(ask.name)}: this is no base64") from None
    name = hashlib.sha256(data).hexdigest()[:24]
    _files[name] = RawImage(_short(ask.name), None, data)
    _files.move_to_end(name)
    while len(_files) > KEPT:
        _files.popitem(last=False)
    return name


def _short(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:79]}…"


def _seen(classifier: ImageClassifier, picture: str) -> tuple[Tensor, str]:
    """The picture as the model sees it, (1, C, H, W), and its name."""
    for known, name, images, said in _last:
        if known is classifier and name == picture:
            return images, said
    section = classifier.model.section
    if picture in [f"example-{number}" for number in range(len(EXAMPLES))]:
        number = EXAMPLES[int(picture.rpartition("-")[2])]
        size = 32 if max(section.image) <= 32 else DRAWN
        raw = RawImage(picture, None, draw([number], "test", size)[0])
    elif picture in _files:
        raw = _files[picture]
    else:
        raise BadInput("this picture is no longer kept here: choose its file again")
    try:
        pixels: Pixels = fit(pixels_of(raw, section.channels), section.image, classifier.resize)
    except BadInput:
        _files.pop(picture, None)
        raise
    images = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)[None]))
    _last[:] = [(classifier, picture, images, raw.name)]
    return images, raw.name


def _classifier(shelf: Shelf, run: str) -> ImageClassifier:
    loaded = shelf.load(run)
    if not isinstance(loaded, ImageClassifier):
        raise BadInput(f'the run "{run}" does not look at pictures: choose one of a Vision Transformer')
    return loaded


def _png(image_CHW: Tensor) -> str:
    pixels = image_CHW.permute(1, 2, 0).numpy()
    made = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)).save(made, "PNG")
    return "data:image/png;base64," + base64.b64encode(made.getvalue()).decode("ascii")


# ---------------------------------------------------------------- what is asked


def _open(shelf: Shelf, ask: AskOpen) -> dict[str, Any]:
    classifier = _classifier(shelf, ask.run)
    picture = _remembered(ask)
    images, name = _seen(classifier, picture)
    model, (rows, columns) = classifier.model, classifier.model.reader.grid(images)
    return {
        "picture": picture,
        "name": name,
        "image": _png(images[0]),
        "size": [images.size(-2), images.size(-1)],
        "grid": [rows, columns],
        "added": model.reader.added,
        "layers": model.section.layers,
        "heads": model.section.heads,
        "pooling": model.section.pooling,
        "whole": WHOLE[model.section.pooling],
        "labels": list(classifier.labels),
        "chances": predictions(model, images)[0].tolist(),
        "every": rows * columns <= MOST_PATCHES,
    }


def _looks(shelf: Shelf, ask: AskLooks) -> tuple[Any, float]:
    model = (classifier := _classifier(shelf, ask.run)).model
    images, _ = _seen(classifier, ask.picture)
    if ask.layer is not None:
        check_view(model, ask.layer, None)
    rows, columns = check_place(model, images, ask.place)
    if ask.layer is None:
        parts = list(every_layer(model, images))
        means = [weights[0].mean(dim=0).numpy() for part in parts for weights in part.layers]
        pooled, difference = parts[0].pooled, max(part.max_difference for part in parts)
        weights_HTS = torch.from_numpy(rolled_encoder(means))[None]
    else:
        seen = looked(model, images, [ask.layer])
        pooled, difference = seen.pooled, seen.max_difference
        heads_HTS = seen.layers[0][0]
        weights_HTS = torch.cat([heads_HTS.mean(dim=0, keepdim=True), heads_HTS])
    starts = [start_of(model, pooled, None)]
    if ask.place is not None:
        starts.append(start_of(model, pooled, ask.place))
    looks_HRS = torch.einsum("rt,hts->hrs", torch.cat(starts), weights_HTS)
    added = model.reader.added
    if ask.place is None and rows * columns <= MOST_PATCHES:
        looks_HRS = torch.cat([looks_HRS, weights_HTS[:, added:]], dim=1)
    return torch.cat([looks_HRS[..., added:], looks_HRS[..., :added].sum(dim=-1, keepdim=True)], dim=-1), difference


def _gradient(shelf: Shelf, ask: AskGradient) -> tuple[Any, str]:
    classifier = _classifier(shelf, ask.run)
    images, _ = _seen(classifier, ask.picture)
    found = gradient_maps(classifier.model, images, [ask.label], classifier.labels)[0]
    return found.values, found.name


def _distance(shelf: Shelf, ask: Ask) -> dict[str, Any]:
    classifier = _classifier(shelf, ask.run)
    return attention_distances(classifier.model, _seen(classifier, ask.picture)[0]).to_json()


def _filters(shelf: Shelf, ask: AskRun) -> Any:
    return principal_filters(_classifier(shelf, ask.run).model)


async def opened(request: Request) -> Response:
    return json_answer(await computed(request, _open, shelf_of(request), await asked(request, AskOpen)))


async def looks(request: Request) -> Response:
    found, difference = await computed(request, _looks, shelf_of(request), await asked(request, AskLooks))
    return floats(found, difference=difference)


async def gradient(request: Request) -> Response:
    values, name = await computed(request, _gradient, shelf_of(request), await asked(request, AskGradient))
    return floats(values, name=name)


async def distance(request: Request) -> Response:
    return json_answer(await computed(request, _distance, shelf_of(request), await asked(request, Ask)))


async def filters(request: Request) -> Response:
    found = await computed(request, _filters, shelf_of(request), await asked(request, AskRun))
    return floats(found.pictures, name=found.name, shares=found.shares)


ROUTES: list[Route] = [
    post("/api/vision/open", opened),
    post("/api/vision/looks", looks),
    post("/api/vision/gradient", gradient),
    post("/api/vision/distance", distance),
    post("/api/vision/filters", filters),
]
