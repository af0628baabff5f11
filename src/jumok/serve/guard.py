"""The door: who may ask, how large a request may be, how long it may take. Pure ASGI, around everything else.

- The Host must be a name of this service. A page of somebody else's can make a browser on this machine ask us (DNS
  rebinding), but then under that page's own name.
- An Origin, which browsers send with what a page asks, must be our own or one that was allowed (CORS).
- A key, where there are any, is compared in constant time.
- The body is read here, up to its limit and within its time, before anything else sees the request.
- Whatever goes wrong, the answer has one shape, and no traceback in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import sys
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jumok.serve.problems import LIBRE, UNFORESEEN, Problem, problem_of
from jumok.serve.service import Service
from jumok.serve.settings import is_address

OPEN = ("/health", "/ready", "/", "/docs", "/openapi.json", "/languages")  # without a key: nothing secret, no work
PICTURES = "/v1/image/"
KNOWN = (b"host", b"origin", b"authorization", b"x-api-key", b"content-length", b"expect")
GRACE = 5.0  # seconds beside those for the body and the work: to write the answer
LINGER = 1.0  # seconds that a body which is too large is still read, so that its sender can hear why it is refused
GUARDED = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
LAST = (b"connection", b"close")
GONE = 499  # in the measures: a client that hung up before the end of its answer

log = logging.getLogger("jumok.serve")


class Guard:
    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self.settings = service.settings
        self.any_host = "*" in self.settings.hosts
        self.hosts = {host.encode() for host in self.settings.hosts}
        self.origins = {origin.encode() for origin in self.settings.origins}
        self.keys = [key.encode() for key in self.settings.keys]
        self.limit = self.settings.seconds + self.settings.body_seconds + GRACE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _Request(self, scope, receive, send)
        connection = scope.get("jumok.connection")
        if connection is not None:  # our own server cancels the task when the client hangs up
            connection.task = asyncio.current_task()
        try:
            async with asyncio.timeout(self.limit):
                await request.answered()
        except TimeoutError:  # over all limits: work that does not end, or a client that does not take its answer
            await request.give_up()
        except (asyncio.CancelledError, _Gone) as error:
            if not isinstance(error, _Gone) and (connection is None or not connection.is_gone):
                raise
            request.status = GONE
        finally:
            if connection is not None:
                connection.task = None
            request.close()

    # ------------------------------------------------------------ who may ask

    def check_host(self, hosts: list[bytes]) -> bytes:
        """The Host as it was given; the port may be any: it is ours, or somebody's who passes requests on."""
        if len(hosts) != 1:
            raise Problem(400, "host", f"a request has one Host; this one has {len(hosts)}")
        name = hosts[0].lower()
        end = name.find(b"]") + 1 if name.startswith(b"[") else name.find(b":")
        name = name[:end] if end > 0 else name
        if self.any_host or name in self.hosts:
            return hosts[0]
        if self.settings.addresses and is_address(name.decode("latin-1")):
            return hosts[0]
        raise Problem(
            403, "host", "this service does not answer under that name: start it with --allow-host NAME to have it so"
        )

    def check_origin(self, origin: bytes, host: bytes) -> bytes:
        """What a browser may be told of the answer: the origin, if it was allowed; nothing of our own pages."""
        if origin.lower().partition(b"://")[2] == host.lower():
            return b""
        if b"*" in self.origins or origin.lower() in self.origins:
            return origin
        raise Problem(403, "origin", "pages of that origin may not ask here: start the service with --cors ORIGIN")

    def knows(self, key: bytes | None) -> bool:
        """Whether a key is one of ours; all are compared, so that the time says nothing."""
        if not self.keys:
            return True
        found = False
        for own in self.keys:
            found |= hmac.compare_digest(own, key or b"")
        return found


class _Gone(Exception):
    """The client has hung up."""


