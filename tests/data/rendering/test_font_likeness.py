"""Families that are drawn alike under different names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from built_fonts import Shape, build, random_shape

from jumok.data.rendering import font_likeness
from jumok.data.rendering.face import Face
from jumok.data.rendering.font_likeness import KEPT, LETTERS, families_alike

LATIN, HANGUL = LETTERS["latin"], LETTERS["hangul"]


@pytest.fixture
def chance(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def shapes_of(chance: np.random.Generator, characters: str) -> dict[str, Shape]:
    return {character: random_shape(chance) for character in characters}


def made(folder: Path, family: str, shapes: Mapping[str, Shape]) -> Face:
    path = build(folder / f"{family}.ttf", shapes, family)
    return Face(path, 0, family, "Regular", np.array(sorted(map(ord, shapes)), np.int32))


def narrow(shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Two thirds as wide."""
    return {
        character: [(left * 2 // 3, bottom, right * 2 // 3, top) for left, bottom, right, top in shape]
        for character, shape in shapes.items()
    }


def test_copies_are_found_be_they_narrow_and_nothing_else(tmp_path: Path, chance: np.random.Generator) -> None:
    first, second = shapes_of(chance, LATIN), shapes_of(chance, LATIN)
    faces = [
        made(tmp_path, "One", first), made(tmp_path, "Other", second), made(tmp_path, "Copy", first),
        made(tmp_path, "Slim", narrow(first)), made(tmp_path, "Third", shapes_of(chance, LATIN)),
    ]  # fmt: skip
    found = families_alike(faces, tmp_path / "cache")
    assert found == [("Copy", "One"), ("Copy", "Slim"), ("One", "Slim")]
    assert families_alike(faces[::-1], tmp_path / "cache2") == found


def test_one_script_is_enough(tmp_path: Path, chance: np.random.Generator) -> None:
    latin, hangul = shapes_of(chance, LATIN), shapes_of(chance, HANGUL)
    faces = [
        made(tmp_path, "Both", {**latin, **hangul}),
        made(tmp_path, "Latin", {**latin, **shapes_of(chance, HANGUL)}),
        made(tmp_path, "Hangul", hangul),
    ]
    assert families_alike(faces, tmp_path) == [("Both", "Hangul"), ("Both", "Latin")]


def test_a_few_letters_in_common_say_nothing(tmp_path: Path, chance: np.random.Generator) -> None:
    latin = shapes_of(chance, LATIN)
    few = {letter: latin[letter] for letter in LATIN[:4]}
    assert not families_alike([made(tmp_path, "Whole", latin), made(tmp_path, "Few", few)], tmp_path)


def test_letters_are_compared_once(
    tmp_path: Path, chance: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    latin = shapes_of(chance, LATIN)
    faces = [made(tmp_path, "One", latin), made(tmp_path, "Copy", latin)]
    found = families_alike(faces, tmp_path / "cache")
    with monkeypatch.context() as patched:
        patched.delattr(font_likeness, "_compared")
        assert families_alike(faces, tmp_path / "cache") == found == [("Copy", "One")]
    made(tmp_path, "Copy", shapes_of(chance, LATIN))  # another font under its name
    assert not families_alike(faces, tmp_path / "cache")
    for content in ("{", "[]", json.dumps({"format": 1, "alike": {"x": [["One"]]}})):
        (tmp_path / "cache" / KEPT).write_text(content)
        assert not families_alike(faces, tmp_path / "cache")


def test_files_that_are_gone_or_broken_are_like_no_other(tmp_path: Path, chance: np.random.Generator) -> None:
    latin = shapes_of(chance, LATIN)
    faces = [made(tmp_path, name, latin) for name in ("One", "Gone", "Broken")]
    faces[1].path.unlink()
    faces[2].path.write_bytes(b"no font")
    assert not families_alike(faces, tmp_path)
    assert not families_alike([], tmp_path)
