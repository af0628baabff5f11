"""How a service begins and ends."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from served import Running, answered, request, running, slow_models

from jumok.errors import BadInput, Failure
from jumok.serve.listening import listening
from jumok.serve.models import Models
from jumok.serve.waiting import Room

ASK = request("/v1/classify", b'{"text": "I am"}')


def asked(service: Running, codes: list[int]) -> None:
    with service.connect() as connection:
        connection.sendall(ASK)
        codes.append(answered(connection)[0])


def test_what_was_accepted_is_answered_when_it_ends() -> None:
    with running(load=lambda: slow_models(0.15, Room(sentences=2, wait=0.0))) as service:
        codes: list[int] = []
        threads = [threading.Thread(target=asked, args=(service, codes)) for _ in range(9)]
        for thread in threads:
            thread.start()
        (one,) = service.service.served()
        service.until(lambda: one.worker.waiting + one.worker.running + len(codes) == 9)
        idle = service.connect()
        service.end()
        service.until(lambda: service.service.phase == "draining")
        idle.sendall(request("/ready", b"", method="GET"))
        code, headers, _ = answered(idle)
        assert (code, headers["connection"]) == (503, "close")
        with service.connect() as late:
            late.sendall(ASK)
            code, headers, _ = answered(late)
            assert (code, int(headers["retry-after"]) > 0) == (503, True)
        for thread in threads:
            thread.join()
        service.until(lambda: service.server.should_exit)
        assert codes == [200] * 9
    with pytest.raises(ConnectionRefusedError):
        service.connect()


def test_clients_that_keep_asking_do_not_keep_it_alive() -> None:
    with running(load=lambda: slow_models(0.05)) as service:
        stop, codes = threading.Event(), set()

        def hammer() -> None:
            while not stop.is_set():
                try:
                    with service.connect() as connection:
                        connection.sendall(ASK)
                        codes.add(answered(connection)[0])
                except OSError:
                    return

        threads = [threading.Thread(target=hammer) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        began = time.monotonic()
        service.end()
        service.until(lambda: service.server.should_exit, 3)
        assert time.monotonic() - began < 2
        stop.set()
        for thread in threads:
            thread.join()
        assert codes <= {200, 503}


def test_it_is_alive_while_its_models_are_loaded() -> None:
    go = threading.Event()

    def load() -> Models:
        go.wait(10)
        return slow_models(0.0)

    def look() -> None:
        """From another thread: the service is not ready before `running` gives it."""
        time.sleep(0.2)
        go.set()

    threading.Thread(target=look).start()
    began = time.monotonic()
    with running(load=load) as service:
        assert time.monotonic() - began > 0.15
        assert service.service.phase == "ready"


def test_models_that_cannot_be_loaded_end_it() -> None:
    def load() -> Models:
        raise BadInput("there is no such run")

    with running(load=load) as service:
        assert isinstance(service.server.failure, BadInput)
        service.until(lambda: service.server.should_exit)


def test_doors_that_cannot_be_opened_are_told() -> None:
    with pytest.raises(BadInput, match="no such address"):
        listening("nowhere.invalid", 0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Failure, match="Take another"):
            listening("127.0.0.1", taken.getsockname()[1])
    listener, url = listening("127.0.0.1", 0)
    assert url == f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()