class _Request:
    """One request on its way through the door."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self.guard, self.scope, self.receive, self._send = guard, scope, receive, send
        self.service, self.settings = guard.service, guard.settings
        self.path: str = scope["path"]
        self.began = time.perf_counter()
        self.status, self.held, self.origin = 0, 0, b""
        self.last = False  # the connection ends with this answer
        self.is_early = self.service.phase != "draining"
        self.service.enter(self.is_early)

    def close(self) -> None:
        self.service.leave(self.is_early)
        self.service.held -= self.held
        route = getattr(self.scope.get("route"), "path", "other")
        seconds = time.perf_counter() - self.began
        self.service.measures.request(route, self.status, seconds)
        if self.settings.log == "json":
            _tell(route, self.scope["method"], self.status, seconds)

    async def answered(self) -> None:
        try:
            if self.check():
                body = await self.body()
                self.scope["jumok.body"] = body
                await self.guard.app(self.scope, _Read(body, self.receive), self.send)
            else:
                await self.allow()
        except _Gone:
            raise
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                log.exception("%s %s", self.scope["method"], self.path)
                problem = UNFORESEEN
            if self.status:  # too late to say so
                self.abandon()
            else:
                await problem.answer(self.path)(self.scope, self.receive, self.send)

    def check(self) -> bool:
        """Refuse, or go on (True); False: a browser that asks what it may do."""
        if self.scope.get("jumok.crowded"):
            raise self.full("the service has all the connections it can hold: come back")
        found: dict[bytes, list[bytes]] = {name: [] for name in KNOWN}
        for name, value in self.scope["headers"]:
            if name in found:
                found[name].append(value)
        host = self.guard.check_host(found[b"host"])
        if found[b"origin"]:
            self.origin = self.guard.check_origin(found[b"origin"][0], host)
            if self.scope["method"] == "OPTIONS" and self.origin:
                return False
        key = _bearer(found[b"authorization"]) or next(iter(found[b"x-api-key"]), None)
        is_known = self.guard.knows(key)
        self.scope["jumok.known"], self.scope["jumok.guard"] = is_known, self.guard
        if not is_known and self.path not in OPEN and self.path not in LIBRE:
            raise missing_key()
        self.most = self.settings.picture_bytes if self.path.startswith(PICTURES) else self.settings.bytes
        length = found[b"content-length"]
        self.expects = bool(found[b"expect"])
        self.length = int(length[0]) if length and length[0].isdigit() and len(length[0]) < 19 else None
        return True

    async def body(self) -> bytes:
        if self.length is not None and self.length > self.most and (self.expects or self.length > 16 * self.most):
            raise self.too_large()  # before any of it has come
        try:
            async with asyncio.timeout(self.settings.body_seconds):
                parts, is_whole = await self._parts()
        except TimeoutError:
            self.last = True
            seconds = f"{self.settings.body_seconds:g} s"
            raise Problem(408, "slow", f"the body of the request did not come within {seconds}") from None
        if not is_whole:
            await self._linger()
        if self.held > self.most:
            raise self.too_large()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _parts(self) -> tuple[list[bytes], bool]:
        """As many as are allowed, and whether they are all: nothing says how many come, or how long they take."""
        parts: list[bytes] = []
        more = True
        while more and self.held <= self.most:
            message = await self._part()
            more = message.get("more_body", False)
            parts.append(message.get("body", b""))
            self.hold(len(parts[-1]))
        return parts, not more

    async def _linger(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while (await self._part()).get("more_body"):
                    pass

    async def _part(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        return message

    def hold(self, more: int) -> None:
        self.held += more
        self.service.held += more
        if self.service.held > self.settings.held:
            raise self.full("the service holds all the bytes it can: come back")

    def full(self, message: str) -> Problem:
        self.last = True
        return Problem(429, "full", message, headers={"Retry-After": "1"})

    def too_large(self) -> Problem:
        self.last = True
        return Problem(413, "too_large", f"a request to this path may have {self.most:,} bytes")

    # ------------------------------------------------------------ the answer

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], *GUARDED]
            if not any(name == POLICY[0] for name, _ in message["headers"]):
                headers.append(POLICY)
            if self.guard.origins:
                headers.append((b"vary", b"Origin"))
                if self.origin:
                    headers.append((b"access-control-allow-origin", self.origin))
            if self.last or self.service.phase == "draining":
                headers.append(LAST)
            message["headers"] = headers
        await self._send(message)

    async def allow(self) -> None:
        """What a browser of an allowed origin asks before it asks."""
        headers = [
            (b"access-control-allow-methods", b"GET, POST"),
            (b"access-control-allow-headers", b"Authorization, Content-Type, X-API-Key"),
            (b"access-control-max-age", b"600"),
        ]
        await self.send({"type": "http.response.start", "status": 204, "headers": headers})
        await self.send({"type": "http.response.body", "body": b""})

    async def give_up(self) -> None:
        if self.status:
            self.abandon()
        else:
            self.last = True
            await Problem(504, "late", "this could not be done in time").answer(self.path)(
                self.scope, self.receive, self.send
            )

    def abandon(self) -> None:
        """An answer that cannot be finished: the client must not take it for a whole one."""
        connection: Any = self.scope.get("jumok.connection")
        if connection is not None:
            connection.abort()


class _Read:
    """The rest of the application gets the body whole; after it, what the client does next."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.body: bytes | None = body
        self.receive = receive

    async def __call__(self) -> Message:
        if self.body is None:
            return await self.receive()
        body, self.body = self.body, None
        return {"type": "http.request", "body": body, "more_body": False}


def missing_key() -> Problem:
    message = "a key is needed: send it as Authorization: Bearer KEY, or as X-API-Key"
    return Problem(401, "key", message, headers={"WWW-Authenticate": "Bearer"})


def _bearer(values: list[bytes]) -> bytes | None:
    if not values:
        return None
    scheme, _, key = values[0].partition(b" ")
    return key.strip() if scheme.lower() == b"bearer" else None


def _tell(route: str, method: str, status: int, seconds: float) -> None:
    """A request in the log: never what it said, nor who asked."""
    line = {"time": round(time.time(), 3), "event": "request", "method": method, "route": route, "code": status}
    sys.stderr.write(json.dumps({**line, "seconds": round(seconds, 4)}) + "\n")
