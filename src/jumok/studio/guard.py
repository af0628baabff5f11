"""The door: who may ask, how much. Pure ASGI, around everything else.

- The Host must be a name of this studio (a page of somebody else's can make a browser ask us, DNS rebinding, but then
  under that page's own name).
- An Origin must be our own, or that of a proxy in front (--allow-host); and what a browser says of the page that asks
  (Sec-Fetch-Site) too: same-origin, or nobody ("none": typed, or a bookmark). Only the page itself may be opened by a
  link from elsewhere.
- What is posted must say that it is JSON: a page of another origin cannot send that unasked, and is refused.
- The body is read here, up to its limit and within its time.
- So many requests are answered at once, with so many bytes of bodies; who comes then is told to come again.
- What starts or stops runs needs the token (`check_token`), compared in constant time.
- Whatever goes wrong, the answer has one shape, and no traceback in it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jumok.serve.settings import is_address
from jumok.studio.answers import TOKEN, Gone, Refused, refusal_of, settings_of
from jumok.studio.settings import Settings

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
GUARDED = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
PICTURES = ("/api/vision/", "/api/reading/")
KNOWN = (b"host", b"origin", b"content-type", b"content-length", b"sec-fetch-site", b"sec-fetch-mode")
UNFORESEEN = Refused(500, "something went wrong here that nobody foresaw", "jumok studio has printed the rest")
ORIGIN = re.compile(rb"https?://(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::[0-9]{1,5})?")
LINGER = 1.0  # seconds that a body which is too large is still read, so that its sender can hear why it is refused

AGAIN = "wait a moment, or close other pages of this studio"

log = logging.getLogger("jumok.studio")


class Guard:
    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self.proxied = {host.encode() for host in settings.proxied}
        self.hosts = {host.encode() for host in settings.hosts} | self.proxied
        self.answering = 0  # requests
        self.held = 0  # bytes of their bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks anything else
        began = False

        async def guarded(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                message["headers"] = [*message["headers"], *GUARDED]
            await send(message)

        held = _Held(self)
        try:
            self.check(scope)
            held.come()
            body = await self.body(scope, receive, held)
            await self.app(scope, _Read(body, receive), guarded)
        except Gone:
            return
        except Exception as error:
            refused = refusal_of(error)
            if refused is None:
                log.exception("%s %s", scope["method"], scope["path"])
                refused = UNFORESEEN
            if began:
                raise  # too late to say so: the connection ends before the answer does
            await refused.answer()(scope, receive, guarded)
        finally:
            held.go()

    # ------------------------------------------------------------ who may ask

    def check(self, scope: Scope) -> None:
        found: dict[bytes, list[bytes]] = {name: [] for name in KNOWN}
        for name, value in scope["headers"]:
            if name in found:
                found[name].append(value)
        host = self.check_host(found[b"host"])
        opens = scope["method"] == "GET" and scope["path"] == "/"  # the page itself, from a link somewhere
        for origin in found[b"origin"]:
            if origin.lower() not in (b"http://" + host, b"https://" + host) and not self.is_proxied(origin.lower()):
                raise Refused(403, "pages of another origin may not ask here")
        for site in found[b"sec-fetch-site"]:
            if site not in (b"same-origin", b"none") and not (opens and found[b"sec-fetch-mode"] == [b"navigate"]):
                raise Refused(403, "pages of another site may not ask here")
        if scope["method"] == "POST":
            kinds = [kind.partition(b";")[0].strip().lower() for kind in found[b"content-type"]]
            if kinds != [b"application/json"]:
                raise Refused(415, "what is posted here must be JSON", "send Content-Type: application/json")

    def is_proxied(self, origin: bytes) -> bool:
        """The proxy's own page: what it asks may come here under the proxy's name or under ours."""
        found = ORIGIN.fullmatch(origin)
        return found is not None and found[1] in self.proxied

    def check_host(self, hosts: list[bytes]) -> bytes:
        """The Host as it was given, in lower case; the port may be any."""
        if len(hosts) != 1:
            raise Refused(400, f"a request has one Host; this one has {len(hosts)}")
        host = hosts[0].lower()
        end = host.find(b"]") + 1 if host.startswith(b"[") else host.find(b":")
        name = host[:end] if end > 0 else host
        if name in self.hosts or (self.settings.addresses and is_address(name.decode("latin-1"))):
            return host
        raise Refused(403, "this studio does not answer under that name", "open the address that it printed")

    # ------------------------------------------------------------ how much

    async def body(self, scope: Scope, receive: Receive, all_held: _Held) -> bytes:
        most = self.settings.picture_bytes if scope["path"].startswith(PICTURES) else self.settings.bytes
        parts: list[bytes] = []
        held, more = 0, True
        try:
            async with asyncio.timeout(self.settings.body_seconds):
                while more and held <= most:
                    message = await _part(receive)
                    more = message.get("more_body", False)
                    parts.append(message.get("body", b""))
                    held += len(parts[-1])
                    all_held.add(len(parts[-1]))
        except TimeoutError:
            seconds = f"{self.settings.body_seconds:g} s"
            raise Refused(408, f"the body of the request did not come within {seconds}") from None
        except Refused:
            await _linger(receive, more)
            raise
        if held > most:
            await _linger(receive, more)
            raise Refused(413, f"a request to this path may have {most:,} bytes")
        return b"".join(parts)


def check_token(request: Request) -> None:
    """Whether who asks has the token; all else of the studio is for looking."""
    given = request.headers.get(TOKEN, "")
    if not hmac.compare_digest(given.encode(), settings_of(request).token.encode()):
        raise Refused(
            401,
            "starting and stopping needs the token of this studio",
            "open the address that jumok studio printed, with #token=…",
        )


class _Held:
    """The part of one request in all that is being answered."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.requests = self.bytes = 0

    def come(self) -> None:
        most = self.guard.settings.at_once
        if self.guard.answering >= most:
            raise Refused(503, f"{most} requests are being answered already", AGAIN)
        self.requests = 1
        self.guard.answering += 1

    def add(self, count: int) -> None:
        self.bytes += count
        self.guard.held += count
        if self.guard.held > self.guard.settings.held:
            raise Refused(503, f"the requests that are being answered have {self.guard.settings.held:,} bytes", AGAIN)

    def go(self) -> None:
        self.guard.answering -= self.requests
        self.guard.held -= self.bytes


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


async def _part(receive: Receive) -> Message:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    return message


async def _linger(receive: Receive, more: bool) -> None:
    try:
        async with asyncio.timeout(LINGER):
            while more:
                more = (await _part(receive)).get("more_body", False)
    except TimeoutError:
        return
