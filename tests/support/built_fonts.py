"""Fonts made of rectangles, with whatever is wrong that a test asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.pens.ttGlyphPen import TTGlyphPen

Rectangle = tuple[int, int, int, int]  # left, bottom, right, top, of an em of 1000
Shape = Sequence[Rectangle]
BOX: Shape = ((50, 0, 550, 700),)
CAPITAL = 700


def random_shape(chance: np.random.Generator, height: int = CAPITAL) -> Shape:
    """A stem of this height, and bars that no other shape has."""
    bars = []
    for _ in range(3):
        bottom, right = int(chance.integers(0, height - 60)), int(chance.integers(200, 560))
        bars.append((80, bottom, right, bottom + int(chance.integers(20, 60))))
    return [(60, 0, 110, height), *bars]


def scaled(shape: Shape, by: float) -> Shape:
    return [(round(a * by), round(b * by), round(c * by), round(d * by)) for a, b, c, d in shape]


def build(
    path: Path,
    shapes: Mapping[str, Shape],
    family: str = "Built",
    style: str = "Regular",
    notdef: Shape = BOX,
    cubic: bool = False,
    names: Mapping[str, str] | None = None,
    widths: Mapping[str, int] | None = None,
    symbol: bool = False,
    pieces: Mapping[str, str] | None = None,
) -> Path:
    """A font file. `names`: what glyphs are called. `pieces`: characters made of another glyph alone. `symbol`: its
    table is not for Unicode."""
    glyphs = {character: (names or {}).get(character, f"uni{ord(character):04X}") for character in shapes}
    order = [".notdef", *dict.fromkeys(glyphs.values())]
    drawn = {".notdef": notdef, **{glyphs[character]: shape for character, shape in shapes.items()}}
    advance = {".notdef": 600, **{glyphs[one]: (widths or {}).get(one, 600) for one in shapes}}
    builder = FontBuilder(1000, isTTF=not cubic)
    builder.setupGlyphOrder(order)
    builder.setupCharacterMap({ord(character): name for character, name in glyphs.items()})
    if cubic:
        programs = {name: _program(drawn[name], advance[name]) for name in order}
        builder.setupCFF(f"{family}-{style}".replace(" ", ""), {}, programs, {})
    else:
        made = {name: _contours(drawn[name]) for name in order}
        for character, whole in (pieces or {}).items():
            pen = TTGlyphPen(made)
            pen.addComponent(glyphs.get(whole, whole), (1, 0, 0, 1, 0, 0))
            made[glyphs[character]] = pen.glyph()
        builder.setupGlyf(made)
    bearing = {name: min((left for left, *_ in drawn[name]), default=0) for name in order}
    builder.setupHorizontalMetrics({name: (advance[name], bearing[name]) for name in order})
    builder.setupHorizontalHeader(ascent=900, descent=-300)
    builder.setupNameTable({"familyName": family, "styleName": style})
    builder.setupOS2(sTypoAscender=900, usWinAscent=900, usWinDescent=300)
    builder.setupPost()
    if symbol:
        tables = builder.font["cmap"].tables
        tables[:] = tables[:1]
        tables[0].platformID, tables[0].platEncID = 3, 0
    builder.save(path)
    return path


def _contours(shape: Shape) -> object:
    pen = TTGlyphPen(None)
    _draw(pen, shape)
    return pen.glyph()


def _program(shape: Shape, width: int) -> object:
    pen = T2CharStringPen(width, None)
    _draw(pen, shape)
    return pen.getCharString()


def _draw(pen: TTGlyphPen | T2CharStringPen, shape: Shape) -> None:
    for left, bottom, right, top in shape:
        pen.moveTo((left, bottom))
        for point in ((left, top), (right, top), (right, bottom)):
            pen.lineTo(point)
        pen.closePath()
