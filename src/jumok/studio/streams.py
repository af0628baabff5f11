"""Server-sent events: one line of JSON each, as long as somebody listens. Also the tail of a file that grows.

A browser that lost the connection asks again under the same address, and says which message it had last
(Last-Event-ID): a message may say where in its files it ends (`Placed`), so that nothing is told twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json
from starlette.responses import StreamingResponse

EVERY = 0.25  # seconds between looks
BEAT = (
    15.0  # seconds after which a comment is sent where there is nothing to tell: so a client that has gone is noticed
)
PIECE = 1 << 18  # bytes that are read at once


class Placed(NamedTuple):
    """A message, and how far it is told: `place` comes back as Last-Event-ID."""

    message: dict[str, Any]
    place: str


def event_stream(messages: AsyncIterator[dict[str, Any] | Placed | None]) -> StreamingResponse:
    """None: nothing to tell, but the connection is alive."""

    async def written() -> AsyncIterator[bytes]:
        yield b": hello\n\n"
        async for found in messages:
            message, place = found if isinstance(found, Placed) else (found, "")
            name = f"id: {place}\n".encode() if place else b""
            told = to_json(message, inf_nan_mode="null")
            yield b": still here\n\n" if message is None else name + b"data: " + told + b"\n\n"

    return StreamingResponse(written(), media_type="text/event-stream")


@dataclass
class Tail:
    """What a file of JSON lines has got since we looked last. `place`: bytes that are read."""

    path: Path
    place: int = 0

    def more(self) -> tuple[bool, list[dict[str, Any]]]:
        """Whether it has become shorter (a run went back to its checkpoint) and is to be read anew; and the new lines
        that are whole."""
        try:
            size = self.path.stat().st_size
        except OSError:
            size = 0
        if size < self.place:
            self.place = 0
            return True, []
        if size == self.place:
            return False, []
        try:
            with self.path.open("rb") as file:
                file.seek(self.place)
                piece = file.read(PIECE)
        except OSError:  # it has gone since
            return False, []
        end = piece.rfind(b"\n") + 1
        self.place += end
        return False, list(filter(None, map(_parsed, piece[:end].splitlines())))


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = from_json(line, allow_inf_nan=False)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
