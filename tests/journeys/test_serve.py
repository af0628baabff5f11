"""A service in a process of its own: begun, asked, and ended as people do it."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from journey import PLAIN

from jumok.data import grammar


class Service:
    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        sent = {
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, sent), timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@contextmanager
def serving(*arguments: str, **variables: str) -> Iterator[Service]:
    process = subprocess.Popen(
        [sys.executable, "-m", "jumok", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **PLAIN, **variables},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"jumok serve: (http://\S+:\d+) \(.*\)$", line)
        assert found, f"{line!r} {process.communicate(timeout=5)}"
        yield Service(process, found[1])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_run_is_served_and_ends_when_it_is_told_to() -> None:
    key = secrets.token_hex(16)
    sentences = [pair.source for pair in grammar.pairs("en", "fr", "test", 40)]
    with serving("--log", "json", JUMOK_API_KEY=key) as service:
        assert service.ask("/ready") == (200, {"status": "ready"})
        assert service.ask("/v1/translate", {"text": "I am"})[0] == 401
        known = {"Authorization": f"Bearer {key}"}
        code, said = service.ask("/v1/translate", {"text": "I am a student."}, **known)
        assert (code, said["translations"][0]["text"]) == (200, "Je suis étudiant.")
        codes: list[int] = []
        threads = [
            threading.Thread(
                target=lambda part=part: codes.append(service.ask("/v1/translate", {"text": part}, **known)[0])
            )
            for part in (sentences[:20], sentences[20:])
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        service.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        _, told = service.process.communicate(timeout=30)
        assert set(codes) <= {200, 503}
        assert service.process.returncode == 0, told
        lines = [json.loads(line) for line in told.splitlines()]
        assert any(line.get("route") == "/v1/translate" and line["code"] == 200 for line in lines)
        assert key not in told
        assert "student" not in told


@pytest.mark.skipif(os.name != "posix", reason="other signals elsewhere")
def test_ctrl_c_and_a_second_signal() -> None:
    with serving() as service:
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(20) == 130
    with serving("--seconds", "60") as service:
        host, _, port = service.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as connection:
            body = json.dumps({"text": ["cat"] * 128, "min_length": 1000, "max_length": 1000, "beam": 32}).encode()
            head = f"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
            time.sleep(0.5)  # long work, which it would finish
            service.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert service.process.poll() is None
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(5) == 143


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = subprocess.run(
            [sys.executable, "-m", "jumok", "serve", "--port", port],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert result.returncode == 1
    assert f"--port {port}" in result.stderr
    assert "Traceback" not in result.stderr
