"""Hashes of files, remembered: right after every change, and read only when there was one."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from jumok.data import hashes
from jumok.data.hashes import Hashes
from jumok.data.readers import file_hash
from jumok.errors import BadInput


def write(path: Path, content: bytes, age: float = 60.0) -> str:
    path.write_bytes(content)
    os.utime(path, (time.time() - age, time.time() - age))
    return str(path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read, in order. What was written just now counts as old: its ctime cannot be set."""
    read: list[str] = []
    monkeypatch.setattr(hashes, "file_hash", lambda file: read.append(file) or file_hash(file))
    monkeypatch.setattr(hashes, "FRESH_SECONDS", -1.0)
    return read


def test_an_unchanged_file_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    file = write(tmp_path / "a", b"hello")
    expected = ("none", hashlib.sha256(b"hello").hexdigest())
    assert [Hashes(tmp_path / "cache")(file) for _ in range(3)] == [expected] * 3
    assert reads == [file]


def test_every_change_is_seen(tmp_path: Path, reads: list[str]) -> None:
    file, remembered = tmp_path / "a", Hashes(tmp_path / "cache")
    write(file, b"first")
    times = file.stat().st_atime, file.stat().st_mtime

    def written() -> None:
        file.write_bytes(b"other")

    def time_set_back() -> None:
        file.write_bytes(b"third")
        os.utime(file, times)

    def replaced() -> None:
        write(tmp_path / "b", b"fifth")
        os.utime(tmp_path / "b", times)
        (tmp_path / "b").replace(file)

    def longer() -> None:
        file.write_bytes(b"first and more")

    for change in (lambda: None, written, time_set_back, replaced, longer):
        change()
        assert remembered(str(file)) == file_hash(str(file)), change
    assert len(reads) == 5


def test_what_changed_just_now_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second change within one tick of the clock leaves the same signature."""
    file, remembered = tmp_path / "a", Hashes(tmp_path / "cache")
    monkeypatch.setattr(hashes, "signature", lambda _: [5, time.time_ns(), time.time_ns() - 10**9, 1, 1])
    for content in (b"first", b"other"):
        file.write_bytes(content)
        assert remembered(str(file))[1] == hashlib.sha256(content).hexdigest()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"signature": 3}'])
def test_a_damaged_memory_is_replaced(tmp_path: Path, reads: list[str], damage: str) -> None:
    file, remembered = write(tmp_path / "a", b"hello"), Hashes(tmp_path / "cache")
    expected = remembered(file)
    (memory,) = (tmp_path / "cache" / "hashes").iterdir()
    memory.write_text(damage)
    assert remembered(file) == remembered(file) == expected
    assert len(reads) == 2


def test_a_cache_that_cannot_be_written_to_only_costs_time(tmp_path: Path, reads: list[str]) -> None:
    file = write(tmp_path / "a", b"hello")
    (tmp_path / "cache").write_text("a file")
    assert Hashes(tmp_path / "cache")(file) == Hashes(tmp_path / "cache")(file) == file_hash(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere: no such file"):
        Hashes(tmp_path / "cache")(str(tmp_path / "nowhere"))
