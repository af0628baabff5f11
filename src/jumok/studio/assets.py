"""The files of the page: a list that is made once. What is not in it is not there, whatever a path looks like."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.studio.answers import Refused, get
from jumok.studio.slim import slim

KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


def folder() -> Path:
    return Path(str(resources.files("jumok.studio") / "static"))


@cache
def files() -> dict[str, Path]:
    """By their names in an address, "pages/translate.js"."""
    root = folder()
    return {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.suffix in KINDS}


def kind(name: str) -> str:
    return KINDS[files()[name].suffix]


def text(name: str) -> str:
    """What is sent of a file."""
    path = files()[name]
    return _sent(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _sent(path: Path, _: int) -> str:
    """As it was at that time: who works on a module sees it with the next request."""
    whole = path.read_text(encoding="utf-8")
    return slim(whole) if path.suffix == ".js" else whole


def answer(name: str) -> Response:
    if name not in files():
        raise Refused(404, "there is nothing under this path")
    return Response(text(name), media_type=kind(name))


async def page(request: Request) -> Response:
    return answer("index.html")


async def file(request: Request) -> Response:
    return answer(request.path_params["name"])


ROUTES: list[Route] = [get("/", page), get("/static/{name:path}", file)]
