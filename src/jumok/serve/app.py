"""The application: routes behind the door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from jumok import __version__
from jumok.serve import libre, routes_attend, routes_images, routes_texts, routes_translate, system
from jumok.serve.guard import Guard
from jumok.serve.problems import Problem
from jumok.serve.schema import ASKED, ProblemTold
from jumok.serve.service import Service
from jumok.serve.settings import Settings

if TYPE_CHECKING:
    from jumok.serve.models import Models

ROUTERS = (routes_translate, routes_texts, routes_images, routes_attend, libre, system)
WRONG = {
    "4XX": {"model": ProblemTold, "description": "What was asked cannot be done; the message says why."},
    "5XX": {"model": ProblemTold, "description": "It cannot be done now."},
}


def create_app(models: Models | None, settings: Settings = Settings(), service: Service | None = None) -> FastAPI:
    """`models`: started with the application, and drained with it. Without them somebody else begins the `service`."""
    shared = service or Service(settings)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        if models is not None:
            shared.begin(models, asyncio.get_running_loop())
        yield
        if models is not None:
            await shared.drain()
            models.close()

    app = FastAPI(
        title="jumok serve",
        version=__version__,
        docs_url=None,  # FastAPI's pages fetch their scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=life,
        exception_handlers={HTTPException: _no_such},
    )
    app.state.service = shared
    app.add_middleware(Direct)
    app.add_middleware(Guard, service=shared)
    for module in ROUTERS:
        app.include_router(module.router, responses={} if module is libre else WRONG)  # type: ignore[arg-type]
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


class Direct:
    """Paths here have no parts that vary, and each reads by itself what is asked: one look-up finds who answers.

    FastAPI's way there takes longer than all else that a request costs before it is computed. It describes the routes
    (OpenAPI), and says what is not there.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.routes = {
            (method, route.path): route
            for module in ROUTERS
            for route in module.router.routes
            if isinstance(route, APIRoute)
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if route is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = route
        response: Response = await route.endpoint(Request(scope, receive))
        await response(scope, receive, send)


async def _no_such(request: Request, error: Exception) -> Response:
    """Paths that are not there, and methods that they do not have."""
    assert isinstance(error, HTTPException)
    path = request.scope["path"]
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        message = f"this path does not take {request.method[:20]}" + f" (but {allowed})" * bool(allowed)
        return Problem(405, "method", message, headers=error.headers).answer(path)
    if error.status_code == 404:
        return Problem(404, "path", "there is nothing under this path: / says what there is").answer(path)
    return Problem(error.status_code, "http", str(error.detail)).answer(path)


def _described(app: FastAPI) -> dict[str, Any]:
    """OpenAPI, with the types of requests, which FastAPI does not see."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        _, asked = models_json_schema(
            [(kind, "validation") for kind in ASKED], ref_template="#/components/schemas/{model}"
        )
        found["components"]["schemas"] |= asked["$defs"]
        found["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        app.openapi_schema = found
    return app.openapi_schema
