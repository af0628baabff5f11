"""What a face really draws. A table in the file says which characters it has, and it is not always true:

- the glyph may be empty, or the box that stands for a missing one;
- several Hangul syllables may have one drawing, for those that nobody has drawn yet;
- a font of icons or of mathematical signs has pictures in the place of letters: its glyphs' names tell;
- capitals may stand in the place of small letters: a reader could not learn case from those.

A character that is drawn as another one is worse than one that is missing: a reader would learn it.
"""

from __future__ import annotations

import hashlib
import logging
import re
import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from jumok.data.rendering.font_tables import Codes, Glyphs, Outlines, characters_of, outlines_of
from jumok.text.jamo import FIRST_SYLLABLE, LAST_SYLLABLE

SPACES = np.array([0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], np.int32)
LATIN_1 = 0x100
ALPHABETS = 0x2000  # below it: alphabets, whose glyphs have names
PRIVATE = range(0xE000, 0xF900)
# families whose letters are no letters, whatever their tables say
NO_LETTERS = re.compile(
    r"last\W?resort|adobe\W?blank|emoji|dingbat|wingding|webding|barcode|braille|redacted|awesome|codicon|\bicons?\b",
    re.IGNORECASE,
)
PICTORIAL = 5  # the first figure of PANOSE
MANY = 3  # signs whose glyphs have other signs' names
# names that are as good: a hyphen may be called a minus, and straight quotes be drawn as curly ones
SAME = {
    "-": "\u2010\u2011\u2212\u00ad", "'": "\u2019", "`": "\u2018", '"': "\u201d", "/": "\u2044\u2215", "*": "\u2217",
    "\u00ad": "-\u2010", "µ": "μ", "·": "\u2219\u22c5", "¯": "\u02c9", "°": "\u02da", "Ð": "Đ", "¦": "|", "´": "\u02ca",
}  # fmt: skip
TELLING = "abdeghnqr"  # small letters that are not drawn like their capitals
LONGEST_REASON = 200
ALIKE = 0.8  # correlation of a small letter with its capital: about 0.4 in faces that have both, 1 where it is the same


@dataclass(frozen=True)
class ReadFace:
    number: int
    family: str
    style: str
    covered: Codes
    drawing: str  # equal for faces that draw Latin and Hangul the same
    unfit: str = ""  # why nothing can be written with it


class BadFont(Exception):
    """A file that cannot be read as a font, and why."""


def read_fonts(paths: Sequence[Path]) -> list[list[ReadFace] | str]:
    """The faces of each file, or what is wrong with it."""
    found: list[list[ReadFace] | str] = []
    for path in paths:
        try:
            found.append(read_font(path))
        except BadFont as error:
            found.append(str(error)[:LONGEST_REASON])
    return found


def read_font(path: Path) -> list[ReadFace]:
    """All faces of a file. Raises `BadFont`."""
    from fontTools.ttLib import TTFont

    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it warns of dates and lengths that nobody here reads
    outlines: dict[int, Outlines | None] = {}  # faces of a collection may share them
    found: list[ReadFace] = []
    try:
        for number in range(_faces_in(path)):
            with TTFont(path, fontNumber=number, lazy=True) as font:
                found.append(_read(font, path, number, outlines))
    except ImportError as error:
        raise BadFont(f"it needs another package ({error}): pip install brotli") from None
    except Exception as error:  # fontTools raises whatever comes up in a damaged file
        raise BadFont(" ".join(str(error).split()) or type(error).__name__) from None
    return found


def _faces_in(path: Path) -> int:
    with open(path, "rb") as file:
        head = file.read(12)
    if len(head) < 12:
        raise ValueError("too short to be a font")
    return int.from_bytes(head[8:12], "big") if head[:4] == b"ttcf" else 1


def _read(font: Any, path: Path, number: int, known: dict[int, Outlines | None]) -> ReadFace:
    names = font["name"]
    family = (names.getBestFamilyName() or path.stem).strip()
    style = (names.getBestSubFamilyName() or "Regular").strip()
    nothing = np.empty(0, np.int32)
    if NO_LETTERS.search(family) or NO_LETTERS.search(path.stem):
        return ReadFace(number, family, style, nothing, "", "it has pictures in the place of letters")
    if "OS/2" in font and getattr(getattr(font["OS/2"], "panose", None), "bFamilyType", 0) == PICTORIAL:
        return ReadFace(number, family, style, nothing, "", "it says of itself that it has pictures, not letters")
    table = characters_of(font.reader["cmap"])
    if table is None:
        return ReadFace(number, family, style, nothing, "", "it does not say which Unicode characters it has")
    place = next((font.reader.tables[tag].offset for tag in ("glyf", "CFF ", "CFF2") if tag in font), 0)
    if place not in known:
        known[place] = outlines_of(font)
    outlines = known[place]
    if outlines is None:
        return ReadFace(number, family, style, nothing, "", "it has bitmaps only, which cannot be drawn at any size")
    codes, glyphs = _really_drawn(*table, outlines)
    codes, glyphs = _as_named(outlines.names or _glyph_names(font), codes, glyphs)
    codes, glyphs = _with_own_small_letters(path, number, codes, glyphs)
    if not any(unicodedata.category(chr(code)) in ("Lu", "Ll", "Lo", "Nd") for code in codes.tolist()):
        return ReadFace(number, family, style, nothing, "", "it has neither letters nor digits")
    return ReadFace(number, family, style, codes, _drawing(font, codes, glyphs, outlines))


