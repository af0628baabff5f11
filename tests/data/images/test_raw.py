"""What the readers share: names of pictures, labels, keys."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from jumok.data.images.raw import class_name, is_image_name, key_of, shown, stamp
from jumok.errors import BadInput


def test_names_of_pictures() -> None:
    assert all(map(is_image_name, ("a.jpg", "b/c.JPEG", "x.y.png", "고양이.webp", "phone.HEIC")))
    assert not any(map(is_image_name, ("jpg", ".png", "a.txt", "a.jpg.part", "a.png/b", "")))


def test_names_are_shown_so_that_they_can_be_written() -> None:
    assert shown(Path("고양이") / os.fsdecode(b"\xb0\xed 1.png")) == "고양이/\\xb0\\xed 1.png"
    assert shown("a\n\x1b[31m\u2028\ud800.png") == "a\\n\\x1b[31m\\u2028\\ud800.png"
    for name in ("C:\\cat.png", "넓은\u3000빈칸.png", "👨\u200d👩\u200d👧.png"):
        assert shown(name) == name
    for _ in range(100):
        name = os.fsdecode(secrets.token_bytes(8))
        assert shown(name).encode().decode() == shown(shown(name)) == shown(name)


def test_labels() -> None:
    assert class_name("  cat \r", "x") == "cat"
    assert class_name("ᄀ\u1162", "x") == "개"
    for bad in ("", " \t", "a\nb", "a\x1b[31m", "\udce9"):
        with pytest.raises(BadInput, match=r"^here: the label"):
            class_name(bad, "here")


def test_keys() -> None:
    parts = ["a", 1, ["b", [2, 3]], secrets.token_hex()]
    assert key_of("kind", parts) == key_of("kind", list(parts))
    others = [["a", 1], [1, "a"], ["a1"], ["a", "1"], [["a", 1]], ["a\n1"], []]
    assert len({key_of("kind", other) for other in others} | {key_of("other", [])}) == len(others) + 1


def test_a_stamp_changes_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"one")
    before = stamp(path)
    assert stamp(path) == before
    path.write_bytes(b"three")
    assert stamp(path) != before
    before = stamp(path)
    os.utime(path, ns=(5, 5))
    assert stamp(path) != before
