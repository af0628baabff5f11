"""From the first request to the last: uvicorn, with an end that loses nothing.

The service listens before its models are loaded (alive, not ready). SIGTERM, or Ctrl-C, turns it to draining: what was
accepted is answered, what comes is refused in words, and only then do the doors close. A second signal ends it now.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from jumok.serve.app import create_app
from jumok.serve.connection import connection_kind
from jumok.serve.listening import BACKLOG
from jumok.serve.service import Service
from jumok.serve.settings import Settings

if TYPE_CHECKING:
    from jumok.serve.models import Models

LAST = 0.1  # seconds after the last answer in which who asks is still told that the service is ending
MORE = 5.0  # seconds beyond the deadline of a request: then what is left is given up

Ready = Callable[["Models"], None]

log = logging.getLogger("jumok.serve")


class Server(uvicorn.Server):
    """`load` runs in a thread while the service is alive already; what it raises ends the service."""

    def __init__(self, config: uvicorn.Config, service: Service, load: Callable[[], Models], ready: Ready) -> None:
        super().__init__(config)
        self.service, self.load, self.ready = service, load, ready
        self.failure: BaseException | None = None
        self.loaded = threading.Event()
        self.signal: int | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.signal is not None:  # it came before there was anything to drain
            self.should_exit = True
            return
        threading.Thread(target=self._load, name="jumok-load", daemon=True).start()

    def _load(self) -> None:
        try:
            models = self.load()
        except BaseException as error:
            self.failure = error
            self.loaded.set()
            self.should_exit = True
            return
        self.loaded.set()
        with contextlib.suppress(RuntimeError):  # it has ended meanwhile
            self.loop.call_soon_threadsafe(self._begin, models)

    def _begin(self, models: Models) -> None:
        self.service.begin(models, self.loop)
        if self.service.phase == "ready":
            self.ready(models)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            os._exit(128 + sig)  # threads that compute cannot be stopped otherwise
        self.signal = sig
        if not self.started:
            return
        self.loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._draining = self.loop.create_task(self._drain())  # kept: asyncio itself would forget it

    async def _drain(self) -> None:
        log.info("draining: what was accepted is answered, nothing more is accepted")
        limit = time.monotonic() + self.service.settings.seconds + MORE
        try:
            await asyncio.wait_for(self.service.drain(), limit - time.monotonic())
            while self.service.early and time.monotonic() < limit:
                await asyncio.sleep(0.01)
            await asyncio.sleep(LAST)
        except TimeoutError:
            log.error("some of what was accepted could not be answered in time")
        finally:
            self.should_exit = True


def serve(load: Callable[[], Models], settings: Settings, listener: socket.socket, ready: Ready) -> int:
    """Serve until a signal ends it. `ready` is called once the models are there. The exit code."""
    service = Service(settings)
    app = create_app(None, settings, service)
    config = uvicorn.Config(
        app,
        http=connection_kind(settings),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=int(settings.idle_seconds),
        timeout_graceful_shutdown=int(settings.seconds + MORE),
    )
    server = Server(config, service, load, ready)
    with logged(settings.log):
        server.run(sockets=[listener])
    if server.failure is not None:
        raise server.failure
    code = 130 if server.signal == signal.SIGINT else 0
    if not server.loaded.is_set():  # its thread is in the middle of something that cannot be interrupted
        sys.stdout.flush()
        os._exit(code)
    if service.models is not None:
        service.models.close()
    return code


# ---------------------------------------------------------------- the log


class _Lines(logging.Formatter):
    """An event a line: a sentence, or JSON."""

    def __init__(self, kind: str) -> None:
        super().__init__("jumok serve: %(message)s")
        self.kind = kind

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if self.kind != "json":
            return text
        about = {"time": round(record.created, 3), "event": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            about["traceback"] = self.formatException(record.exc_info)
        return json.dumps(about, ensure_ascii=False)


@contextlib.contextmanager
def logged(kind: str) -> Iterator[None]:
    """What happens to the service, on stderr. Of uvicorn only errors: the rest is told by us, or by nobody's asking."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines(kind))
    ours, theirs = logging.getLogger("jumok.serve"), logging.getLogger("uvicorn")
    levels = ours.level, theirs.level
    ours.setLevel(logging.INFO)
    theirs.setLevel(logging.ERROR)
    for logger in (ours, theirs):
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, level in zip((ours, theirs), levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = True