def _really_drawn(codes: Codes, glyphs: Glyphs, outlines: Outlines) -> tuple[Codes, Glyphs]:
    inside = glyphs < len(outlines.drawn)
    codes, glyphs = codes[inside], glyphs[inside]
    kept = outlines.drawn[glyphs] | np.isin(codes, SPACES)
    syllables = np.flatnonzero(kept & (codes >= FIRST_SYLLABLE) & (codes <= LAST_SYLLABLE)).tolist()
    owners: dict[bytes, list[int]] = {}
    for place, outline in zip(syllables, outlines.of(glyphs[syllables]), strict=True):
        owners.setdefault(outline, []).append(place)
    for places in owners.values():
        if len(places) > 1:
            kept[places] = False
    return codes[kept], glyphs[kept]


def _as_named(names: list[str] | None, codes: Codes, glyphs: Glyphs) -> tuple[Codes, Glyphs]:
    """Without the characters of Latin-1 that are something else by their glyph's name. Where letters are among those,
    or many signs, only those characters of alphabets count whose name agrees."""
    if names is None:
        return codes, glyphs
    alphabets = [place for place in np.flatnonzero(codes < ALPHABETS).tolist() if glyphs[place] < len(names)]
    named = {place: (chr(codes[place]), names[glyphs[place]]) for place in alphabets}
    agreed = {place for place, (character, name) in named.items() if _agrees(character, name)}
    wrong = {place for place in named if place not in agreed and codes[place] < LATIN_1 and _meaning(named[place][1])}
    letters = [place for place, (character, _) in named.items() if character in string.ascii_letters + string.digits]
    words = [place for place in letters if place not in agreed | wrong and named[place][1].isalpha()]
    if wrong.intersection(letters) or len(wrong) >= MANY or 2 * len(words) > len(letters):
        wrong = named.keys() - agreed
    kept = np.ones(len(codes), bool)
    kept[list(wrong)] = False
    return codes[kept], glyphs[kept]


def _agrees(character: str, name: str) -> bool:
    return character.isspace() or _meaning(name) in (character, *SAME.get(character, ()))


def _glyph_names(font: Any) -> list[str] | None:
    """What a TrueType file calls its glyphs; None when it does not say."""
    named = "post" in font and "glyf" in font and font["post"].formatType in (1.0, 2.0)
    return list(font.getGlyphOrder()) if named else None


@cache
def _meaning(name: str) -> str:
    """The character that a glyph's name stands for; nothing if it is no name of a character."""
    from fontTools.agl import toUnicode

    found = toUnicode(name.removesuffix("oldstyle"))
    return found if len(found) == 1 and ord(found) not in PRIVATE else ""


def _with_own_small_letters(path: Path, number: int, codes: Codes, glyphs: Glyphs) -> tuple[Codes, Glyphs]:
    """Without small letters, if capitals stand in their place, be they smaller. FreeType opens the face for it, which
    it must be able to do in any case."""
    from PIL import ImageFont

    font = ImageFont.truetype(str(path), 64, index=number, layout_engine=ImageFont.Layout.BASIC)
    known = set(codes[codes < 0x80].tolist())
    pairs = [(letter, letter.upper()) for letter in TELLING if {ord(letter), ord(letter.upper())} <= known]
    if not pairs or float(np.median([_likeness(font, *pair) for pair in pairs])) < ALIKE:
        return codes, glyphs
    kept = np.array([code >= ALPHABETS or unicodedata.category(chr(code)) != "Ll" for code in codes.tolist()], bool)
    return codes[kept], glyphs[kept]


def _likeness(font: Any, small: str, capital: str) -> float:
    """How alike two letters are, both stretched to one size."""
    from PIL import Image, ImageDraw

    shapes = []
    for letter in (small, capital):
        picture = Image.new("L", (256, 192))
        ImageDraw.Draw(picture).text((64, 128), letter, fill=255, font=font, anchor="ls")
        box = picture.getbbox()
        if box is None:
            return 0.0
        shapes.append(np.asarray(picture.crop(box).resize((24, 24), Image.Resampling.BOX), np.float64).ravel())
    first, second = (shape - shape.mean() for shape in shapes)
    return float(first @ second / max(float(np.sqrt((first @ first) * (second @ second))), 1e-9))


def _drawing(font: Any, codes: Codes, glyphs: Glyphs, outlines: Outlines) -> str:
    """Fonts for Chinese, Japanese and Korean come as collections whose faces differ in Chinese characters alone, and
    in a few signs."""
    common = (codes < 0x80) | ((codes >= FIRST_SYLLABLE) & (codes <= LAST_SYLLABLE))
    if not common.any():
        common[:] = True
    digest = hashlib.sha256(str((font["head"].unitsPerEm, len(outlines.starts))).encode())
    digest.update(codes[common].tobytes() + b"\0".join(outlines.of(glyphs[common])))
    return digest.hexdigest()[:24]
