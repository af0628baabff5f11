"""Two tables of a font file as arrays: which glyph each character has (`cmap`), and where each glyph's outline is.

fontTools reads both into objects, one for each glyph; a face with Hangul has more than 11,172 of them, and only two
questions are asked of each: is there an outline, and is it the same as another one? Both are questions about bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]
Glyphs = npt.NDArray[np.int64]
# platform and encoding of tables for Unicode, the one with the most characters first
UNICODE = ((3, 10), (0, 6), (0, 4), (3, 1), (0, 3), (0, 2), (0, 1), (0, 0))
LAST = 0x10FFFF
SHORT = 12  # bytes of a CFF outline that may draw nothing; those are run to see
WIDTH = 6  # bytes of a CFF outline that may only say how wide the glyph is


def characters_of(raw: bytes) -> tuple[Codes, Glyphs] | None:
    """Code points in order, each with the number of its glyph; None when the face has no table for Unicode."""
    (count,) = struct.unpack_from(">H", raw, 2)
    places = {record[:2]: record[2] for record in struct.iter_unpack(">HHL", raw[4 : 4 + 8 * count])}
    place = next((places[key] for key in UNICODE if key in places), None)
    if place is None:
        return None
    readers = {4: _ranges_with_offsets, 6: _one_range, 12: _groups}
    (kind,) = struct.unpack_from(">H", raw, place)
    if kind not in readers:
        return None
    codes, glyphs = readers[kind](raw[place:])
    codes, first = np.unique(codes[glyphs > 0], return_index=True)
    return codes.astype(np.int32), glyphs[glyphs > 0][first]


def _ranges_with_offsets(raw: bytes) -> tuple[Glyphs, Glyphs]:
    """Format 4: ranges of code points, each with something to add, or with a place in a list of glyphs."""
    half = struct.unpack_from(">H", raw, 6)[0] // 2
    words = np.frombuffer(raw, ">u2", len(raw) // 2).astype(np.int64)
    ends, starts, deltas, offsets = (words[begin : begin + half] for begin in _columns(half))
    segment, codes = _expand(starts, ends)
    own = (8 + 3 * half) + segment + offsets[segment] // 2 + codes - starts[segment]
    listed = words[np.minimum(own, len(words) - 1)]
    direct = offsets[segment] == 0
    glyphs = np.where(direct | (listed > 0), (np.where(direct, codes, listed) + deltas[segment]) & 0xFFFF, 0)
    glyphs[(codes == 0xFFFF) | (~direct & (own >= len(words)))] = 0
    return codes, glyphs


def _columns(half: int) -> tuple[int, int, int, int]:
    """Where the four columns begin, in words: between the first two there is one that means nothing."""
    return 7, 8 + half, 8 + 2 * half, 8 + 3 * half


def _one_range(raw: bytes) -> tuple[Glyphs, Glyphs]:
    first, count = struct.unpack_from(">HH", raw, 6)
    return first + np.arange(count), np.frombuffer(raw, ">u2", count, 10).astype(np.int64)


def _groups(raw: bytes) -> tuple[Glyphs, Glyphs]:
    (count,) = struct.unpack_from(">L", raw, 12)
    starts, ends, glyphs = np.frombuffer(raw, ">u4", 3 * count, 16).reshape(-1, 3).T.astype(np.int64)
    group, codes = _expand(starts, ends)
    return codes, glyphs[group] + codes - starts[group]


def _expand(starts: Glyphs, ends: Glyphs) -> tuple[Glyphs, Glyphs]:
    """For each number of each range, both ends with it: which range it is in, and the number."""
    counts = np.maximum(ends - starts + 1, 0)
    if counts.sum() > LAST + 1 or (len(ends) and ends.max() > LAST):
        raise ValueError("it names more characters than there are")
    group = np.repeat(np.arange(len(starts)), counts)
    return group, starts[group] + np.arange(len(group)) - (np.cumsum(counts) - counts)[group]


@dataclass(frozen=True)
class Outlines:
    """The bytes of each glyph's outline. `drawn` says which are more than nothing, and not the box of a glyph that is
    missing."""

    raw: bytes
    starts: Glyphs
    ends: Glyphs
    drawn: npt.NDArray[np.bool_]
    names: list[str] | None = None  # what the file calls its glyphs, where it is said together with the outlines

    def of(self, glyphs: Glyphs) -> list[bytes]:
        bounds = zip(self.starts[glyphs].tolist(), self.ends[glyphs].tolist(), strict=True)
        return [self.raw[start:end] for start, end in bounds]


def outlines_of(font: Any) -> Outlines | None:
    """Of a font that fontTools has opened; None when it has only bitmaps."""
    if "glyf" in font:
        return _quadratic(font)
    return _cubic(font) if "CFF " in font or "CFF2" in font else None


def _quadratic(font: Any) -> Outlines:
    """TrueType: a glyph is a box, then contours, or other glyphs put together."""
    raw, loca = font.reader["glyf"], font.reader["loca"]
    long = bool(font["head"].indexToLocFormat)
    places = np.frombuffer(loca, ">u4" if long else ">u2").astype(np.int64) * (1 if long else 2)
    starts, ends = places[:-1], places[1:]
    some = (ends - starts >= 10) & (ends <= len(raw))
    padded = np.frombuffer(raw + bytes(16), np.uint8).astype(np.int64)
    words = [(padded[np.where(some, starts, 0) + at] << 8) | padded[np.where(some, starts, 0) + at + 1]
             for at in range(0, 14, 2)]  # fmt: skip
    contours, left, low, right, high, _, component = words
    flat = (left == right) & (low == high)
    box_again = (contours > 0x7FFF) & (component == 0)  # put together of others, of which the first is the box
    drawn = some & (contours != 0) & ~flat & ~box_again
    return _without_boxes(raw, starts, ends, drawn, 0)


def _cubic(font: Any) -> Outlines:
    """PostScript: a glyph is a program, which may begin with its width."""
    name = "CFF " if "CFF " in font else "CFF2"
    raw, top = font.reader[name], font[name].cff.topDictIndex[0]
    place, wide = top.rawDict["CharStrings"], name == "CFF2"
    (count,) = struct.unpack_from(">L" if wide else ">H", raw, place)
    place += 4 if wide else 2
    size = raw[place]
    digits = np.frombuffer(raw, np.uint8, size * (count + 1), place + 1).reshape(count + 1, size).astype(np.int64)
    places = place + size * (count + 1) + digits @ (256 ** np.arange(size - 1, -1, -1))
    starts, ends = places[:-1], places[1:]
    drawn = ends > starts
    for glyph in np.flatnonzero(drawn & (ends - starts <= SHORT)).tolist():
        drawn[glyph] = _draws(top.CharStrings.charStringsIndex[glyph])
    names = list(top.charset) if name == "CFF " and not hasattr(top, "ROS") else None
    return replace(_without_boxes(raw, starts, ends, drawn, WIDTH), names=names)


def _draws(program: Any) -> bool:
    from fontTools.pens.recordingPen import RecordingPen

    pen = RecordingPen()
    try:
        program.draw(pen)
    except Exception:  # it needs more than itself, such as an accent on a letter: so it draws
        return True
    return bool(pen.value)


def _without_boxes(raw: bytes, starts: Glyphs, ends: Glyphs, drawn: npt.NDArray[np.bool_], width: int) -> Outlines:
    """Glyph 0 is what is drawn for what is missing. Whatever equals it, but for a width at its beginning, does not
    count."""
    box = raw[starts[0] : ends[0]] if len(starts) else b""
    near = drawn & (np.abs(ends - starts - len(box)) < width + 1) & (len(box) > width)
    for glyph in np.flatnonzero(near).tolist():
        both = min(len(box), int(ends[glyph] - starts[glyph])) - width
        drawn[glyph] &= raw[ends[glyph] - both : ends[glyph]] != box[len(box) - both :]
    drawn[:1] = False
    return Outlines(raw, starts, ends, drawn)
