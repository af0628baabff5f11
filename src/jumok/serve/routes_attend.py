"""POST /v1/attend: what a translator looked at, as numbers or as the page that shows them offline."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from jumok.serve.asking import read_json, takes
from jumok.serve.problems import told
from jumok.serve.schema import AttendAsk, AttendTold
from jumok.serve.service import all_of, check_texts, service_of

router = APIRouter()
# The page itself allows its own scripts by their hashes and nothing else; here it also loses this service's origin
SANDBOX = {"Content-Security-Policy": "sandbox allow-scripts; frame-ancestors 'none'"}


@router.post(
    "/v1/attend",
    summary="See what a translator looked at.",
    openapi_extra=takes(AttendAsk),
    responses={200: {"model": AttendTold, "content": {"text/html": {"schema": {"type": "string"}}}}},
)
async def attend(request: Request) -> Response:
    service, asked = service_of(request), read_json(request, AttendAsk)
    check_texts([asked.text], service.settings)
    if asked.target is not None:
        check_texts([asked.target], service.settings, "target")
    served = service.model(asked.model, "translation")
    worker: Any = served.worker

    def look(translator: Any) -> Any:
        """In the worker's thread: nothing else runs through the model meanwhile."""
        attention = translator.tagged(asked.tag).attend(
            asked.text, asked.target, words=not asked.tokens, layer=asked.layer, head=asked.head, kind=asked.kind
        )
        if asked.format == "html":
            from jumok.inspect.pictures import page_of

            return page_of(attention)
        return attention.as_dictionary()

    (found,) = await all_of([worker.call(look, service.settings.seconds)], "text")
    if asked.format == "html":
        return HTMLResponse(found, headers=SANDBOX)
    return told({"model": served.name, **found})
