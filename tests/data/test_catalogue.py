"""The catalogue against a real server on the loopback: whole, interrupted, corrupted, missing, unreachable."""

from __future__ import annotations

import dataclasses
import errno
import gzip
import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jumok.data import catalogue
from jumok.data.catalogue import Dataset
from jumok.errors import BadInput, Failure

CONTENT = {
    f"{split}.{language}.gz": gzip.compress(f"{split} {language}\n".encode() * 400)
    for split in ("train", "val", "test_2016_flickr")
    for language in ("en", "de")
}


class Mirror(ThreadingHTTPServer):
    """Serves CONTENT; `trouble` says for a file what goes wrong."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.trouble: dict[str, str] = {}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        name = self.path.removeprefix("/multi30k/")
        self.server.asked.append(name)
        trouble = self.server.trouble.get(name, "")
        if trouble.isdigit() or name not in CONTENT:
            self.send_error(int(trouble or 404))
            return
        body = CONTENT[name]
        if trouble == "corrupted":
            body = body[:-5] + bytes([body[-5] ^ 1]) + body[-4:]
        self.send_response(200)
        if trouble != "cut without a length":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if trouble.startswith("cut"):
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with Mirror() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def small(mirror: Mirror) -> Dataset:
    """The catalogue's first set with the little files of the loopback server."""
    real = catalogue.find("multi30k-en-de", mirror.address)

    def shrink(file: catalogue.RemoteFile) -> catalogue.RemoteFile:
        body = CONTENT[file.name]
        return dataclasses.replace(file, size=len(body), sha256=hashlib.sha256(body).hexdigest())

    return dataclasses.replace(real, files={split: (shrink(a), shrink(b)) for split, (a, b) in real.files.items()})


def test_get_verifies_and_reuses(mirror: Mirror, small: Dataset, tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []
    paths = catalogue.get(small, tmp_path / "new" / "folder", lambda name, size, reused: seen.append((name, reused)))
    assert {split: (a.name, b.name) for split, (a, b) in paths.items()} == {
        "train": ("train.en.gz", "train.de.gz"),
        "valid": ("val.en.gz", "val.de.gz"),
        "test": ("test_2016_flickr.en.gz", "test_2016_flickr.de.gz"),
    }
    assert all(path.read_bytes() == CONTENT[path.name] for pair in paths.values() for path in pair)
    assert [reused for _, reused in seen] == [False] * 6
    assert len(mirror.asked) == 6
    catalogue.get(small, tmp_path / "new" / "folder", lambda name, size, reused: seen.append((name, reused)))
    assert [reused for _, reused in seen[6:]] == [True] * 6
    assert len(mirror.asked) == 6, "the second call asked the server again"


@pytest.mark.parametrize("trouble", ["cut", "cut without a length", "corrupted", "404", "500"])
def test_trouble_leaves_no_file_and_the_next_call_goes_on(
    mirror: Mirror, small: Dataset, tmp_path: Path, trouble: str
) -> None:
    mirror.trouble["val.de.gz"] = trouble
    with pytest.raises(Failure) as caught:
        catalogue.get(small, tmp_path)
    message = str(caught.value)
    assert "/multi30k/val.de.gz" in message
    assert caught.value.exit_code == 1
    if trouble == "cut":
        assert "the connection broke" in message
    elif trouble.isdigit():
        assert f"answered {trouble}" in message
    else:
        assert f"expected {hashlib.sha256(CONTENT['val.de.gz']).hexdigest()}" in message
        assert re.search(r"received [0-9a-f]{64}\n", message)
        assert "It was removed" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.de.gz", "train.en.gz", "val.en.gz"]
    mirror.trouble.clear()
    mirror.asked.clear()
    catalogue.get(small, tmp_path)
    assert mirror.asked == ["val.de.gz", "test_2016_flickr.en.gz", "test_2016_flickr.de.gz"]


def test_no_network(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        dataset = catalogue.find("multi30k-en-de", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(Failure, match="cannot be reached"):
            catalogue.get(dataset, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_full_disk(small: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pooch

    def full(self: object, url: str, output: str, owner: object) -> None:
        Path(output).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(Failure, match="the disk is full"):
        catalogue.get(small, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_user_is_not_written_over(mirror: Mirror, small: Dataset, tmp_path: Path) -> None:
    (tmp_path / "train.en.gz").write_bytes(b"mine")
    with pytest.raises(BadInput, match="not the catalogue's"):
        catalogue.get(small, tmp_path)
    assert (tmp_path / "train.en.gz").read_bytes() == b"mine"
    assert mirror.asked == []


def test_the_folder_is_a_file(small: Dataset, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BadInput, match="is a file"):
            catalogue.get(small, place)


def test_names_and_directions() -> None:
    assert {dataset.name for dataset in catalogue.datasets()} >= {
        f"multi30k-en-{language}" for language in ("de", "fr", "cs")
    }
    turned = catalogue.find("multi30k-de-en")
    assert turned.languages == ("de", "en")
    assert [file.name for file in turned.files["train"]] == ["train.de.gz", "train.en.gz"]
    with pytest.raises(BadInput, match='Did you mean "multi30k-en-de"'):
        catalogue.find("multi30-en-de")


def test_mirror_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_MIRROR", "http://127.0.0.1:1/base/")
    assert next(catalogue.find("multi30k-en-fr").remote_files()).url == "http://127.0.0.1:1/base/multi30k/train.en.gz"
    monkeypatch.setenv("JUMOK_MIRROR", "/some/folder")
    with pytest.raises(BadInput, match="JUMOK_MIRROR"):
        catalogue.datasets()


def test_the_table_is_complete() -> None:
    for dataset in catalogue.datasets():
        assert dataset.licence
        assert set(dataset.files) == {"train", "valid", "test"} == set(dataset.lines)
        for file in dataset.remote_files():
            assert file.url.startswith("https://")
            assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
            assert file.size > 0


def test_the_table_matches_the_real_files() -> None:
    folder = Path(__file__).parents[3] / "shared" / "data" / "multi30k"
    if not folder.is_dir():
        pytest.skip("the real Multi30k is not on this machine")
    for dataset in catalogue.datasets():
        for split, pair in dataset.files.items():
            for file in pair:
                content = (folder / file.name).read_bytes()
                assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)
                assert gzip.decompress(content).count(b"\n") == dataset.lines[split]
