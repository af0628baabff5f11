"""The faces of a machine: found wherever they are, each once, read once, and broken ones named."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from built_fonts import build, random_shape
from fontTools.ttLib import TTFont
from fontTools.ttLib.ttCollection import TTCollection

from jumok.data.rendering import font_files, fonts
from jumok.data.rendering.font_coverage import read_font
from jumok.data.rendering.fonts import Face, faces_for, find_faces, must_cover
from jumok.errors import BadInput

MATPLOTLIB = Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf"
SOME = ("DejaVuSans.ttf", "DejaVuSerif-Bold.ttf", "cmr10.ttf", "cmex10.ttf", "STIXGeneral.ttf")


@pytest.fixture
def chance(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "fonts" / "inner"
    place.mkdir(parents=True)
    for name in SOME:
        shutil.copy(MATPLOTLIB / name, place)
    return tmp_path / "fonts"


def found_in(*paths: Path, said: list[str] | None = None, cache: Path | None = None) -> list[Face]:
    return find_faces(paths, (said if said is not None else []).append, cache)


def face(family: str, characters: str) -> Face:
    return Face(Path(f"{family}.ttf"), 0, family, "Regular", np.array(sorted(map(ord, characters)), np.int32))


def test_all_faces_of_a_folder_in_one_order(folder: Path) -> None:
    faces = found_in(folder)
    assert [each.name for each in faces] == [
        "cmr10 Regular", "DejaVu Sans Book", "DejaVu Serif Bold", "STIXGeneral Regular",
    ]  # fmt: skip
    shuffled = found_in(*sorted((folder / "inner").iterdir(), reverse=True))
    assert [each.name for each in shuffled] == [each.name for each in faces]
    for each in faces:
        codes = read_font(each.path)[0].covered
        assert each.covered.dtype == np.int32
        assert np.array_equal(each.covered, codes)
        assert (np.diff(codes) > 0).all()


def test_a_face_comes_once(folder: Path, tmp_path: Path, chance: np.random.Generator) -> None:
    """Though it is in two folders; and the one with more characters is taken, wherever it is."""
    shutil.copytree(folder, tmp_path / "again")
    assert len(found_in(folder, tmp_path / "again")) == len(found_in(folder))
    shapes = {letter: random_shape(chance) for letter in "ABCDE"}
    less = build(tmp_path / "less.ttf", {letter: random_shape(chance) for letter in "AB"})
    more = build(tmp_path / "more.ttf", shapes)
    for order in ((less, more), (more, less)):
        assert [each.path for each in found_in(*order)] == [more]


def test_faces_that_draw_the_same_come_once(tmp_path: Path, chance: np.random.Generator) -> None:
    """As those of collections for several languages do."""
    shapes = {letter: random_shape(chance) for letter in "ABC가나"}
    built = [build(tmp_path / f"{name}.ttf", shapes, f"Sans {name}") for name in ("JP", "KR")]
    collection = TTCollection()
    collection.fonts = [TTFont(path) for path in built]
    place = tmp_path / "collection"
    place.mkdir()
    collection.save(place / "both.ttc")
    assert [(each.family, each.number) for each in found_in(place)] == [("Sans JP", 0)]


def test_broken_fonts_are_named_and_left_out(folder: Path) -> None:
    (folder / "broken.ttf").write_bytes(b"\0\1\0\0 and no more of it")
    (folder / "nothing.otf").write_bytes(b"")
    (folder / "cut.ttf").write_bytes((MATPLOTLIB / "cmb10.ttf").read_bytes()[:3000])
    for _ in range(2):  # also when it is known already
        said: list[str] = []
        assert len(found_in(folder, said=said)) == 4
        assert len(said) == 1
        assert all(name in said[0] for name in ("broken.ttf", "nothing.otf", "cut.ttf"))


def test_a_file_that_was_asked_for_is_not_left_out_without_a_word(folder: Path) -> None:
    said: list[str] = []
    assert not found_in(folder / "inner" / "cmex10.ttf", said=said)
    assert "cmex10" in said[0]
    assert "neither letters nor digits" in said[0]


def test_fonts_are_read_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counting(paths: Sequence[Path]) -> list[Any]:
        read.extend(paths)
        return [read_font(path) for path in paths]

    monkeypatch.setattr(fonts, "read_fonts", counting)
    monkeypatch.setattr(fonts, "cores", lambda: 1)
    first = found_in(folder, cache=tmp_path / "cache")
    assert len(read) == len(SOME)
    again = found_in(folder, cache=tmp_path / "cache")
    assert len(read) == len(SOME)
    assert first == again
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.covered, other.covered)
    changed = folder / "inner" / "cmr10.ttf"
    os.utime(changed, ns=(1, 1))
    shutil.copy(MATPLOTLIB / "cmti10.ttf", folder)
    assert len(found_in(folder, cache=tmp_path / "cache")) == len(first) + 1
    assert {path.name for path in read[len(SOME) :]} == {"cmr10.ttf", "cmti10.ttf"}


def test_the_cache_may_be_damaged_or_closed(folder: Path, tmp_path: Path) -> None:
    expected = [each.name for each in found_in(folder, cache=tmp_path / "cache")]
    for content in ("", "[]", '{"format": 0}', '{"format"'):
        (tmp_path / "cache" / fonts.KEPT).write_text(content)
        assert [each.name for each in found_in(folder, cache=tmp_path / "cache")] == expected
    (tmp_path / "file").write_text("no folder")
    assert [each.name for each in found_in(folder, cache=tmp_path / "file")] == expected


def test_several_processes_read_the_same(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "TOGETHER", 2)
    known = []
    for count in (1, 3):
        monkeypatch.setattr(fonts, "cores", lambda count=count: count)
        found_in(folder, cache=tmp_path / str(count))
        known.append((tmp_path / str(count) / fonts.KEPT).read_text())
    assert known[0] == known[1]


def test_where_fonts_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the system, what JUMOK_FONTS names, and packages, which are not imported."""
    places = [tmp_path / name for name in ("system", "named", "lib/site-packages/some_fonts/ttf")]
    for place, name in zip(places, ("cmr10.ttf", "cmti10.ttf", "cmtt10.ttf"), strict=True):
        place.mkdir(parents=True)
        shutil.copy(MATPLOTLIB / name, place)
    (tmp_path / "lib/site-packages/some_fonts/__init__.py").write_text("raise RuntimeError('imported')")
    (places[0] / "round").symlink_to(places[0], target_is_directory=True)
    monkeypatch.setattr(font_files, "system_folders", lambda: [places[0], tmp_path / "no such"])
    monkeypatch.setattr(sys, "path", [str(tmp_path / "lib/site-packages")])
    monkeypatch.setattr(fonts, "cores", lambda: 1)
    monkeypatch.setenv("JUMOK_FONTS", os.pathsep.join([str(places[1] / "cmti10.ttf"), ""]))
    assert [each.family for each in found_in()] == ["cmr10", "cmti10", "cmtt10"]
    assert [each.family for each in found_in(places[1])] == ["cmti10"]
    monkeypatch.setenv("JUMOK_FONTS", str(tmp_path / "no such"))
    with pytest.raises(BadInput, match=r"JUMOK_FONTS: .*no such"):
        found_in()


