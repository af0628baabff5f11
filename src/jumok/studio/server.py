"""The studio as a server: binds, prepares what is shown first, prints the address with the token, opens the browser."""

from __future__ import annotations

import contextlib
import html
import logging
import os
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import uvicorn

from jumok.studio.app import create_app, prepare
from jumok.studio.first import First
from jumok.studio.settings import Settings
from jumok.studio.shelf import Shelf

CONNECTIONS = 256  # open at a time, also idle ones. Who asks too much through fewer is told so by the door (guard.py)
PATIENCE = 1  # seconds in which what is being answered may end; event sources never end by themselves


class Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """To interrupt it is the usual way to end it, and no failure."""
        self.force_exit = self.should_exit
        self.should_exit = True


def serve(
    shelf: Shelf,
    settings: Settings,
    listener: socket.socket,
    url: str,
    first: First | None,
    open_browser: bool,
    say: Callable[[str], None],
) -> None:
    """Until it is interrupted."""
    app = create_app(shelf, settings, first)
    prepare(app)
    if first is not None:
        first.start()
    address = f"{url}/#token={settings.token}"

    with contextlib.ExitStack() as held:

        def ready() -> None:
            say(f"jumok studio: {address}")
            if open_browser:
                held.enter_context(opened(address))

        server = Server(config_of(app), ready)
        try:
            server.run(sockets=[listener])
        finally:
            if first is not None:
                first.stop()


def config_of(app: object) -> uvicorn.Config:
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=PATIENCE,
    )


@contextlib.contextmanager
def opened(address: str) -> Iterator[None]:
    """The browser, by way of a file that only this user can read: command lines all users of a machine can see."""
    handle, name = tempfile.mkstemp(prefix="jumok-studio-", suffix=".html")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            target = html.escape(address, quote=True)
            file.write(f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={target}">')
        with contextlib.suppress(webbrowser.Error, OSError):
            webbrowser.open(Path(name).as_uri())
        yield
    finally:
        Path(name).unlink(missing_ok=True)
