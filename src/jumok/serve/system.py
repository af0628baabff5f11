"""About the service itself: is it alive, is it ready, what does it serve, what has it done."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from jumok.serve.measures import CONTENT
from jumok.serve.pages import front_page, operations_page
from jumok.serve.problems import Problem, told
from jumok.serve.service import SOON, service_of

router = APIRouter()
# Pages of ours have no scripts, and one style, which they name by its hash
PAGE = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}


@router.head("/health", include_in_schema=False)
@router.get("/health", summary="Whether the process is alive.")
async def health(request: Request) -> Response:
    return told({"status": "alive"})


@router.head("/ready", include_in_schema=False)
@router.get("/ready", summary="Whether it takes work: 503 while loading, and while ending.")
async def ready(request: Request) -> Response:
    phase = service_of(request).phase
    if phase != "ready":
        what = "the models are still being loaded" if phase == "loading" else "the service is ending"
        raise Problem(503, phase, what, headers=SOON)
    return told({"status": "ready"})


@router.get("/metrics", summary="Numbers for Prometheus.", response_class=Response)
async def metrics(request: Request) -> Response:
    return Response(service_of(request).measures.text(), headers={"Content-Type": CONTENT})


@router.get("/v1/models", summary="What is served.")
async def models(request: Request) -> Response:
    return told({"models": [served.about() for served in service_of(request).served()]})


@router.get("/openapi.json", include_in_schema=False)
async def schema(request: Request) -> Response:
    return told(request.app.openapi())


@router.get("/", include_in_schema=False)
async def front(request: Request) -> Response:
    service = service_of(request)
    return HTMLResponse(front_page([served.about() for served in service.served()], service.phase), headers=PAGE)


@router.get("/docs", include_in_schema=False)
async def operations(request: Request) -> Response:
    return HTMLResponse(operations_page(request.app.openapi(), request.headers["host"]), headers=PAGE)
