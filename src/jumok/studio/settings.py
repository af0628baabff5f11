"""What a studio allows: the names it answers to, the token for what starts or stops runs, the size of what is asked."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from jumok.serve.settings import LOOPBACK


@dataclass(frozen=True)
class Settings:
    hosts: tuple[str, ...] = LOOPBACK  # names that requests may call this studio by
    proxied: tuple[str, ...] = ()  # … and that a proxy in front goes by, whose pages are this studio's
    addresses: bool = False  # … and any address: where it listens on all of them
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    bytes: int = 1 << 20  # of a request
    picture_bytes: int = 16 << 20  # … of one with a picture in it
    body_seconds: float = 30.0  # in which a request's body must have come
    at_once: int = 64  # requests that are being answered, event sources among them
    held: int = 64 << 20  # bytes of all their bodies together
    runs: Path = Path("runs")  # where runs are made that the page starts
