"""From the bytes of a request to what it asks, and how that is shown in OpenAPI.

FastAPI would parse a body into dictionaries and check those; pydantic checks the bytes themselves, in one pass.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from jumok.serve.problems import Problem

Asked = TypeVar("Asked", bound=BaseModel)
JSON_BODY = "application/json"


def content_type(request: Request) -> str:
    given = next((value for name, value in request.scope["headers"] if name == b"content-type"), b"")
    return "application/json" if given == b"application/json" else _plain(given)


def _plain(given: bytes) -> str:
    return given.decode("latin-1").partition(";")[0].strip().lower()


def read_json(request: Request, kind: type[Asked]) -> Asked:
    """The body, which must be JSON and say so: a page of somebody else's can send other types without being asked."""
    given = content_type(request)
    if given != JSON_BODY:
        message = f"send JSON, with Content-Type: {JSON_BODY}" + f" (this is {given[:100]})" * bool(given)
        raise Problem(415, "content_type", message)
    return kind.model_validate_json(body_of(request))


def body_of(request: Request) -> bytes:
    """What the guard has read already; Starlette's way to it would be a longer one."""
    body: bytes = request.scope["jumok.body"]
    return body


def takes(kind: type[BaseModel], **others: dict[str, Any]) -> dict[str, Any]:
    """For OpenAPI: a body of JSON, and what else may come in its place."""
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    content: dict[str, Any] = {JSON_BODY: {"schema": schema}}
    content |= {name.replace("__", "/").replace("_", "-"): {"schema": one} for name, one in others.items()}
    return {"requestBody": {"required": True, "content": content}}
