"""A connection: uvicorn's, with time limits for what comes slowly, and an ear for clients that hang up.

uvicorn waits for ever for the head of a first request, keeps a head of any size, and tells an application that its
client has left only if it asks. Here a head must come in time and stay within its size, a connection too many is told
so, and the task that answers a client that has left is cancelled, which costs nothing while nobody does.

Only HTTP/1.1 is spoken: who offers to change to something else (Java's client offers HTTP/2 with every first request)
is answered as if he had not, as the standard allows. The parser would leave his body unread.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from jumok.serve.problems import Problem
from jumok.serve.settings import Settings

RAW = 8  # bytes of a body's frames for each byte that it may have, at most
PIPELINED = 32  # requests that may wait behind the one that is answered; one read could bring ten thousand


UPGRADE = re.compile(rb"\nupgrade(?=:)", re.IGNORECASE)
HEAD_ENDS = b"\r\n\r\n"


class _TooMany(Exception):
    """More requests behind each other than may wait: the parser stops where they are too many."""


class _Unreadable(Exception):
    """The parser would not read the body of this request."""


class Connection(HttpToolsProtocol):
    settings: Settings  # given by `connection_kind`

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.task: asyncio.Task[Any] | None = None  # that answers the request
        self.is_gone = False
        self._head: asyncio.TimerHandle | None = None
        self._in_head = True  # no request has begun, or its head is not whole
        self._begun = False
        self._crowded = False  # one connection too many: it is told so, once it has asked
        self._received = 0  # bytes of the request that is coming in
        self._most = RAW * self.settings.picture_bytes

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._crowded = len(self.connections) > self.settings.connections
        if len(self.connections) > 2 * self.settings.connections:
            self.abort()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone = True
        self._head_is_here()
        super().connection_lost(exc)
        self.pipeline.clear()  # what waits behind the request that is answered: nobody would hear of it
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._received += len(data)
        super().data_received(_without_upgrade(data) if self._in_head else data)
        if self.transport.is_closing():
            return
        if self._in_head:
            if self._received > self.settings.head_bytes:
                self.refuse(Problem(431, "too_large", f"a head may have {self.settings.head_bytes:,} bytes"))
            elif self._head is None and (self.cycle is None or self.cycle.response_complete):
                self._wait_for_head()
        elif self._received > self._most:
            self.abort()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED:
            raise _TooMany
        super().on_message_begin()
        self._begun = self._in_head = True
        about: dict[str, Any] = self.scope  # type: ignore[assignment]
        about["jumok.connection"], about["jumok.crowded"] = self, self._crowded

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what follows a body in parts is no header of the request
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_is_here()
        if self.parser.should_upgrade():  # the word came in two pieces, or behind another request
            raise _Unreadable
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._begun, self._in_head, self._received = False, True, 0

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._begun and self._in_head and self._head is None and not self.transport.is_closing():
            self._wait_for_head()

    def send_400_response(self, msg: str) -> None:
        self.refuse(Problem(400, "http", "this is no HTTP request that can be read"))

    def refuse(self, problem: Problem) -> None:
        """Without the application: an answer, and the end of the connection.

        Answers come in the order of the requests: where others are still being answered, those are, and the connection
        ends after them. Written now, this one would stand in the midst of theirs.
        """
        if self.transport.is_closing():
            return
        if self._in_head and self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if self.cycle is None or self.cycle.response_complete or not (self.cycle.response_started or self.pipeline):
            body = to_json(problem.content(""))
            head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
            self.transport.write(STATUS_LINE[problem.status] + head + body)
        self.transport.close()

    def abort(self) -> None:
        """The end, with nothing more to say."""
        self.transport.abort()

    def _wait_for_head(self) -> None:
        self._head = self.loop.call_later(self.settings.head_seconds, self._slow)

    def _head_is_here(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _slow(self) -> None:
        self._head = None
        if self._begun:
            self.refuse(Problem(408, "slow", f"a head must come within {self.settings.head_seconds:g} s"))
        elif not self.transport.is_closing():
            self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """A piece of a head in which nobody offers to speak something else; its size stays."""
    end = data.find(HEAD_ENDS)
    head = data if end < 0 else data[:end]
    return UPGRADE.sub(b"\nignored", head) + data[len(head) :]


def connection_kind(settings: Settings) -> type[Connection]:
    """The class that uvicorn makes connections of."""
    return type("Connection", (Connection,), {"settings": settings})
