"""What the readers share: names of pictures, labels, keys."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from jumok.data.images.raw import class_name, is_image_name, key_of, stamp
from jumok.errors import BadInput


def test_names_of_pictures() -> None:
    assert all(map(is_image_name, ("a.jpg", "b/c.JPEG", "x.y.png", "고양이.webp", "phone.HEIC")))
    assert not any(map(is_image_name, ("jpg", ".png", "a.txt", "a.jpg.part", "a.png/b", "")))


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
