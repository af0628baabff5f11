"""A small service of every task, in this process: the translator of the package, a classifier of pictures with random
weights, and for texts answers that are told beforehand, through real queues and threads."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import torch
import uvicorn
from image_files import SMALL, coloured
from PIL import Image
from starlette.testclient import TestClient

from jumok import api
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection
from jumok.serve.app import create_app
from jumok.serve.batching import Batcher
from jumok.serve.computing import Ask, Classify, Embed, Fill, ReadImage, Tag, computing, cost
from jumok.serve.connection import connection_kind
from jumok.serve.listening import listening
from jumok.serve.models import Models
from jumok.serve.server import Server
from jumok.serve.service import Service
from jumok.serve.settings import Settings
from jumok.serve.translating import TranslationWorker
from jumok.serve.waiting import Room
from jumok.tasks.answerer import Answered, Found
from jumok.tasks.classifier import Said
from jumok.tasks.filler import Guess
from jumok.tasks.labelling import Classes
from jumok.tasks.text_reader import Read
from jumok.trained import TrainedImageClassifier

COLOURS = ("black", "red", "green")
QUICK = Settings(head_seconds=0.5, body_seconds=0.7, seconds=20.0)


@dataclass
class Fake:
    """What a `Served` has, for the routes."""

    name: str
    task: str
    worker: Any
    languages: tuple[str, str] | None = None
    model: Any = None
    extra: dict[str, Any] = field(default_factory=dict)

    def about(self) -> dict[str, Any]:
        return {"name": self.name, "task": self.task, **self.extra}


def answer(job: Any) -> Any:
    """One that tells which job it is of."""
    match job:
        case Classify():
            return Said("good", 0.75, {"bad": 0.25, "good": 0.75})
        case Tag():
            return [f"TAG{len(word)}" for word in job.words]
        case Ask():
            first = job.context.split()[0] if job.context.split() else ""
            return Answered(Found(first, 0, 1.0, 0.5), (Found("", 0, 0.5, 0.25),) * (job.best - 1))
        case Embed():
            return np.array([len(job.text), job.normalise, 0.5], dtype=np.float32)
        case Fill():
            return [[Guess("cat", 0.5, job.text.replace("[MASK]", "cat"))] * min(job.best, 3)]
        case ReadImage():
            return Read("word", 0.9, (("w", 0.9), ("o", 1.0)), 0)
    raise ValueError(job)


def told(jobs: Sequence[Any]) -> list[Any]:
    return [answer(job) for job in jobs]


@cache
def translator() -> Any:
    torch.set_num_threads(1)
    return api.load_translator(None, "cpu")


def pictures() -> TrainedImageClassifier:
    model = ImageLabeller(VitSection(**SMALL), len(COLOURS))
    return TrainedImageClassifier(model.eval(), Classes(COLOURS), "crop", torch.device("cpu"))


def models(room: Room = Room()) -> Models:
    """Fresh workers: each begins once."""
    small = pictures()
    texts = {"labels": "classification", "tags": "tagging", "answers": "answering", "words": "pretraining"}
    served = [
        Fake("en-fr", "translation", TranslationWorker("en-fr", translator(), room), ("en", "fr"), translator()),
        *(Fake(name, task, Batcher(name, told, cost, room)) for name, task in texts.items()),
        Fake("colours", "vision", Batcher("colours", computing(small), cost, room), model=small),
        Fake("reader", "recognition", Batcher("reader", told, cost, room)),
    ]
    return Models(served)  # type: ignore[arg-type]


def slow_models(seconds: float, room: Room = Room()) -> Models:
    """One that labels texts, a batch in so many seconds."""

    def compute(jobs: Sequence[Any]) -> list[Any]:
        time.sleep(seconds)
        return told(jobs)

    return Models([Fake("labels", "classification", Batcher("labels", compute, cost, room))])  # type: ignore[list-item]


@contextlib.contextmanager
def client(settings: Settings = Settings(), served: Models | None = None) -> Iterator[TestClient]:
    """Without a network; requests go through the same door."""
    app = create_app(served or models(), settings)
    with TestClient(app, base_url="http://localhost:8000") as found:
        yield found


def picture(kind: str = "PNG", size: tuple[int, int] = (8, 8)) -> bytes:
    file = BytesIO()
    Image.fromarray(coloured(1, size)).save(file, kind)
    return file.getvalue()


# ---------------------------------------------------------------- with a network


class Running:
    """A real server in a thread of this process."""

    def __init__(self, server: Server, service: Service, port: int) -> None:
        self.server, self.service, self.port = server, service, port
        self.url = f"http://127.0.0.1:{port}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 10)

    def end(self, signal: int = 15) -> None:
        """As if the process had got the signal."""
        self.server.loop.call_soon_threadsafe(self.server.handle_exit, signal, None)

    def until(self, condition: Callable[[], bool], seconds: float = 10) -> None:
        limit = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < limit, "it did not come to it"
            time.sleep(0.005)


@contextlib.contextmanager
def running(settings: Settings = QUICK, load: Callable[[], Models] = models) -> Iterator[Running]:
    service = Service(settings)
    listener, _ = listening("127.0.0.1", 0)
    port = listener.getsockname()[1]  # a service that ends at once closes it
    config = uvicorn.Config(
        create_app(None, settings, service),
        http=connection_kind(settings),
        ws="none",
        lifespan="off",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        timeout_keep_alive=int(settings.idle_seconds),
        timeout_graceful_shutdown=5,
    )
    server = Server(config, service, load, lambda found: None)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    found = Running(server, service, port)
    try:
        found.until(lambda: service.phase == "ready" or server.failure is not None)
        yield found
    finally:
        server.should_exit = True
        thread.join(10)
        if service.models is not None:
            service.models.close()
    assert not thread.is_alive()


def request(path: str, body: bytes, *more: str, kind: str = "application/json", method: str = "POST") -> bytes:
    """A request as it goes over the wire."""
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, *more, "", ""]).encode() + body


def answered(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """The next answer: its code, its headers, its body."""
    file = connection.makefile("rb", buffering=0)
    line = file.readline()
    if not line:
        raise ConnectionResetError("closed without an answer")
    headers: dict[str, str] = {}
    while (row := file.readline().strip()) != b"":
        name, _, value = row.decode().partition(":")
        headers[name.lower()] = value.strip()
    body = b""
    while len(body) < int(headers.get("content-length", 0)):
        body += file.read(int(headers["content-length"]) - len(body))
    return int(line.split()[1]), headers, body
