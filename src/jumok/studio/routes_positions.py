"""What the page "positions" asks: the vectors of a formula or of a run, and how alike they are (inspect/positions.py).

`list` says what there is; `table` gives the vectors, `pairs` how alike any two are, and `curve` the same by offset, a
row (offset, mean, least, most) for each: first those of pairs that training has seen, then the others. Of a Vision
Transformer the places are patches, by rows (inspect/vision_weights.py).
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.errors import BadInput
from jumok.inspect.positions import Positions, formula, positions_of
from jumok.inspect.vision_weights import position_kind, position_similarity
from jumok.models.vit import Looker
from jumok.studio.answers import Asked, asked, computed, floats, json_answer, post, shelf_of
from jumok.studio.shelf import Shelf


class Ask(Asked):
    """Of a formula (`kind`), or of the positions with a number in the list of a run."""

    run: str | None = None
    kind: str | None = None
    number: Annotated[int, Field(ge=0)] = 0
    width: int = 64
    length: int | None = None
    trained: int | None = None


_last: list[tuple[Any, Ask, list[Positions]]] = []  # with the loaded run: a view asks for the same three times


def _found(shelf: Shelf, ask: Ask) -> list[Positions]:
    if (ask.run is None) == (ask.kind is None):
        raise BadInput("name a run, or the kind of a formula")
    loaded: Any = None if ask.run is None else shelf.load(ask.run)
    question = ask.model_copy(update={"number": 0})
    for known, asked_before, found in _last:
        if known is loaded and asked_before == question:
            return found
    if ask.kind is not None:
        found = [formula(ask.kind, ask.width, 128 if ask.length is None else ask.length, ask.trained)]
    elif isinstance(getattr(loaded, "model", None), Looker):
        found = [_patches(loaded.model)]
    else:
        found = positions_of(loaded, ask.length, ask.trained)
    _last[:] = [(loaded, question, found)]
    return found


@torch.no_grad()
def _patches(model: Looker) -> Positions:
    alike = position_similarity(model)
    positions, (rows, columns) = model.reader.positions, alike.shape[:2]
    assert positions is not None
    table = positions((rows, columns)).float().cpu().flatten(0, 1).numpy()
    pairs = alike.reshape(rows * columns, rows * columns)
    return Positions("patches", f"patches: {position_kind(model)}", table, pairs)


def _list(shelf: Shelf, ask: Ask) -> dict[str, Any]:
    found = _found(shelf, ask)
    grid = None
    if found[0].kind == "patches":
        grid = list(shelf.load(ask.run or "").model.section.grid)
    told = [
        {
            "kind": one.kind,
            "name": one.name,
            "length": one.length,
            "width": one.table.shape[1],
            "rows": len(one.table),
            "first": one.first,
            "trained": one.trained,
            "reach": one.reach,
            "grid": grid,
        }
        for one in found
    ]
    return {"positions": told}


def _one(shelf: Shelf, ask: Ask) -> Positions:
    found = _found(shelf, ask)
    if ask.number >= len(found):
        raise BadInput(f"number {ask.number}: there are {len(found)} kinds of positions here, counted from 0")
    return found[ask.number]


def _curve(shelf: Shelf, ask: Ask) -> tuple[Any, int]:
    one = _one(shelf, ask)
    if one.kind == "patches":
        return np.zeros((0, 4)), 0  # patches have a row and a column; one offset does not say how far they are apart
    within, beyond = one.by_offset(), one.by_offset(beyond=True)
    return np.array([*within, *beyond], np.float32).reshape(-1, 4), len(within)


async def listed(request: Request) -> Response:
    return json_answer(await computed(request, _list, shelf_of(request), await asked(request, Ask)))


async def table(request: Request) -> Response:
    return floats((await computed(request, _one, shelf_of(request), await asked(request, Ask))).table)


async def pairs(request: Request) -> Response:
    return floats((await computed(request, _one, shelf_of(request), await asked(request, Ask))).similarity)


async def curve(request: Request) -> Response:
    rows, within = await computed(request, _curve, shelf_of(request), await asked(request, Ask))
    return floats(rows, within=within)


ROUTES: list[Route] = [
    post("/api/positions/list", listed),
    post("/api/positions/table", table),
    post("/api/positions/pairs", pairs),
    post("/api/positions/curve", curve),
]
