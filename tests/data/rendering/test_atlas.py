"""Glyphs in cells: of one height in all faces, whole, never a box, and the same bytes however they are drawn."""

from __future__ import annotations

import os
import shutil
import string
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from built_fonts import BOX, CAPITAL, Shape, build, random_shape
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

from jumok.data.rendering import atlas as module
from jumok.data.rendering.atlas import Atlas, open_atlas
from jumok.data.rendering.fonts import Face, find_faces
from jumok.errors import BadInput

MATPLOTLIB = Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf"
NANUM = Path("/usr/share/fonts/truetype/nanum/NanumGothic.ttf")
NAMES = ("DejaVuSans", "DejaVuSerif-BoldItalic", "DejaVuSansMono", "STIXGeneral", "cmr10", "cmtt10")
ASCII = "".join(map(chr, range(32, 127)))
EM = 32


@pytest.fixture
def chance(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def faces() -> list[Face]:
    return find_faces([MATPLOTLIB / f"{name}.ttf" for name in NAMES])


def opened(
    faces: Sequence[Face], characters: str, em: int = EM, cache: Path | None = None, said: list[str] | None = None
) -> Atlas:
    return open_atlas(faces, characters, em, (said if said is not None else []).append, cache)


def built(path: Path, shapes: dict[str, Shape], **changes: object) -> Face:
    """With all of these characters, whatever it draws for them."""
    build(path, shapes, **changes)  # type: ignore[arg-type]
    return Face(path, 0, path.stem, "Regular", np.array(sorted(map(ord, shapes)), np.int32))


def glyph(atlas: Atlas, characters: str, character: str, face: int = 0) -> int:
    return int(atlas.index[face, characters.index(character)])


def test_what_there_is_and_where(faces: list[Face]) -> None:
    characters = ASCII + "é가"
    atlas = opened(faces, characters)
    assert atlas.masks.shape == (len(atlas), 48, 56)
    assert (atlas.em, atlas.pen, atlas.baseline) == (32, 8, 35)
    assert atlas.names == [face.name for face in faces]
    assert atlas.index.shape == (len(faces), len(characters))
    covered = np.array([[face.covers(character) for character in characters] for face in faces])
    assert np.array_equal(atlas.index > 0, covered)
    assert not covered[:, -1].any()  # 가 is in none
    assert 0 < covered[:, -2].sum() < len(faces)  # é is not in all
    assert sorted(atlas.index[covered].tolist()) == list(range(1, len(atlas)))
    assert not atlas.masks[0].any()
    assert atlas.advance[0] == 0
    assert not atlas.masks.flags.writeable
    for name in ("advance", "top", "bottom", "left", "right"):
        assert len(getattr(atlas, name)) == len(atlas)


def test_boxes_are_those_of_the_ink(faces: list[Face]) -> None:
    atlas = opened(faces, ASCII)
    spaces = set(atlas.index[:, 0].tolist())
    for number in range(1, len(atlas)):
        rows, columns = np.nonzero(atlas.masks[number])
        box = [int(side[number]) for side in (atlas.top, atlas.bottom, atlas.left, atlas.right)]
        if number in spaces:
            assert box == [atlas.baseline, atlas.baseline, atlas.pen, atlas.pen]
            assert not len(rows)
            assert atlas.advance[number] > 0.1 * EM
        else:
            assert box == [rows.min(), rows.max() + 1, columns.min(), columns.max() + 1]


@pytest.mark.parametrize("em", [16, 32, 70])
def test_capitals_are_of_one_height(faces: list[Face], em: int) -> None:
    atlas = opened(faces, "HEIx", em)
    capitals = atlas.index[:, :3]
    assert np.abs((atlas.bottom - atlas.top)[capitals] - 0.7 * em).max() < 1.5 + 0.02 * em
    assert np.abs(atlas.bottom[capitals] - atlas.baseline).max() <= 1
    assert ((atlas.bottom - atlas.top)[atlas.index[:, 3]] < 0.6 * em).all()


def test_a_glyph_is_what_pillow_draws(faces: list[Face], chance: np.random.Generator) -> None:
    """Drawn large, scaled as the atlas says, and put where the pen stands."""
    characters = "".join(sorted(chance.choice(list(string.ascii_lowercase + string.digits), 12, replace=False)))
    atlas = opened(faces, characters + "H")
    for row, face in enumerate(faces):
        with TTFont(face.path) as font:
            per_em, widths, names = font["head"].unitsPerEm, font["hmtx"], font.getBestCmap()
        large = ImageFont.truetype(str(face.path), 640, layout_engine=ImageFont.Layout.BASIC)
        height = -large.getbbox("H", anchor="ls")[1]
        for column, character in enumerate(characters):
            number = atlas.index[row, column]
            picture = Image.new("L", (1600, 1400))
            ImageDraw.Draw(picture).text((400, 900), character, fill=255, font=large, anchor="ls")
            scale = 0.7 * EM / height
            left, top = 400 - atlas.pen / scale, 900 - atlas.baseline / scale
            cell = (left, top, left + 56 / scale, top + 48 / scale)
            expected = np.asarray(picture.resize((56, 48), Image.Resampling.BOX, cell), np.float64)
            assert np.abs(expected - atlas.masks[number]).mean() < 4, (face.name, character)
            advance = widths[names[ord(character)]][0] / per_em * 640 * scale
            assert abs(atlas.advance[number] - advance) < 0.1


def test_boxes_and_nothing_are_never_glyphs(tmp_path: Path, chance: np.random.Generator) -> None:
    """Whatever a face says it covers."""
    shapes: dict[str, Shape] = {letter: random_shape(chance) for letter in "HAB"}
    face = built(tmp_path / "odd.ttf", {**shapes, "C": (), "D": BOX, " ": ()})
    more = Face(face.path, 0, "Odd", "Regular", np.array(sorted(map(ord, "HABCDZ ")), np.int32))
    said: list[str] = []
    atlas = opened([more], "HABCDZ ", said=said)
    assert (atlas.index[0] > 0).tolist() == [True, True, True, False, False, False, True]
    assert "Odd Regular (3)" in said[0]


def test_a_wide_glyph_makes_its_face_smaller(tmp_path: Path, chance: np.random.Generator) -> None:
    shapes: dict[str, Shape] = {"H": [(0, 0, 100, CAPITAL), (400, 0, 500, CAPITAL)], "A": random_shape(chance)}
    plain = built(tmp_path / "plain.ttf", shapes)
    wide = built(tmp_path / "wide.ttf", {**shapes, "W": [(100, 0, 2100, CAPITAL)]})
    wider = built(tmp_path / "wider.ttf", {**shapes, "W": [(100, 0, 4000, CAPITAL)], "V": [(0, -100, 300, 200)]})
    deep = built(tmp_path / "deep.ttf", {**shapes, "V": [(0, -600, 300, 200)]})
    left = built(tmp_path / "left.ttf", {**shapes, "V": [(-350, 0, 300, 200)]})
    atlas = opened([plain, wide, wider, deep, left], "HAWV")
    heights = (atlas.bottom - atlas.top)[atlas.index[:, 0]].tolist()
    widths = (atlas.right - atlas.left)[atlas.index[:, 0]].tolist()
    assert heights[0] == heights[2] == 23  # what needs less than half is left out, and changes nothing
    assert (atlas.index[2] > 0).tolist() == [True, True, False, True]
    for row, limit in ((1, 1.5 / 2.1), (3, 0.4 / 0.6), (4, 0.25 / 0.35)):
        assert (atlas.index[row, :2] > 0).all()
        assert abs(heights[row] - 22.4 * limit) < 1.5, atlas.names[row]
        assert abs(widths[row] / heights[row] - 5 / 7) < 0.08
    letter = glyph(atlas, "HAWV", "W", 1)
    assert 53 <= atlas.right[letter] <= 56
    assert 0.9 < atlas.masks[letter].sum() / 255 / (2.0 * 0.7 * (EM * 1.5 / 2.1) ** 2) < 1.1  # and nothing is cut off


def test_hangul_alone_is_scaled_by_its_syllables(tmp_path: Path, chance: np.random.Generator) -> None:
    shapes: dict[str, Shape] = {syllable: [(50, -60, 200 + 40 * place, 340)] for place, syllable in enumerate("가나다")}
    atlas = opened([built(tmp_path / "small.ttf", shapes)], "가나다")
    assert np.abs((atlas.bottom - atlas.top)[1:] - 0.9 * EM).max() <= 1.5


@pytest.mark.skipif(not NANUM.is_file(), reason="fonts-nanum is not installed")
def test_a_real_face_with_hangul(chance: np.random.Generator) -> None:
    """Syllables are whole, each is drawn in its own way, and they stand on a line with Latin."""
    places = sorted(chance.choice(11_172, 300, replace=False).tolist())
    characters = "".join(chr(0xAC00 + place) for place in places) + "H"
    atlas = opened(find_faces([NANUM]), characters)
    assert len(atlas) == len(characters) + 1
    assert len({mask.tobytes() for mask in atlas.masks}) == len(atlas)
    syllables = atlas.index[0, :-1]
    assert (atlas.masks[syllables].sum(axis=(1, 2)) > 40 * 255).all()
    assert np.abs(atlas.advance[syllables] - np.median(atlas.advance[syllables])).max() < 0.1
    assert np.ptp((atlas.top + atlas.bottom)[syllables] / 2) < 0.3 * EM
    assert (atlas.bottom[syllables] <= atlas.baseline + 0.3 * EM).all()


def test_hairlines_have_ink(tmp_path: Path) -> None:
    thin: dict[str, Shape] = {"H": [(80, 0, 92, CAPITAL), (480, 0, 492, CAPITAL)], "I": [(80, 0, 92, CAPITAL)]}
    thick: dict[str, Shape] = {"H": [(80, 0, 180, CAPITAL)], "I": [(80, 0, 180, CAPITAL), (180, 0, 185, 300)]}
    atlas = opened([built(tmp_path / "thin.ttf", thin), built(tmp_path / "thick.ttf", thick)], "HI")
    assert (atlas.masks[atlas.index].max(axis=(2, 3)) > 200).all()


def test_the_same_bytes_however_many_draw(faces: list[Face], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOGETHER", 100)
    atlases = []
    for count in (1, 2):
        monkeypatch.setattr(module, "cores", lambda count=count: count)
        atlases.append(opened(faces, ASCII, 20, tmp_path / str(count)))
    one, other = ({path.name: path.read_bytes() for path in atlas.folder.iterdir()} for atlas in atlases)
    assert one == other
    assert atlases[0].folder.name == atlases[1].folder.name


def test_drawn_once(faces: list[Face], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "cmr10.ttf"
    shutil.copy(MATPLOTLIB / "cmr10.ttf", place)
    (face,) = find_faces([place], cache=tmp_path)
    first = opened([face], "abc", cache=tmp_path)
    kept = bytes(first.masks)

    def refuse(jobs: object) -> list[object]:
        raise AssertionError("drawn again")

    with monkeypatch.context() as patch:
        patch.setattr(module, "draw_all", refuse)
        assert bytes(opened([face], "abc", cache=tmp_path).masks) == kept
        for characters, em in (("abd", EM), ("acb", EM), ("abc", EM + 1)):
            with pytest.raises(AssertionError, match="drawn again"):
                opened([face], characters, em, tmp_path)
        os.utime(place, ns=(1, 1))
        with pytest.raises(AssertionError, match="drawn again"):
            opened([face], "abc", cache=tmp_path)
    again = opened([face], "abc", cache=tmp_path)
    assert bytes(again.masks) == kept
    (again.folder / module.MASKS).write_bytes(b"short")
    assert bytes(opened([face], "abc", cache=tmp_path).masks) == kept
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".building")]


def test_a_font_that_is_gone(faces: list[Face], tmp_path: Path) -> None:
    gone = Face(tmp_path / "gone.ttf", 0, "Gone", "Regular", faces[0].covered)
    with pytest.raises(BadInput, match=r"gone\.ttf"):
        opened([gone], "abc")
    (tmp_path / "text.ttf").write_text("no font at all")
    other = Face(tmp_path / "text.ttf", 0, "Other", "Regular", faces[0].covered)
    with pytest.raises(BadInput, match=r"text\.ttf"):
        opened([other], "abc", cache=tmp_path)
