"""What all routes share: the models, the settings, and the phase of life that the service is in."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from jumok.errors import JumokError
from jumok.serve.measures import Measures
from jumok.serve.problems import Problem
from jumok.serve.settings import Settings

if TYPE_CHECKING:
    from jumok.serve.models import Models, Served

Answer = TypeVar("Answer")
Phase = Literal["loading", "ready", "draining"]


class Service:
    """`models` may come later: until then the service is alive but not ready."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.measures = Measures()
        self.models: Models | None = None
        self.phase: Phase = "loading"
        self.running = 0  # requests being answered
        self.early = 0  # … of them, those that came before it began to drain
        self.held = 0  # bytes of them
        self.measures.watch(self)

    def begin(self, models: Models, loop: asyncio.AbstractEventLoop) -> None:
        for one in models:
            self._observe(one)
        models.start(loop)
        self.models = models
        if self.phase == "loading":
            self.phase = "ready"

    async def drain(self) -> None:
        """Everything that was accepted is answered; what comes now is refused."""
        self.phase = "draining"
        if self.models is not None:
            await self.models.drain()

    def enter(self, is_early: bool) -> None:
        self.running += 1
        self.early += is_early

    def leave(self, is_early: bool) -> None:
        self.running -= 1
        self.early -= is_early

    def served(self) -> Iterable[Served]:
        return self.models or ()

    def model(self, name: str | None, tasks: str | Collection[str]) -> Served:
        """The model that a request asks for."""
        if self.phase == "draining":
            raise Problem(503, "closing", "the service is ending: ask another, or come back", headers=SOON)
        if self.models is None:
            raise Problem(503, "loading", "the models are still being loaded: come back", headers=SOON)
        try:
            return self.models.get(name, tasks)
        except LookupError as error:
            raise Problem(404, "model", str(error), "model") from None

    def _observe(self, one: Served) -> None:
        measures, name = self.measures, one.name
        one.worker.observe = lambda batch: measures.batch(name, batch.jobs, batch.waited, batch.computed)


SOON = {"Retry-After": "1"}


async def all_of(futures: Sequence[asyncio.Future[Answer]], key: str) -> list[Answer]:
    """The answers to the jobs of one request; if one fails, or the client hangs up, the others give back their places.

    An error of one text is told with its place.
    """
    place = 0
    try:
        answers = []
        for place, future in enumerate(futures):  # noqa: B007  the place is for the error
            answers.append(await future)
        return answers
    except BaseException as error:
        for future in futures:
            future.cancel()
        if isinstance(error, JumokError):
            raise placed(error, f"{key}[{place}]" if len(futures) > 1 else key) from None
        raise


def placed(error: JumokError, where: str) -> Problem:
    """What cannot be done for one text. (`TooLong` speaks of options of the command line.)"""
    length, limit = getattr(error, "length", None), getattr(error, "limit", None)
    message = str(error) if limit is None else f"{length} tokens: the model's limit is {limit}. Split it"
    return Problem(422, "refused", message, where)


def check_texts(texts: Sequence[str], settings: Settings, key: str = "text") -> None:
    """Refuse more, or longer ones, than the settings allow."""
    if len(texts) > settings.texts:
        raise Problem(413, "too_many", f"{len(texts)} texts: a request may have {settings.texts}", key)
    for place, text in enumerate(texts):
        if len(text) > settings.text:
            where = f"{key}[{place}]" if len(texts) > 1 else key
            message = f"{len(text):,} characters: a text may have {settings.text:,}. Split it"
            raise Problem(413, "too_long", message, where)


def service_of(request: Any) -> Service:
    service: Service = request.scope["app"].state.service
    return service
