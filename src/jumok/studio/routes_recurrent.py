"""What the page "recurrent" asks: what the gates and states of a run did over a sentence (inspect/gates.py).

`look` says what there is, with the gradient of each reading; `states` gives the numbers of one reading (one direction
of one layer): (quantities, tokens, units).
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.errors import BadInput
from jumok.inspect.gates import Gates, gates_of
from jumok.studio.answers import Asked, asked, computed, floats, json_answer, post, shelf_of
from jumok.studio.shelf import Shelf


class Ask(Asked):
    run: str
    text: str


class AskStates(Ask):
    reading: Annotated[int, Field(ge=0)] = 0


# What was read last, with the model that read it: a view asks for each of its readings.
_last: list[tuple[Any, str, Gates]] = []


def _read(shelf: Shelf, run: str, text: str) -> Gates:
    loaded = shelf.load(run)
    for model, sentence, gates in _last:
        if model is loaded and sentence == text:
            return gates
    _last.clear()
    _last.append((loaded, text, gates_of(loaded, text)))
    return _last[0][2]


def _look(shelf: Shelf, ask: Ask) -> dict[str, Any]:
    gates = _read(shelf, ask.run, ask.text)
    readings = [
        {
            "layer": reading.layer,
            "backwards": reading.backwards,
            "states": list(reading.states()),
            "units": reading.hidden.shape[1],
            "gradient": reading.gradient.tolist(),
            "distance": reading.distance.tolist(),
            "difference": reading.difference,
        }
        for reading in gates.readings
    ]
    return {"kind": gates.kind, "tokens": list(gates.tokens), "readings": readings}


def _states(shelf: Shelf, ask: AskStates) -> Any:
    gates = _read(shelf, ask.run, ask.text)
    if ask.reading >= len(gates.readings):
        raise BadInput(f"reading {ask.reading}: this model has {len(gates.readings)}, counted from 0")
    return np.stack(list(gates.readings[ask.reading].states().values()))


async def look(request: Request) -> Response:
    ask = await asked(request, Ask)
    return json_answer(await computed(request, _look, shelf_of(request), ask))


async def states(request: Request) -> Response:
    ask = await asked(request, AskStates)
    return floats(await computed(request, _states, shelf_of(request), ask))


ROUTES: list[Route] = [post("/api/recurrent/look", look), post("/api/recurrent/states", states)]
