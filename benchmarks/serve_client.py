"""A light client for measuring a service: HTTP over plain sockets that stay open, in one thread.

It parses as little as it can (the code and the length of an answer), so that on a small machine the service is measured
and not the client; what it costs by itself is told.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

Address = tuple[str, int]


def request(path: str, body: object) -> bytes:
    data = json.dumps(body, ensure_ascii=False).encode()
    head = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(data)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + data


@dataclass
class Tally:
    """What came of the requests."""

    codes: Counter[int] = field(default_factory=Counter)  # 0: the connection ended without an answer
    seconds: list[float] = field(default_factory=list)  # of those with 200
    sent: int = 0
    unanswered: list[float] = field(default_factory=list)  # when those were sent that had no answer
    wrong: list[bytes] = field(default_factory=list)  # some answers that should not be

    def add(self, code: int, asked: float, body: bytes) -> None:
        self.codes[code] += 1
        if code == 200:
            self.seconds.append(time.perf_counter() - asked)
        elif code == 0:
            self.unanswered.append(asked)
        elif code not in (429, 503) and len(self.wrong) < 5:
            self.wrong.append(body[:300])

    def quantile(self, share: float) -> float:
        found = sorted(self.seconds)
        return found[min(len(found) - 1, int(share * len(found)))] if found else float("nan")


class Line(asyncio.Protocol):
    """A connection with at most one request on its way."""

    def __init__(self, tally: Tally, free: Callable[[Line], None]) -> None:
        self.tally, self.free = tally, free
        self.buffer = b""
        self.asked: float | None = None
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.is_open = True
        self.free(self)

    def send(self, data: bytes) -> None:
        self.asked = time.perf_counter()
        self.tally.sent += 1
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.buffer = buffer = self.buffer + data
        end = buffer.find(b"\r\n\r\n")
        if end < 0 or self.asked is None:
            return
        place = buffer.find(b"content-length: ")
        length = int(buffer[place + 16 : buffer.index(b"\r\n", place)]) if 0 <= place < end else 0
        if len(buffer) < end + 4 + length:
            return
        closing = b"connection: close" in buffer[:end]
        asked, self.asked, self.buffer = self.asked, None, b""
        self.tally.add(int(buffer[9:12]), asked, buffer[end + 4 :])
        if closing:
            self.is_open = False
            self.transport.close()
        else:
            self.free(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self.asked is not None:
            self.tally.add(0, self.asked, b"")
            self.asked = None
        self.free(self)


async def ask_all(address: Address, requests: Sequence[bytes], lines: int) -> tuple[Tally, float]:
    """So many connections, each with the next request as soon as it has its answer. The seconds of all."""
    loop, tally = asyncio.get_running_loop(), Tally()
    left: Iterator[bytes] = iter(requests)
    done = asyncio.Event()

    def free(line: Line) -> None:
        if sum(tally.codes.values()) == len(requests):
            done.set()
        elif line.is_open and (one := next(left, None)) is not None:
            line.send(one)

    began = time.perf_counter()
    made = [await loop.create_connection(lambda: Line(tally, free), *address) for _ in range(lines)]
    await done.wait()
    seconds = time.perf_counter() - began
    for transport, _ in made:
        transport.close()
    return tally, seconds


class Flood:
    """Requests at a steady rate, whatever becomes of them: over as many connections as it takes, up to a number."""

    def __init__(self, address: Address, requests: Sequence[bytes], rate: float, lines: int) -> None:
        self.address, self.requests, self.rate, self.lines = address, requests, rate, lines
        self.tally = Tally()
        self.idle: list[Line] = []
        self.open = 0
        self.missed = 0  # requests that were due when no connection was free
        self.ends = False

    def _free(self, line: Line) -> None:
        if line.is_open:
            self.idle.append(line)
        else:
            self.open -= 1

    async def _connect(self) -> None:
        self.open += 1
        try:
            await asyncio.get_running_loop().create_connection(lambda: Line(self.tally, self._free), *self.address)
        except OSError:
            self.open -= 1

    async def run(self, seconds: float) -> None:
        await asyncio.gather(*(self._connect() for _ in range(self.lines)))
        began, due, place = time.perf_counter(), 0, 0
        while (now := time.perf_counter() - began) < seconds and not self.ends:
            wanted = int(now * self.rate)
            while due < wanted:
                due += 1
                line = self.idle.pop() if self.idle else None
                while line is not None and not line.is_open:
                    line = self.idle.pop() if self.idle else None
                if line is None:
                    self.missed += 1
                    continue
                line.send(self.requests[place % len(self.requests)])
                place += 1
            await asyncio.sleep(0.004)

    async def settled(self, seconds: float = 60) -> None:
        """Until all that was sent is answered."""
        limit = time.perf_counter() + seconds
        while sum(self.tally.codes.values()) < self.tally.sent and time.perf_counter() < limit:
            await asyncio.sleep(0.005)

    def close(self) -> None:
        for line in self.idle:
            line.transport.close()
