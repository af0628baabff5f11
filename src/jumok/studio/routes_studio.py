"""What the shell asks: which runs there are, and how far the first one is."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok import __version__
from jumok.studio.answers import act, get, json_answer, shelf_of
from jumok.studio.first import First
from jumok.studio.offline import MARK, offline_page
from jumok.studio.shelf import Shelf


async def runs(request: Request) -> Response:
    def listed(shelf: Shelf, first: First | None) -> list[dict[str, Any]]:
        if first is not None:
            first.progress(shelf)  # it may have become ready
        return shelf.entries()

    found = await asyncio.to_thread(listed, shelf_of(request), request.app.state.first)
    return json_answer({"runs": found, "version": __version__})


async def first(request: Request) -> Response:
    """{"state": "none" | "waiting" | "training" | "ready" | "failed", "share": 0 … 1, "name", "message"}"""
    found: First | None = request.app.state.first
    return json_answer(
        await asyncio.to_thread(found.progress, shelf_of(request)) if found is not None else {"state": "none"}
    )


async def token(request: Request) -> Response:
    """Whether the token that the page has is the right one."""
    return json_answer({"known": True})


async def offline(request: Request) -> Response:
    """The file that a view is saved into, but for its answers, which the page has and puts in."""
    return json_answer({"page": offline_page(request.path_params["page"]), "mark": MARK})


ROUTES: list[Route] = [
    get("/api/runs", runs),
    get("/api/first", first),
    get("/api/offline/{page}", offline),
    act("/api/token", token),
]
