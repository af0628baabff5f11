"""The address that a service listens on: opened first, for what is wrong with it is told before all that is slow."""

from __future__ import annotations

import os
import socket

from jumok.errors import BadInput, Failure

BACKLOG = 512  # connections that wait to be accepted


def listening(host: str, port: int) -> tuple[socket.socket, str]:
    """An open door, and its address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise BadInput(f"--host {host}: there is no such address here ({error})") from None
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if isinstance(error, PermissionError):
            raise Failure(f"--port {port}: this needs more rights than you have. Take one above 1023") from None
        raise Failure(f"--host {host} --port {port}: {error.strerror or error}. Take another, or 0 for any") from None
    name = f"[{address[0]}]" if family == socket.AF_INET6 else str(address[0])
    return listener, f"http://{name}:{listener.getsockname()[1]}"