def test_matplotlibs_fonts_are_always_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(font_files, "system_folders", list)  # there may be hundreds in them
    assert {"DejaVu Sans", "DejaVu Serif", "STIXGeneral"} <= {each.family for each in find_faces(say=lambda _: None)}


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="missing"):
        found_in(tmp_path / "missing")


def test_who_can_write_what() -> None:
    faces = [face("One", "abc "), face("Two", "bcd가"), face("Three", "xyz")]
    assert [each.family for each in faces_for(faces, "cb")] == ["One", "Two"]
    assert not faces_for(faces, "ax")
    assert faces_for(faces, "") == faces
    assert faces[1].covers("가b")
    assert not faces[1].covers("가a")
    assert faces[1].count("abcda") == 3
    must_cover(faces, "abcdxyz가 ")


@pytest.mark.parametrize(
    ("characters", "package"),
    [("가힣", "fonts-nanum"), ("Qé7%", "fonts-dejavu"), ("漢か", "fonts-noto-cjk"), ("ก", "fonts-noto")],
)
def test_characters_that_no_font_has(characters: str, package: str) -> None:
    with pytest.raises(BadInput) as told:
        must_cover([face("One", "abc"), face("Two", "xyz")], "ax" + characters)
    message = str(told.value)
    assert all(character in message for character in characters)
    assert f"apt install {package}" in message
    assert ("jumok[fonts]" in message) == (package == "fonts-nanum")
    assert '"x"' not in message
