"""What a service allows: who may ask, how much, and for how long. The command line fills it in."""

from __future__ import annotations

import ipaddress
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jumok.errors import BadInput

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
EVERYWHERE = ("0.0.0.0", "::", "")
KEY_VARIABLE = "JUMOK_API_KEY"
SHORTEST_KEY = 16  # characters: what is shorter can be guessed
PICTURES = 16  # a picture may have as many times the bytes of a text


@dataclass(frozen=True)
class Settings:
    hosts: tuple[str, ...] = LOOPBACK  # names that requests may call this service by; "*": any
    addresses: bool = False  # … and any address: where the service listens on all of them
    keys: tuple[str, ...] = ()  # one of them must come with a request; none: nobody is asked
    origins: tuple[str, ...] = ()  # web pages that may ask from a browser ("https://example.org"); "*": any
    bytes: int = 1 << 20  # of a request
    text: int = 10_000  # characters of a text
    texts: int = 128  # of a request
    seconds: float = 30.0  # from a request's acceptance to its answer
    head_seconds: float = 10.0  # in which the head of a request must have come
    body_seconds: float = 30.0  # … and its body
    idle_seconds: float = 60.0  # a connection may stay open without a request
    head_bytes: int = 1 << 16  # of a request's head
    connections: int = 1000  # at a time
    held: int = 1 << 28  # bytes of all requests that are being read or answered
    log: str = "text"  # or "json", which also tells of each request

    @property
    def picture_bytes(self) -> int:
        return PICTURES * self.bytes


def allowed_hosts(host: str, more: Sequence[str]) -> tuple[str, ...]:
    """The names of a service: those of this machine, the one it listens on, and those it was given."""
    own = () if host in EVERYWHERE else (named(host),)
    return tuple(dict.fromkeys([*LOOPBACK, *own, *(named(name) for name in more)]))


def named(host: str) -> str:
    """As it stands in a request's Host: lower case, an IPv6 address in brackets."""
    name = host.strip().lower()
    if not name or any(character in name for character in "/ @?#") or "://" in host:
        raise BadInput(f"--allow-host {host}: give a name as it stands in an address, without http:// and port")
    return f"[{name}]" if _is_ipv6(name) else name


def is_address(host: str) -> bool:
    """Whether a Host is an address and no name. A page of somebody else's cannot make a browser send one of ours
    under its own name (DNS rebinding), so addresses need no list."""
    try:
        ipaddress.ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    except ValueError:
        return False
    return True


def _is_ipv6(name: str) -> bool:
    try:
        return isinstance(ipaddress.ip_address(name), ipaddress.IPv6Address)
    except ValueError:
        return False


def allowed_origins(given: Sequence[str]) -> tuple[str, ...]:
    for origin in given:
        scheme, _, host = origin.partition("://")
        if origin != "*" and (scheme not in ("http", "https") or not host or "/" in host):
            raise BadInput(f"--cors {origin}: give an origin as a browser does, as in https://example.org; or *")
    return tuple(origin.lower() for origin in given)


def read_keys(file: Path | None) -> tuple[str, ...]:
    """From a file, a key a line, or from the environment: what stands on a command line, all users of a machine see."""
    if file is None:
        found = [os.environ.get(KEY_VARIABLE, "").strip()]
        where = f"the variable {KEY_VARIABLE}"
    else:
        where = f"--api-key-file {file}"
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
            mode = file.stat().st_mode
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{where}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
        found = [line.strip() for line in lines if not line.lstrip().startswith("#")]
        if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
            print(f"note: {file} can be read by other users of this machine: chmod 600 {file}", file=sys.stderr)
    keys = tuple(dict.fromkeys(key for key in found if key))
    if file is not None and not keys:
        raise BadInput(f"{where}: there is no key in it. Write one a line, of {SHORTEST_KEY} characters or more")
    for key in keys:
        if len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key:
            raise BadInput(
                f"{where}: a key needs {SHORTEST_KEY} characters or more, letters and digits. "
                "Make one with: openssl rand -hex 32"
            )
    return keys
