"""Inputs made to break it: each is answered, none with 500, and the service goes on."""

from __future__ import annotations

import base64
import json
import struct
import time
import zlib
from io import BytesIO

import pytest
from PIL import Image
from served import client as made
from served import picture
from starlette.testclient import TestClient

from jumok.serve.settings import Settings

OPERATIONS = ["/v1/translate", "/v1/classify", "/v1/tag", "/v1/embed", "/v1/fill", "/v1/attend"]
TEXTS = [
    "",
    " ",
    "\x00",
    "\x00\x01\x02\x1b[31m\x7f\x80",
    "\u202e\u200b\ufeff\ufffe\uffff",
    "\U0010ffff" * 50,
    "a\u0301" * 400 + "\u0300" * 500,  # a letter with five hundred accents
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "'; DROP TABLE runs; -- ${jndi:ldap://x} {{7*7}} %s %n %x",
    "../../../../etc/passwd",
    "ㄱㄴㄷ\u1100\u1161\u11a8 한글 漢字 عربى हिन्दी 🏳️‍🌈👨‍👩‍👧‍👦",
    "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "<pad> <sos> <eos> <unk> [MASK] [CLS] [SEP] 2de </s>",
    "[MASK]" * 300,
    "a" * 9_999,
    "cat " * 2_000,
    "\n".join("cat" for _ in range(500)),
    "데이터" * 1000,
]
BODIES = [
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"{",
    b'{"text": }',
    b'{"text": "a"} {"text": "b"}',
    b"\xef\xbb\xbf" + b'{"text": "a"}',
    b'{"text": "\xff\xfe"}',
    b'{"text": "\\ud800"}',
    b'{"text": "\\u0000"}',
    b'{"text": NaN}',
    b'{"text": "a", "length_penalty": NaN}',
    b'{"text": "a", "length_penalty": Infinity}',
    b'{"text": "a", "length_penalty": 1e999}',
    b'{"text": "a", "beam": ' + b"9" * 4000 + b"}",
    b'{"text": "a", "beam": -1}',
    b'{"text": "a", "beam": 1.5}',
    b'{"text": "a", "seed": 18446744073709551616}',
    b'{"text": "a", "best": 1e30}',
    b'{"text": "a", "top_p": -0.0}',
    b'{"text": "a", "model": {"a": 1}}',
    b'{"text": "a", "__class__": "x", "self": 1}',
    b'{"text": "a", "text": "b"}',
    b'{"text": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b"[" * 100_000,
    b'{"a":' * 10_000,
    b'{"text": [1, null, {}, "a"]}',
    b'{"text": []}',
    json.dumps({"text": ["a"] * 5000}).encode(),
    json.dumps({"k" * 50_000: 1, "text": "a"}).encode(),
    json.dumps({"text": "a", **{f"k{n}": n for n in range(5000)}}).encode(),
    json.dumps({"text": "a", "require": ["x" * 201]}).encode(),
    json.dumps({"text": "a", "require": ["."] * 16, "forbid": [" "]}).encode(),
    json.dumps({"text": "a", "forbid": ["(a+)+$" * 30]}).encode(),
    json.dumps({"text": "a", "prefix": "\x00" * 900}).encode(),
    json.dumps({"text": "a", "tag": "2xx"}).encode(),
    json.dumps({"text": "a", "min_length": 1024, "beam": 1}).encode(),
    json.dumps({"text": "a", "max_length": 1, "prefix": "Le"}).encode(),
    json.dumps({"text": "a", "sample": True, "temperature": 1e-30}).encode(),
]
SENT = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
def _it_goes_on(client: TestClient) -> object:
    yield
    assert client.post("/v1/translate", json={"text": "I am a student."}).status_code == 200


@pytest.mark.parametrize("path", OPERATIONS)
def test_texts(client: TestClient, path: str) -> None:
    for text in TEXTS:
        said = client.post(path, json={"text": text})
        assert said.status_code in (200, 404, 413, 422), (text[:40], said.text[:300])
        said.json()


@pytest.mark.parametrize("path", [*OPERATIONS, "/v1/image/classify", "/v1/image/read", "/v1/answer"])
def test_bodies(client: TestClient, path: str) -> None:
    for body in BODIES:
        said = client.post(path, content=body, headers=SENT)
        assert said.status_code in (200, 400, 413, 422), (body[:60], said.text[:300])
        said.json()


@pytest.mark.parametrize("path", ["/v1/image/read", "/v1/image/classify", "/v1/translate"])
def test_a_million_keys_or_values_hold_nobody_up(client: TestClient, path: str) -> None:
    key = "image" if "image" in path else "text"
    many = 1_200_000 if "image" in path else 90_000
    keys = b",".join(b'"k%d":1' % number for number in range(many))
    for body in (b"{" + keys + b"}", b'{"%s":[%s1]}' % (key.encode(), b"1," * many)):
        began = time.process_time()
        said = client.post(path, content=body, headers=SENT)
        assert said.status_code in (413, 422)
        assert len(said.content) < 2000
        assert time.process_time() - began < 1


