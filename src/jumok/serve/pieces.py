"""A translation on its way to a client who watches it grow, and who may be slower than the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from jumok.tasks.translator import Translation


@dataclass(frozen=True)
class Piece:
    """How far a translation is."""

    text: str  # what it certainly begins with
    final: list[Translation] | None = None  # at the end: its n-best


class Mailbox:
    """The newest text. Those before it are part of it: nothing is kept for who is slow."""

    def __init__(self) -> None:
        self.text, self.changed = "", asyncio.Event()

    def put(self, text: str) -> None:
        self.text = text
        self.changed.set()


async def pieces_of(future: asyncio.Future[list[Translation]], mailbox: Mailbox) -> AsyncIterator[Piece]:
    """Until the future is done; who stops before that cancels it."""
    sent = ""
    try:
        while True:
            await mailbox.changed.wait()
            mailbox.changed.clear()
            if future.done():
                break
            if mailbox.text != sent:
                sent = mailbox.text
                yield Piece(sent)
        found = future.result()
        yield Piece(found[0].text, found)
    finally:
        future.cancel()
