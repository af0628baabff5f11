"""What comes over the wire slowly, endlessly, or broken off."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from served import QUICK, Running, answered, request, running, slow_models

from jumok.serve.connection import PIPELINED
from jumok.serve.waiting import Room

ASK = request("/v1/classify", b'{"text": "I am"}')


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running(load=lambda: slow_models(0.0)) as found:
        yield found


def refused(connection: socket.socket, code: int) -> None:
    """An answer with this code, and the end of the connection."""
    found, headers, body = answered(connection)
    assert found == code
    assert headers["connection"] == "close"
    assert json.loads(body)["error"]["message"]
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""


def test_one_connection_for_many_requests(service: Running) -> None:
    with service.connect() as connection:
        for _ in range(3):
            connection.sendall(ASK)
            assert answered(connection)[0] == 200


def test_requests_sent_before_the_answers_came(service: Running) -> None:
    """HTTP pipelining: the answers come in order, none is lost."""
    texts = ["one", "two words", "", "three more words", "x"]
    asked = [request("/v1/embed", json.dumps({"text": text}).encode()) for text in texts]
    wrong = request("/v1/classify", b"{")
    with service.connect() as connection:
        connection.sendall(b"".join([ASK, wrong, *asked, ASK]))
        codes = [answered(connection)[0] for _ in range(len(asked) + 3)]
    assert codes == [200, 400, *[200] * len(asked), 200] or codes == [200, 400, *[404] * len(asked), 200]


def test_only_so_many_requests_wait_behind_another() -> None:
    """One read of a quarter of a megabyte holds ten thousand: they would fill the memory, and hold up all others."""
    short = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with running(load=lambda: slow_models(0.5)) as service, service.connect() as connection:
        connection.sendall(ASK + short * 5000)
        service.until(lambda: bool(service.server.server_state.connections))
        (one,) = service.server.server_state.connections
        service.until(lambda: one.cycle is not None)  # type: ignore[union-attr]
        assert len(one.pipeline) <= PIPELINED  # type: ignore[union-attr]
        codes = [answered(connection)[0] for _ in range(PIPELINED + 1)]  # those are answered, and then it ends
        assert set(codes) == {200}
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""


@pytest.mark.parametrize("wire", [b"\x00nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 17)])
def test_nonsense_behind_a_request_does_not_stand_in_its_answer(wire: bytes) -> None:
    asked = {"text": "The young cat sleeps.", "stream": True, "min_length": 200, "max_length": 200, "beam": 8}
    with running() as service, service.connect() as connection:
        connection.sendall(request("/v1/translate", json.dumps(asked).encode()))
        connection.recv(1, socket.MSG_PEEK)  # it has begun
        connection.sendall(wire)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(1 << 16):
                found += part
    assert found.startswith(b"HTTP/1.1 200 ")
    assert b"event: done" in found
    assert found.endswith(b"0\r\n\r\n")


def test_nonsense_behind_a_request_does_not_take_its_answer(service: Running) -> None:
    with service.connect() as connection:
        connection.sendall(ASK + b"\x00nonsense\r\n\r\n")
        assert answered(connection)[0] == 200


def test_a_head_that_does_not_come(service: Running) -> None:
    for begun in (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", b"POST"):
        with service.connect() as connection:
            connection.sendall(begun)
            refused(connection, 408)
    with service.connect() as connection:  # nothing was asked, so nothing is answered
        assert connection.recv(1) == b""


def test_a_head_that_comes_a_byte_at_a_time(service: Running) -> None:
    with service.connect() as connection:
        connection.sendall(ASK)
        assert answered(connection)[0] == 200  # also behind another request
        began = time.monotonic()
        try:
            for byte in b"GET /health HTTP/1.1\r\nX-Long: " + b"a" * 100:
                connection.sendall(bytes([byte]))
                time.sleep(0.1)  # more than ten seconds, if nobody minds
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert time.monotonic() - began < 8


def test_a_head_without_an_end(service: Running) -> None:
    with service.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012
            for _ in range(60_000):  # the system keeps some megabytes of it that a busy service has not looked at yet
                connection.sendall(b"X: " + b"a" * 1000 + b"\r\n")


def test_a_body_that_does_not_come(service: Running) -> None:
    with service.connect() as connection:
        connection.sendall(ASK[:-3])
        refused(connection, 408)


def test_parts_without_an_end(service: Running) -> None:
    head = b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with service.connect() as connection:
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        refused(connection, 408)
    with service.connect() as connection:
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        part = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"

        def send() -> None:
            try:
                for _ in range(100):
                    connection.sendall(part)
            except OSError:
                pass

        sender = threading.Thread(target=send)
        sender.start()
        assert answered(connection)[0] == 413
        sender.join()


def test_parts_that_end_are_put_together(service: Running) -> None:
    head = b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    parts = b'8\r\n{"text":\r\n3\r\n"a"\r\n1\r\n}\r\n0\r\nHost: evil.org\r\n\r\n'
    with service.connect() as connection:
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + parts)
        assert answered(connection)[0] == 200


def test_a_size_that_is_far_too_large_is_refused_before_it_comes(service: Running) -> None:
    head = b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for length in (b"99999999999", b"2000000\r\nExpect: 100-continue"):
        with service.connect() as connection:
            connection.sendall(head + b"Content-Length: " + length + b"\r\n\r\n")
            refused(connection, 413)


@pytest.mark.parametrize(
    "wire",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 9\r\n\r\nabc",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.org\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"\r\n\r\n\x00\x00\x00\r\n\r\n",
    ],
)
def test_what_is_no_request(service: Running, wire: bytes) -> None:
    with service.connect() as connection:
        connection.sendall(wire)
        code, _, body = answered(connection)
        assert code == 400
        assert json.loads(body)["error"]["message"]
    with service.connect() as connection:  # and it goes on
        connection.sendall(ASK)
        assert answered(connection)[0] == 200


def test_a_client_that_hangs_up_gives_its_place_back() -> None:
    with running(load=lambda: slow_models(0.4, Room(waiting=2, sentences=1, wait=0.0))) as service:
        (one,) = service.service.served()
        first, second, third = (service.connect() for _ in range(3))
        first.sendall(ASK)
        service.until(lambda: one.worker.running == 1)
        for waiting in (second, third):
            waiting.sendall(ASK)
        service.until(lambda: one.worker.waiting == 2)
        with service.connect() as other:
            other.sendall(ASK)
            code, headers, _ = answered(other)
            assert (code, int(headers["retry-after"]) >= 1) == (429, True)
        second.close()
        service.until(lambda: one.worker.waiting == 1, 0.3)
        assert one.worker.cancelled == 1
        with service.connect() as other:  # its place is free
            other.sendall(ASK)
            assert answered(other)[0] == 200
        assert answered(first)[0] == answered(third)[0] == 200
        service.until(lambda: service.service.running == 0)


def test_too_many_connections_are_told_so() -> None:
    with running(dataclasses.replace(QUICK, connections=3), lambda: slow_models(0.0)) as service:
        held = [service.connect() for _ in range(3)]
        for connection in held:
            connection.sendall(ASK)
            assert answered(connection)[0] == 200
        with service.connect() as one_more:
            one_more.sendall(ASK)
            assert answered(one_more)[0] == 429
        held[0].close()
        service.until(lambda: len(service.server.server_state.connections) == 2)
        with service.connect() as one_more:
            one_more.sendall(ASK)
            assert answered(one_more)[0] == 200
        for connection in held[1:]:
            connection.close()


def test_a_stream_that_nobody_reads_any_more_is_searched_no_more() -> None:
    with running() as service:
        worker = next(iter(service.service.served())).worker
        asked = {"text": "The young cat sleeps.", "stream": True, "min_length": 1000, "max_length": 1000, "beam": 8}
        with service.connect() as connection:
            connection.sendall(request("/v1/translate", json.dumps(asked).encode()))
            service.until(lambda: worker.running == 1)
        service.until(lambda: worker.running == 0 and worker.waiting == 0, 2)
        assert worker.cancelled == 1
        service.until(lambda: service.service.running == 0)
        assert b'code="499",route="/v1/translate"' in service.service.measures.text()


@pytest.mark.parametrize("offer", [b"Upgrade: h2c", b"upgrade:websocket", b"UPGRADE:\th2c, foo/2"])
def test_an_offer_to_speak_something_else_is_not_taken_and_takes_nothing(service: Running, offer: bytes) -> None:
    """Java's client makes one with its first request, and the body is meant."""
    head = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n" + offer + b"\r\n"
    asked = ASK.replace(b"\r\n", b"\r\n" + head, 1)
    with service.connect() as connection:
        for _ in range(2):
            connection.sendall(asked)
            code, _, body = answered(connection)
            assert code == 200
            assert json.loads(body)


def test_an_offer_that_comes_in_pieces_is_refused_in_words(service: Running) -> None:
    asked = ASK.replace(b"\r\n", b"\r\nConnection: Upgrade\r\nUpg|rade: h2c\r\n", 1)
    one, _, other = asked.partition(b"|")
    with service.connect() as connection:
        connection.sendall(one)
        time.sleep(0.1)
        connection.sendall(other)
        refused(connection, 400)
