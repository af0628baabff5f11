"""What a face really draws: glyphs that are empty, a box, or another character's do not count."""

from __future__ import annotations

import shutil
import string
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from built_fonts import BOX, Shape, build, random_shape, scaled
from fontTools.ttLib import TTFont
from fontTools.ttLib.ttCollection import TTCollection

from jumok.data.rendering.font_coverage import BadFont, read_font
from jumok.data.rendering.font_tables import characters_of

MATPLOTLIB = Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf"


@pytest.fixture
def chance(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def shapes_of(characters: str, chance: np.random.Generator) -> dict[str, Shape]:
    return {character: random_shape(chance) for character in characters}


def covered(path: Path, number: int = 0) -> str:
    return "".join(map(chr, read_font(path)[number].covered.tolist()))


@pytest.mark.parametrize("cubic", [False, True])
def test_empty_glyphs_and_boxes_do_not_count(tmp_path: Path, chance: np.random.Generator, cubic: bool) -> None:
    letters = chance.permutation(list(string.ascii_uppercase))
    empty, box, *good = letters
    shapes = {**shapes_of("".join(good), chance), empty: (), box: BOX, " ": ()}
    path = build(tmp_path / "font.ttf", shapes, cubic=cubic, widths={box: 777})
    assert covered(path) == " " + "".join(sorted(good))


def test_a_glyph_made_of_the_box_is_a_box(tmp_path: Path, chance: np.random.Generator) -> None:
    shapes = shapes_of("ABCD", chance)
    path = build(tmp_path / "font.ttf", shapes, pieces={"B": ".notdef", "C": "A"})
    assert covered(path) == "ACD"


@pytest.mark.parametrize("cubic", [False, True])
def test_syllables_with_one_drawing_are_not_drawn(tmp_path: Path, chance: np.random.Generator, cubic: bool) -> None:
    syllables = "".join(chr(0xAC00 + place) for place in sorted(chance.choice(11_172, 60, replace=False)))
    same = random_shape(chance)
    shapes = {**shapes_of(syllables[:30], chance), **dict.fromkeys(syllables[30:], same)}
    assert covered(build(tmp_path / "font.otf", shapes, cubic=cubic)) == syllables[:30]


def test_letters_may_share_a_drawing(tmp_path: Path, chance: np.random.Generator) -> None:
    """Latin A, Greek Alpha and Cyrillic A do."""
    shapes = shapes_of("AB", chance)
    path = build(tmp_path / "font.ttf", {**shapes, "Α": shapes["A"], "А": shapes["A"]})
    assert covered(path) == "ABΑА"


def test_pictures_in_the_place_of_letters(tmp_path: Path, chance: np.random.Generator) -> None:
    shapes = shapes_of("abcdefgh", chance)
    names = dict(zip("abcdefgh", ("home", "user", "trash", "cart", "globe", "f", "pencil", "star"), strict=True))
    assert covered(build(tmp_path / "font.ttf", shapes, names=names)) == "f"


def test_names_that_are_other_characters(tmp_path: Path, chance: np.random.Generator) -> None:
    signs = build(tmp_path / "signs.ttf", shapes_of("abc<-", chance), names={"a": "a", "<": "exclamdown", "-": "minus"})
    assert covered(signs) == "-abc"  # a sign that is another one, and a hyphen by another name
    letters = build(
        tmp_path / "letters.ttf", shapes_of("abc한", chance), names={"a": "arrowright", "b": "b", "c": "x1"}
    )
    assert covered(letters) == "b한"  # a letter that is a sign: then only those whose names agree


@pytest.mark.parametrize("size", [1.0, 0.7])
def test_capitals_in_the_place_of_small_letters(tmp_path: Path, chance: np.random.Generator, size: float) -> None:
    capitals = shapes_of(string.ascii_uppercase, chance)
    small = {letter.lower(): scaled(shape, size) for letter, shape in capitals.items()}
    assert covered(build(tmp_path / "caps.ttf", capitals | small)) == string.ascii_uppercase
    own = {letter.lower(): random_shape(chance, 500) for letter in capitals}
    assert covered(build(tmp_path / "both.ttf", capitals | own)) == string.ascii_letters[26:] + string.ascii_lowercase


def test_faces_that_write_nothing_say_why(tmp_path: Path, chance: np.random.Generator) -> None:
    shapes = shapes_of("ABC", chance)
    fonts = {
        build(tmp_path / "a.ttf", shapes, symbol=True): "does not say which Unicode",
        build(tmp_path / "b.ttf", shapes, "Some Emoji"): "pictures",
        build(tmp_path / "c.ttf", shapes, "Adobe Blank"): "pictures",
        build(tmp_path / "d.ttf", shapes_of("()[]", chance)): "neither letters nor digits",
        build(tmp_path / "e.ttf", {"\ue001": BOX[:1], "\ue002": random_shape(chance)}): "neither letters nor digits",
    }
    for path, reason in fonts.items():
        (face,) = read_font(path)
        assert not len(face.covered)
        assert reason in face.unfit


def test_faces_of_a_collection(tmp_path: Path, chance: np.random.Generator) -> None:
    first, second = shapes_of("ABC", chance), shapes_of("XYZ", chance)
    paths = [build(tmp_path / "a.ttf", first, "First"), build(tmp_path / "b.ttf", second, "Second", "Bold")]
    collection = TTCollection()
    collection.fonts = [TTFont(path) for path in paths]
    collection.save(tmp_path / "both.ttc")
    found = read_font(tmp_path / "both.ttc")
    assert [(face.number, face.family, face.style) for face in found] == [
        (0, "First", "Regular"),
        (1, "Second", "Bold"),
    ]
    assert [covered(tmp_path / "both.ttc", number) for number in (0, 1)] == ["ABC", "XYZ"]
    assert found[0].drawing == read_font(paths[0])[0].drawing != found[1].drawing


@pytest.mark.parametrize("cut", [0, 5, 40, 0.2, 0.5, 0.9])
def test_broken_files_are_told(tmp_path: Path, cut: float) -> None:
    """Cut off anywhere a font is either refused or read, but nothing else happens."""
    whole = (MATPLOTLIB / "cmr10.ttf").read_bytes()
    path = tmp_path / "cut.ttf"
    path.write_bytes(whole[: cut if isinstance(cut, int) else int(cut * len(whole))])
    with pytest.raises(BadFont):
        read_font(path)


def test_damaged_bytes_do_not_stop_us(tmp_path: Path, chance: np.random.Generator) -> None:
    whole = np.frombuffer((MATPLOTLIB / "cmtt10.ttf").read_bytes(), np.uint8)
    for _ in range(30):
        damaged = whole.copy()
        damaged[chance.integers(0, 1500, 12)] = chance.integers(0, 256, 12)
        path = tmp_path / "damaged.ttf"
        path.write_bytes(damaged.tobytes())
        try:
            found = read_font(path)
        except BadFont:
            continue
        assert all(face.unfit or len(face.covered) for face in found)


@pytest.mark.parametrize("path", sorted(MATPLOTLIB.glob("*.ttf")), ids=lambda path: path.name)
def test_the_table_of_characters_is_fonttools(path: Path) -> None:
    if path.name.startswith("LastResort"):
        pytest.skip("its table is of a kind that is not read")
    with TTFont(path) as font:
        expected = {code: font.getGlyphID(name) for code, name in font.getBestCmap().items()}
        found = characters_of(font.reader["cmap"])
    assert found is not None
    assert dict(zip(*(part.tolist() for part in found), strict=True)) == {c: g for c, g in expected.items() if g}


def test_real_faces() -> None:
    """Computer Modern has other signs where ASCII has < and >, and in two of its fonts where it has letters."""
    assert {"a", "Z", "0", "é", "ß", "Ж"} <= set(covered(MATPLOTLIB / "DejaVuSans.ttf"))
    roman = set(covered(MATPLOTLIB / "cmr10.ttf"))
    assert set(string.ascii_letters + string.digits) <= roman
    assert not roman & set("<>{}|")
    assert set(covered(MATPLOTLIB / "cmsy10.ttf")) & set(string.printable.strip()) == set(string.ascii_uppercase)
    assert read_font(MATPLOTLIB / "cmex10.ttf")[0].unfit


def test_a_web_font_is_the_same_font(tmp_path: Path) -> None:
    with TTFont(MATPLOTLIB / "DejaVuSansMono.ttf") as font:
        font.flavor = "woff"
        font.save(tmp_path / "mono.woff")
    shutil.copy(MATPLOTLIB / "DejaVuSansMono.ttf", tmp_path)
    assert covered(tmp_path / "mono.woff") == covered(tmp_path / "DejaVuSansMono.ttf")
