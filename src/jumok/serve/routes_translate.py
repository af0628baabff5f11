"""POST /v1/translate: sentences to translations, all at once or as they are written (server-sent events)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from fastapi import APIRouter
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from jumok.errors import BadInput, JumokError
from jumok.serve.asking import read_json, takes
from jumok.serve.problems import UNFORESEEN, Problem, problem_of, told
from jumok.serve.schema import TranslateAsk, TranslateTold
from jumok.serve.service import all_of, check_texts, placed, service_of
from jumok.tasks.wishes import Wishes

router = APIRouter()
# What a request and the command line call alike
ALIKE = (
    "nbest", "beam", "length_penalty", "coverage_penalty", "min_length", "max_length", "no_repeat_ngram", "sample",
    "temperature", "top_k", "top_p", "seed", "prefix", "require", "forbid", "too_long",
)  # fmt: skip
USUAL = Wishes()
EVENTS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),  # who passes it on (nginx) shall not gather it
]


class Translation(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def finished(self) -> bool: ...


@router.post(
    "/v1/translate",
    summary="Translate sentences.",
    openapi_extra=takes(TranslateAsk),
    responses={
        200: {
            "model": TranslateTold,
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
            "description": "The translations; with `stream`, events: `text` (what comes next), then `done` or `error`.",
        }
    },
)
async def translate(request: Request) -> Response:
    service = service_of(request)
    asked = read_json(request, TranslateAsk)
    texts = asked.texts()
    check_texts(texts, service.settings)
    served = service.model(asked.model, "translation")
    worker: Any = served.worker
    wishes = wishes_of(asked)
    if asked.stream:
        if len(texts) != 1:
            raise Problem(422, "invalid", "one text is streamed at a time; others may be asked beside it", "stream")
        pieces = worker.stream(texts[0], wishes, asked.tag, service.settings.seconds)
        return await Events.begun(served.name, pieces)
    futures: Sequence[Any] = worker.accept(texts, wishes, asked.tag, service.settings.seconds)
    found = await all_of(futures, "text")
    return told({"model": served.name, "translations": [written(one) for one in found]})


def wishes_of(asked: TranslateAsk) -> Wishes:
    """Most requests ask for nothing in particular; what is not set keeps its default."""
    given = asked.model_fields_set
    wishes: Mapping[str, Any] = {name: getattr(asked, name) for name in ALIKE if name in given}
    try:
        return Wishes(**wishes) if wishes else USUAL
    except BadInput as error:
        raise Problem(422, "invalid", str(error)) from None


def written(found: Sequence[Translation]) -> dict[str, Any]:
    best = _one(found[0])
    return {**best, "alternatives": [_one(other) for other in found[1:]]} if len(found) > 1 else best


def _one(translation: Translation) -> dict[str, Any]:
    return {"text": translation.text, "score": translation.score, "finished": translation.finished}


class Events(Response):
    """A translation as it grows: `event: text` with what comes next, then `event: done` with the whole answer.

    All `text` one after the other are the beginning of what `done` has; nothing is taken back.
    """

    def __init__(self, name: str, pieces: AsyncIterator[Any], first: Any) -> None:
        self.name, self.pieces, self.first = name, pieces, first
        self.status_code, self.background, self.raw_headers = 200, None, list(EVENTS)

    @classmethod
    async def begun(cls, name: str, pieces: AsyncIterator[Any]) -> Events:
        """With its first piece: what cannot be translated is refused with a code of its own."""
        try:
            return cls(name, pieces, await anext(pieces))
        except JumokError as error:
            raise placed(error, "text") from None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async for event in self.events():
                await send({"type": "http.response.body", "body": event, "more_body": True})
        finally:
            close = getattr(self.pieces, "aclose", None)
            if close is not None:
                await close()  # gives back its place
        await send({"type": "http.response.body", "body": b""})

    async def events(self) -> AsyncIterator[bytes]:
        sent, piece = "", self.first
        try:
            while True:
                if piece.final is not None:
                    yield event("done", {"model": self.name, "translations": [written(piece.final)]})
                    return
                if len(piece.text) > len(sent):
                    yield event("text", {"text": piece.text[len(sent) :]})
                    sent = piece.text
                piece = await anext(self.pieces)
        except Exception as error:
            problem = problem_of(error) or UNFORESEEN
            yield event("error", problem.content("/v1/translate"))


def event(name: str, content: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), to_json(content, inf_nan_mode="null"))
