"""The files of the page: a list that is made once. What is not in it is not there, whatever a path looks like.

Modules go out without their indentation and without the lines that only comment, which are left empty: errors then name
the lines that people know. So no text of a module may go over several lines.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.studio.answers import Refused, get

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
    whole = files()[name].read_text(encoding="utf-8")
    return slim(whole) if name.endswith(".js") else whole


def slim(module: str) -> str:
    lines = (line.strip() for line in module.split("\n"))
    return "\n".join("" if line.startswith("//") else line for line in lines)


def answer(name: str) -> Response:
    if name not in files():
        raise Refused(404, "there is nothing under this path")
    return Response(text(name), media_type=kind(name))


async def page(request: Request) -> Response:
    return answer("index.html")


async def file(request: Request) -> Response:
    return answer(request.path_params["name"])


ROUTES: list[Route] = [get("/", page), get("/static/{name:path}", file)]