def test_guesses_whose_texts_would_fill_the_memory(client: TestClient) -> None:
    """Each guess is told with the whole text: hidden words, times guesses, times length."""
    said = client.post("/v1/fill", json={"text": ["[MASK] " * 120] * 100, "best": 100})
    assert (said.status_code, said.json()["error"]["where"]) == (413, "text")
    assert client.post("/v1/fill", json={"text": ["The [MASK] sleeps."] * 100, "best": 100}).status_code == 200


def test_a_key_that_is_no_text() -> None:
    """A form says its own character set, and some have halves of characters."""
    form = b'--x\r\nContent-Disposition: form-data; name="api_key"\r\n\r\n\\ud800\r\n--x--\r\n'
    with made(Settings(keys=("0123456789abcdef",))) as client:
        kind = "multipart/form-data; boundary=x; charset=unicode_escape"
        assert client.post("/detect", content=form, headers={"content-type": kind}).status_code == 401


def test_bodies_for_libretranslate(client: TestClient) -> None:
    for path in ("/translate", "/detect"):
        for kind in (
            *SENT.values(),
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "a/b",
            "x",
        ):
            for body in (*BODIES, b"q=%ff%00&source=en&target=fr", b"&" * 5000, b"--x\r\n\r\n", b"q=1&" * 3000):
                said = client.post(path, content=body, headers={"content-type": kind})
                assert said.status_code in (200, 400, 413), (kind, body[:60], said.text[:300])
                if said.status_code != 200:
                    assert isinstance(said.json()["error"], str)


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is huge, and is: rows of zeros pack well."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(min(width * height * 3, 1 << 22)), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def gif_of_many() -> bytes:
    file = BytesIO()
    frames = [Image.new("P", (64, 64), number) for number in range(200)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()


PICTURES = [
    b"\x00",
    b"GIF89a",
    picture()[:40],
    picture()[:-20],
    picture("JPEG")[:200],
    bomb(1 << 16, 1 << 16),
    bomb((1 << 31) - 1, 1),
    bomb(0, 0),
    bomb(8192, 8000),
    gif_of_many(),
    b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) run\n",
    b"%PDF-1.7",
    b"BM" + b"\xff" * 60,
    b"II*\x00" + b"\xff" * 100,
    b"P6 99999 99999 255\n",
]


def test_pictures(client: TestClient) -> None:
    for data in PICTURES:
        for said in (
            client.post("/v1/image/classify", content=data, headers={"content-type": "image/png"}),
            client.post("/v1/image/classify", json={"image": base64.b64encode(data).decode()}),
            client.post("/v1/image/classify", files={"file": ("../../a.png\x00", data, "image/png")}),
        ):
            assert said.status_code in (200, 422), (data[:40], said.text[:300])
            said.json()


def test_a_bad_picture_does_not_spoil_the_request_of_another(client: TestClient) -> None:
    images = [base64.b64encode(data).decode() for data in (picture(), b"nothing", picture())]
    said = client.post("/v1/image/classify", json={"image": images})
    assert (said.status_code, said.json()["error"]["where"]) == (422, "image[1]")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--x\r\n\r\n"),
        ("multipart/form-data; boundary=", b"----\r\n"),
        ("multipart/form-data; boundary=" + "x" * 5000, b"--x--"),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=file\r\n\r\nabc\r\n--x--\r\n",
        ),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\xff\r\n\r\nabc\r\n--x--\r\n",
        ),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"A: b\r\n" * 20_000),
        ("multipart/form-data; boundary=x; charset=nothing", b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n" * 3000),
        ("image/png", b""),
        ("image/" + "x" * 10_000, b"abc"),
        ("text/html", b"<html>"),
        ("application/json; charset=utf-16", "{}".encode("utf-16")),
        ("", b"abc"),
    ],
)
def test_forms(client: TestClient, kind: str, body: bytes) -> None:
    for path in ("/v1/image/classify", "/v1/image/read?beam=99999999999999999999&turn=perhaps"):
        said = client.post(path, content=body, headers={"content-type": kind})
        assert said.status_code in (400, 413, 415, 422), said.text[:300]
        assert said.json()["error"]["message"]


@pytest.mark.parametrize(
    "path", ["/v1/../v1/models", "/%2e%2e/%2e%2e/etc/passwd", "//evil.org/", "/v1/translate/", "/%00"]
)
def test_paths(client: TestClient, path: str) -> None:
    for method in ("GET", "POST", "DELETE", "PROPFIND", "OPTIONS", "TRACE"):
        said = client.request(method, path)
        assert said.status_code in (200, 404, 405), (method, said.text[:200])
        assert "root:" not in said.text


def test_headers(client: TestClient) -> None:
    for headers in (
        {"authorization": "Bearer " + "x" * 5000},
        {"x-api-key": b"\xff\xfe"},
        {"content-type": 'application/json; charset="'},
        {"content-encoding": "gzip"},
        {"accept": "*/" * 1000},
        {"x-forwarded-for": "1.2.3.4", "x-forwarded-host": "evil.org", "x-original-url": "/metrics"},
        {"cookie": "a=b; " * 500, "range": "bytes=0-0,1-1,2-2", "if-none-match": "*"},
    ):
        said = client.post("/v1/translate", json={"text": "I am"}, headers=headers)
        assert said.status_code in (200, 415), (headers, said.text[:200])
