"""How answers are made: JSON, arrays of float32, and what is said where something is wrong.

An error is {"error": {"message", "what_to_do"?}}. Numbers that people look at come as float32, little endian, in C
order, with their shape in the header X-Shape and all else in X-About; so the page has the numbers that Python has.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.errors import JumokError

if TYPE_CHECKING:
    from jumok.studio.settings import Settings
    from jumok.studio.shelf import Shelf

TOLD = 5  # errors of one request
LOOKED_AT = 1000  # … of which these are chosen; to list a million takes many seconds
TOKEN = "x-jumok-token"

Result = TypeVar("Result")


class Asked(BaseModel):
    """The base of what a page may ask: keys that nobody knows are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, str_max_length=20_000)


Model = TypeVar("Model", bound=BaseModel)


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, what_to_do: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.what_to_do = status, message, what_to_do

    def answer(self) -> Response:
        told = {"message": self.message} | ({"what_to_do": self.what_to_do} if self.what_to_do else {})
        return json_answer({"error": told}, self.status)


class Gone(Exception):
    """The client has hung up: nobody waits for an answer."""


def json_answer(value: Any, status: int = 200) -> Response:
    """A number that is none is written as null: JSON has no NaN."""
    return Response(to_json(value, inf_nan_mode="null"), status, media_type="application/json")


def floats(array: Any, **about: Any) -> Response:
    """An array (numpy, or a tensor on the CPU) as float32, and what else there is to say of it (a little: a header)."""
    numbers = np.ascontiguousarray(np.asarray(array), dtype="<f4")
    told = json.dumps(json.loads(to_json(about, inf_nan_mode="null")), ensure_ascii=True, separators=(",", ":"))
    headers = {"X-Shape": ",".join(map(str, np.shape(array))), "X-About": told}
    return Response(numbers.tobytes(), headers=headers, media_type="application/octet-stream")


async def asked(request: Request, kind: type[Model]) -> Model:
    """What the body asks for. The door has made sure that it says it is JSON, and read it."""
    return kind.model_validate_json(await request.body())


async def computed(request: Request, function: Callable[..., Result], *arguments: Any) -> Result:
    """In the one thread in which models compute: they are not made for several, and the loop stays free. Where who
    asked has gone before it is his turn, nothing is computed."""
    worker = asyncio.get_running_loop().run_in_executor(request.app.state.worker, partial(function, *arguments))
    hung_up = asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait((worker, hung_up), return_when=asyncio.FIRST_COMPLETED)
        if not worker.done():
            raise Gone
        return worker.result()
    finally:
        hung_up.cancel()
        worker.cancel()  # what has not begun never does; what has, ends for nobody


async def _hung_up(request: Request) -> None:
    """The body has been read before: what comes after it is the end."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def shelf_of(request: Request) -> Shelf:
    shelf: Shelf = request.app.state.shelf
    return shelf


def settings_of(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def refusal_of(error: BaseException) -> Refused | None:
    """What an exception means to who asked; None: nobody foresaw it."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, ValidationError):
        return Refused(400, _invalid(error))
    if isinstance(error, JumokError):
        return Refused(400, str(error))
    return None


def _invalid(error: ValidationError) -> str:
    if error.error_count() > LOOKED_AT:
        return f"{error.error_count():,} keys or values of this request are wrong"
    found = error.errors(include_url=False, include_context=False, include_input=False)[:TOLD]
    if found[0]["type"] == "json_invalid":
        return f"this is no JSON: {found[0]['msg']}"
    places = [".".join(str(part) for part in one["loc"])[:200] for one in found]
    return "; ".join(
        f"{place}: {one['msg']}" if place else one["msg"] for place, one in zip(places, found, strict=True)
    )


# ---------------------------------------------------------------- routes

Endpoint = Callable[[Request], Any]


def get(path: str, endpoint: Endpoint) -> Route:
    return Route(path, endpoint, methods=["GET"])


def post(path: str, endpoint: Endpoint) -> Route:
    return Route(path, endpoint, methods=["POST"])


def act(path: str, endpoint: Endpoint) -> Route:
    """A route that starts or stops something: who asks must have the token that was printed at start."""

    async def with_token(request: Request) -> Any:
        from jumok.studio.guard import check_token

        check_token(request)
        return await endpoint(request)

    with_token.__name__ = endpoint.__name__
    return Route(path, with_token, methods=["POST"])
