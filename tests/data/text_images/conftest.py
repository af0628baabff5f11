"""Small random pictures and random texts of many scripts."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

LETTERS = [*"abcXYZ019", *"가나힣닭쀍", *"éßñ", *"日本語", "🙂", "👩‍🚀", "e\u0301", "각", *"\"'\\,;.!-_()", " ", "\t"]


def random_text(letters: list[str] = LETTERS) -> str:
    """As it is kept, with something at both ends that can be seen; now and then nothing at all."""
    dice = np.random.default_rng()
    if dice.random() < 0.1:
        return ""
    inner = "".join(dice.choice(letters, dice.integers(0, 9)))
    return unicodedata.normalize("NFC", f"{dice.choice(letters[:20])}{inner}{dice.choice(letters[:20])}")


def random_picture() -> bytes:
    dice = np.random.default_rng()
    out = io.BytesIO()
    pixels = dice.integers(0, 256, (*dice.integers(1, 7, 2), 3), np.uint8)
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def texts() -> Callable[..., list[str]]:
    """Some texts; `without`: letters that they do not have."""

    def make(count: int, without: str = "") -> list[str]:
        return [random_text([letter for letter in LETTERS if letter not in without]) for _ in range(count)]

    return make


@pytest.fixture
def pictures() -> Callable[..., dict[str, bytes]]:
    """Pictures of these names, also written below a folder if one is given."""

    def make(*names: str, folder: Path | None = None) -> dict[str, bytes]:
        found = {name: random_picture() for name in names}
        for name, data in found.items() if folder is not None else ():
            assert folder is not None
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return found

    return make
