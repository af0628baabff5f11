"""Every error in one shape, {"error": {"code", "message", "where"}}: what is wrong, where, and what to do.

LibreTranslate's clients expect {"error": "message"}, and get that under its paths.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.responses import Response

from jumok.errors import BadInput, Failure
from jumok.serve.waiting import Closing, Full, Late

LIBRE = ("/translate", "/languages", "/detect")  # paths of LibreTranslate's
TOLD = 5  # errors of one request
LOOKED_AT = 1000  # … of which these are chosen; to list a million takes many seconds
JSON = (b"content-type", b"application/json")


class Problem(Exception):
    """An answer that is an error."""

    def __init__(
        self, status: int, code: str, message: str, where: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.where = status, code, message, where
        self.headers = headers or {}

    def content(self, path: str) -> dict[str, Any]:
        if path in LIBRE:
            return {"error": f"{self.where}: {self.message}" if self.where else self.message}
        return {"error": {"code": self.code, "message": self.message, "where": self.where}}

    def answer(self, path: str = "") -> Answer:
        return Answer(to_json(self.content(path)), self.status, self.headers)


class Answer(Response):
    """JSON that is bytes already. Starlette's own classes look at each header once more."""

    def __init__(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.status_code, self.body, self.background = status, body, None
        self.raw_headers = [(b"content-length", b"%d" % len(body)), JSON]
        for name, value in (headers or {}).items():
            self.raw_headers.append((name.lower().encode("latin-1"), value.encode("latin-1")))


def told(content: Any) -> Answer:
    """An answer in the fastest JSON there is. A number that is none is written as null."""
    return Answer(to_json(content, inf_nan_mode="null"))


def problem_of(error: BaseException) -> Problem | None:
    """What an exception means to who asked; None: nobody foresaw it."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Full):
        message = "the service has all the work it can hold: come back in a moment"
        return Problem(429, "full", message, headers=_again(error.seconds))
    if isinstance(error, Closing):
        return Problem(503, "closing", "the service is ending: ask another, or come back", headers=_again(5))
    if isinstance(error, Late | asyncio.TimeoutError):
        return Problem(504, "late", "there was too much work before this: it could not be done in time")
    if isinstance(error, ValidationError):
        return _invalid(error)
    if isinstance(error, BadInput):
        return Problem(422, "refused", str(error))
    if isinstance(error, Failure):
        return Problem(422, "failed", str(error))
    return None


UNFORESEEN = Problem(500, "unforeseen", "something went wrong here that nobody foresaw; the service's log has the rest")


def _again(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def _invalid(error: ValidationError) -> Problem:
    """Bytes that are no JSON (400), or JSON that asks for what there is not (422)."""
    if error.error_count() > LOOKED_AT:
        return Problem(422, "invalid", f"{error.error_count():,} keys or values of this request are wrong")
    found = error.errors(include_url=False, include_context=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        return Problem(400, "json", found[0]["msg"])
    places = [_place(one["loc"]) for one in found[:TOLD]]
    messages = [f"{place}: {one['msg']}" if place else one["msg"] for place, one in zip(places, found, strict=False)]
    return Problem(422, "invalid", "; ".join(messages), next((place for place in places if place), ""))


def _place(parts: tuple[int | str, ...]) -> str:
    """`text[3]`; of a choice of types pydantic also names the type, which helps nobody."""
    place = ""
    for part in parts:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part.isidentifier() and part not in ("str", "int", "float", "bool"):
            place += f".{part}" if place else part
    return place[:200]
