"""The application: static files and the pages' routes, behind the door."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from jumok.errors import JumokError
from jumok.studio import (
    assets,
    routes_attention,
    routes_compare,
    routes_lessons,
    routes_positions,
    routes_reading,
    routes_recurrent,
    routes_studio,
    routes_train,
    routes_translate,
    routes_vision,
)
from jumok.studio.answers import Refused, refusal_of
from jumok.studio.first import First
from jumok.studio.guard import Guard
from jumok.studio.settings import Settings
from jumok.studio.shelf import Shelf

PAGES = (
    routes_translate, routes_attention, routes_recurrent, routes_positions, routes_vision, routes_reading, routes_train,
    routes_compare, routes_lessons,
)  # fmt: skip


def create_app(shelf: Shelf, settings: Settings | None = None, first: First | None = None) -> Starlette:
    """`first`: the run that is trained on first start; without it there is none."""
    settings = settings or Settings()

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        close(app)

    app = Starlette(
        routes=[*assets.ROUTES, *routes_studio.ROUTES, *(route for page in PAGES for route in page.ROUTES)],
        middleware=[Middleware(Guard, settings=settings)],
        exception_handlers={
            HTTPException: _no_such,
            JumokError: _refused,
            ValidationError: _refused,
            Refused: _refused,
        },
        lifespan=life,
    )
    app.router.redirect_slashes = False
    app.state.shelf, app.state.settings, app.state.first = shelf, settings, first
    app.state.worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jumok-studio")
    return app


def prepare(app: Starlette) -> None:
    """Before the first visit: pages that have something to show at once (`prepare(shelf)`) compute it now."""
    for page in PAGES:
        ready = getattr(page, "prepare", None)
        if ready is not None:
            app.state.worker.submit(ready, app.state.shelf).result()


def close(app: Starlette) -> None:
    """What pages have started (`close(app)`), and the worker."""
    for page in PAGES:
        end = getattr(page, "close", None)
        if end is not None:
            end(app)
    app.state.worker.shutdown(wait=False, cancel_futures=True)


async def _refused(request: Request, error: Exception) -> Response:
    refused = refusal_of(error)
    assert refused is not None
    return refused.answer()


async def _no_such(request: Request, error: Exception) -> Response:
    """Paths that are not there, and methods that they do not have."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return Refused(405, f"this path does not take {request.method[:20]}").answer()
    if error.status_code == 404:
        return Refused(404, "there is nothing under this path").answer()
    return Refused(error.status_code, str(error.detail)).answer()
