from __future__ import annotations

import io
import os
import re
import unicodedata
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from PIL import Image

from jumok.errors import BadInput, Failure
from jumok.inspect import fonts
from jumok.inspect.attention import Attention
from jumok.inspect.figures import draw, write_figure

Make = Callable[..., Attention]


def pixels(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def make_font(path: Path, characters: str, family: str) -> None:
    """A real font file with a square for each of these characters."""
    names = [".notdef", *(f"u{ord(character):X}" for character in characters)]
    pen = TTGlyphPen(None)
    pen.moveTo((100, 0))
    for corner in ((100, 700), (800, 700), (800, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(character): f"u{ord(character):X}" for character in characters})
    builder.setupGlyf(dict.fromkeys(names, square))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (900, 100)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=800, usWinAscent=800, usWinDescent=200)
    builder.setupPost()
    builder.save(path)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("format", ["png", "svg"])
def test_the_same_input_gives_the_same_bytes(make_attention: Make, format: Any, dark: bool) -> None:
    attention = make_attention(4, 3)
    first = draw(attention, format, dark=dark, title="twice")
    with matplotlib.rc_context({"font.size": 30, "image.cmap": "jet", "svg.hashsalt": None}):
        second = draw(attention, format, dark=dark, title="twice")
    assert first == second
    assert first != draw(attention, format, dark=not dark, title="twice")


def test_the_colours_are_the_weights_on_a_fixed_scale() -> None:
    attention = Attention(("a", "b"), ("c", "d"), np.array([[0.5, 0.5], [0.25, 0.75]]))
    image = pixels(draw(attention))
    for weight in (0.25, 0.5, 0.75):
        wanted = np.array(matplotlib.colormaps["cividis"](weight)[:3]) * 255
        assert (np.abs(image - wanted).max(axis=2) <= 1.5).sum() > 500, f"no area has the colour of {weight}"
    # 0.5 is the largest weight of its row and must not become the end of the scale; that colour is in the bar only
    brightest = (np.abs(image - np.array(matplotlib.colormaps["cividis"](1.0)[:3]) * 255).max(axis=2) <= 1.5).sum()
    assert brightest < 500


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 30), (60, 60)])
def test_pictures_grow_with_the_sentence(make_attention: Make, rows: int, columns: int) -> None:
    height, width, _ = pixels(draw(make_attention(columns, rows))).shape
    assert width / columns > 30
    assert height / rows > 30
    assert max(width, height) < 6000


def test_data_is_never_read_as_mathematics(make_attention: Make) -> None:
    broken = make_attention(["$\\nonsense{$", "$x^2$"], ["100$ and 5$", "_^"])
    draw(broken, title="$\\frac{$")  # would fail in the mathematics parser
    assert draw(make_attention(["$x$"], ["a"]), "svg") != draw(make_attention(["x"], ["a"]), "svg")


def test_svg_is_well_formed_and_holds_no_markup_from_data(make_attention: Make, evil: tuple[str, ...]) -> None:
    svg = draw(make_attention(evil, evil), "svg", title=evil[0])
    root = ElementTree.fromstring(svg)
    tags = {element.tag.rsplit("}", 1)[-1] for element in root.iter()}
    assert "script" not in tags
    assert "text" not in tags  # paths: it looks the same where the font is missing


def test_hangul_is_drawn_with_a_font_that_appeared_just_now(
    make_attention: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fonts, "_EXTRA", "no_such_package")
    monkeypatch.setattr(fonts.font_manager, "findSystemFonts", list)
    attention = make_attention(["the", "student"], ["학생은", "é"])
    with pytest.raises(Failure) as error:
        draw(attention)
    for word in ("U+D559", "학", "HANGUL SYLLABLE", "fonts-nanum", ".html"):
        assert word in str(error.value)
    make_font(tmp_path / "some.ttf", "학생은", "Some Hangul")
    (tmp_path / "broken.ttf").write_bytes(b"no font at all")
    installed = [str(tmp_path / "broken.ttf"), str(tmp_path / "some.ttf")]
    monkeypatch.setattr(fonts.font_manager, "findSystemFonts", lambda: installed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns where it draws an empty box
        assert draw(attention)


def test_several_fonts_together_cover_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, characters in (("one", "학"), ("two", "漢"), ("both", "")):
        make_font(tmp_path / f"{name}.ttf", characters + "x", name)
    paths = sorted(map(str, tmp_path.glob("*.ttf")))
    monkeypatch.setattr(fonts, "_EXTRA", "no_such_package")
    monkeypatch.setattr(fonts.font_manager, "findSystemFonts", lambda: paths)
    assert len(fonts.families_for("a학漢")) == 3
    with pytest.raises(Failure, match="fonts-noto-cjk"):
        fonts.families_for("字")
    assert len(fonts.families_for("only Latin")) == 1


def test_the_extra_is_asked_where_the_system_has_no_font(
    make_attention: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package with fonts is used by its files; were it imported, this one would fail."""
    monkeypatch.setattr(fonts.font_manager, "findSystemFonts", list)
    monkeypatch.setattr(fonts, "_EXTRA", "some_fonts_of_a_package")
    with pytest.raises(Failure, match=re.escape('pip install "jumok[fonts]"')):
        fonts.families_for("학생")
    (tmp_path / "some_fonts_of_a_package" / "fonts").mkdir(parents=True)
    (tmp_path / "some_fonts_of_a_package" / "__init__.py").write_text("raise SystemExit('imported')")
    make_font(tmp_path / "some_fonts_of_a_package" / "fonts" / "Nanum.ttf", "학생", "Of the extra")
    monkeypatch.syspath_prepend(tmp_path)
    assert "Nanum.ttf" in fonts.families_for("a학생")[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw(make_attention(["a"], ["학생"]))
    make_font(tmp_path / "system.ttf", "학생", "Of the system")
    monkeypatch.setattr(fonts.font_manager, "findSystemFonts", lambda: [str(tmp_path / "system.ttf")])
    assert "system.ttf" in fonts.families_for("a학생")[1]  # the system's own comes first


def test_the_real_hangul_of_this_machine(make_attention: Make) -> None:
    text = unicodedata.normalize("NFC", "주었습니다")
    try:
        fonts.families_for(text)
    except Failure:
        if os.environ.get("CI") == "true":
            pytest.fail("no Hangul font is installed here (apt install fonts-nanum)")
        pytest.skip("no Hangul font is installed here")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image = pixels(draw(make_attention(["gave"], [text])))
    assert (image.sum(axis=2) < 200).sum() > 100


def test_files_by_their_ending(make_attention: Make, tmp_path: Path) -> None:
    attention = make_attention(2, 2)
    write_figure(tmp_path / "x.PNG", attention)
    write_figure(tmp_path / "x.svg", attention)
    assert (tmp_path / "x.PNG").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "x.svg").read_bytes() == draw(attention, "svg")
    with pytest.raises(BadInput, match=r"x\.gif"):
        write_figure(tmp_path / "x.gif", attention)
    with pytest.raises(Failure, match="nowhere"):
        write_figure(tmp_path / "nowhere" / "x.png", attention)


def test_what_cannot_be_drawn_is_said(make_attention: Make) -> None:
    with pytest.raises(BadInput, match="empty"):
        draw(make_attention(0, 2))
    with pytest.raises(BadInput, match="html"):
        draw(make_attention(400, 2))
    draw(make_attention(["\x00", "   ", "\u202e"], ["", "\n"]))  # blanks and control characters are shown as marks
