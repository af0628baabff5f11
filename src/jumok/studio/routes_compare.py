"""What the page "Compare" asks: two runs, or two checkpoints of a run, on one text."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.studio import comparing_runs
from jumok.studio.answers import Asked, asked, computed, floats, json_answer, post, shelf_of
from jumok.studio.comparing_runs import Given, One

Text = Annotated[str, Field(max_length=4000)]
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]


class SideAsk(Asked):
    run: str
    update: Number | None = None

    @property
    def one(self) -> One:
        return One(self.run, self.update)


class CompareAsk(Asked):
    """`second`: of a pair of texts. `target`: the translation that both write; without it, the first one's own."""

    a: SideAsk
    b: SideAsk
    text: Text
    second: Text | None = None
    target: Text | None = None

    @property
    def given(self) -> Given:
        return Given(self.text, self.second, self.target)


class MapsAsk(CompareAsk):
    """Without a layer or a head: the mean over all that each side has."""

    kind: Literal["cross", "self", "causal"]
    layer: Number | None = None
    head: Number | None = None
    by: Literal["tokens", "words"] = "words"


async def look(request: Request) -> Response:
    ask = await asked(request, CompareAsk)
    found = await computed(request, comparing_runs.compared, shelf_of(request), ask.a.one, ask.b.one, ask.given)
    return json_answer(found)


async def maps(request: Request) -> Response:
    """(3, T, S): the first one's weights, the other's, and the other's less the first one's."""
    ask = await asked(request, MapsAsk)
    view = comparing_runs.Asked(ask.kind, ask.layer, ask.head, ask.by)
    found = await computed(request, comparing_runs.maps, shelf_of(request), ask.a.one, ask.b.one, ask.given, view)
    return floats(np.stack([found.a, found.b, found.difference]), scale=found.scale, largest=found.largest())


ROUTES: list[Route] = [post("/api/compare/look", look), post("/api/compare/maps", maps)]
