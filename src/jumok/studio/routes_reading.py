"""What the page "Reading" asks: a picture is put down, read, and looked at character by character."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.studio.answers import Asked, asked, computed, floats, get, json_answer, post, shelf_of
from jumok.studio.reading import Desk, Looked, Source, columns_of, reader_of, told, words_of
from jumok.studio.shelf import Shelf

MOST = 16 << 20  # letters of a picture in base64
LARGEST = 2**31 - 1


class PictureAsk(Asked):
    image: Annotated[str, Field(max_length=MOST)]
    name: Annotated[str, Field(max_length=1000)] = ""


class LookAsk(Asked):
    """`picture` is the name that it was kept under; without it, `text` is drawn; without that, the first example."""

    run: str
    picture: Annotated[str, Field(max_length=64)] | None = None
    text: Annotated[str, Field(max_length=400)] | None = None
    number: Annotated[int, Field(ge=0, le=LARGEST)] = 0
    layer: Annotated[int, Field(ge=0, le=LARGEST)] | None = None
    head: Annotated[int, Field(ge=0, le=LARGEST)] | None = None

    @property
    def source(self) -> Source:
        return Source(self.picture, None if self.picture is not None else self.text, self.number)


def desk_of(request: Request) -> Desk:
    state = request.app.state
    if not hasattr(state, "reading"):
        state.reading = Desk()
    found: Desk = state.reading
    return found


async def keep(request: Request) -> Response:
    ask = await asked(request, PictureAsk)
    return json_answer({"picture": await computed(request, desk_of(request).keep, ask.image, ask.name)})


async def words(request: Request) -> Response:
    run = request.query_params.get("run", "")
    return json_answer(await computed(request, _words, desk_of(request), shelf_of(request), run))


def _words(desk: Desk, shelf: Shelf, run: str) -> dict[str, Any]:
    reader = reader_of(shelf, run)
    return {"words": words_of(desk.words(shelf, run)), "longest": reader.model.section.max_length}


async def _looked(request: Request) -> Looked:
    ask = await asked(request, LookAsk)
    desk = desk_of(request)
    return await computed(request, desk.look, shelf_of(request), ask.run, ask.source, ask.layer, ask.head)


async def look(request: Request) -> Response:
    return json_answer(told(await _looked(request)))


async def maps(request: Request) -> Response:
    """(n, h, w): where each character looked."""
    return floats((await _looked(request)).frames.maps)


async def heads(request: Request) -> Response:
    """(heads, n, h, w), and of each its layer and head."""
    ask = await asked(request, LookAsk)
    places, found = await computed(request, desk_of(request).heads, shelf_of(request), ask.run, ask.source)
    return floats(found, places=places)


async def columns(request: Request) -> Response:
    """(labels, columns) of a CTC reader."""
    labels, path, found = await computed(request, columns_of, await _looked(request))
    return floats(found, labels=labels, path=path)


ROUTES: list[Route] = [
    post("/api/reading/picture", keep),
    get("/api/reading/words", words),
    post("/api/reading/look", look),
    post("/api/reading/maps", maps),
    post("/api/reading/heads", heads),
    post("/api/reading/columns", columns),
]
