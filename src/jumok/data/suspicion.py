"""What can be wrong with one line of text: its script, its encoding, its characters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

# First code point, last code point, script. Only what decides the language of a line.
RANGES = (
    (0x0041, 0x024F, "Latin"),
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0530, 0x058F, "Armenian"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x077F, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0980, 0x09FF, "Bengali"),
    (0x0B80, 0x0BFF, "Tamil"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x10A0, 0x10FF, "Georgian"),
    (0x1100, 0x11FF, "Hangul"),
    (0x1E00, 0x1EFF, "Latin"),
    (0x1F00, 0x1FFF, "Greek"),
    (0x3040, 0x30FF, "Kana"),
    (0x3130, 0x318F, "Hangul"),
    (0x31F0, 0x31FF, "Kana"),
    (0x3400, 0x4DBF, "Han"),
    (0x4E00, 0x9FFF, "Han"),
    (0xA960, 0xA97F, "Hangul"),
    (0xAC00, 0xD7FF, "Hangul"),
    (0xF900, 0xFAFF, "Han"),
    (0xFB50, 0xFDFF, "Arabic"),
    (0xFE70, 0xFEFC, "Arabic"),
    (0xFF21, 0xFF5A, "Latin"),
    (0xFF66, 0xFF9D, "Kana"),
    (0x20000, 0x323AF, "Han"),
)
_LETTER = re.compile(r"[A-Za-z]")
# UTF-8 that was read as Windows-1252 ("Ã©", "â€™") or EUC-KR that was read as Latin-1 ("ÇÑ±Û").
_LATIN_MOJIBAKE = re.compile(r"(?:[ÂÃÄÅ][\u0080-\u00bf\u0152-\u0192\u2013-\u203a€™]|â[€‚„…†‡ˆ‰]|ï»¿|ðŸ)")
_KOREAN_MOJIBAKE = re.compile(r"[\u00b0-\u00c8][\u00a1-\u00fe](?:[\u00b0-\u00c8][\u00a1-\u00fe])+")

_scripts: dict[str, str | None] = {}


def scripts(text: str) -> tuple[str, ...]:
    """The scripts of a line, the largest first; less than a tenth of the letters (a name, a unit) does not count."""
    if text.isascii():
        return ("Latin",) if _LETTER.search(text) else ()
    counts: Counter[str] = Counter()
    for character, count in Counter(text).items():
        name = _script_of(character)
        if name is not None:
            counts[name] += count
    enough = counts.total() / 10
    return tuple(name for name, count in counts.most_common() if count >= enough)


def _script_of(character: str) -> str | None:
    if character not in _scripts:
        point = ord(character)
        letter = unicodedata.category(character)[0] in "LM"
        _scripts[character] = (
            next((name for low, high, name in RANGES if low <= point <= high), None) if letter else None
        )
    return _scripts[character]


def expected(found: tuple[str, ...], usual: str) -> bool:
    """Whether a line in the scripts `found` is nothing unusual on a side that is mostly `usual`."""
    return usual in found or (usual == "Kana" and "Han" in found)


def suspicions(text: str) -> Iterator[tuple[str, str]]:
    """The kinds of trouble in one line, each with a note that names it."""
    if text != text.strip():
        yield "untrimmed", "spaces at the start or end"
    if not text.isprintable():
        odd = next((character for character in text if _invisible(character)), None)
        if odd is not None:
            yield "control", f"U+{ord(odd):04X} at character {text.index(odd) + 1}"
    if text.isascii():
        return
    if "\ufffd" in text:
        yield "replacement", f"U+FFFD at character {text.index(chr(0xFFFD)) + 1}"
    broken = _mojibake(text)
    if broken:
        yield "mojibake", f'"{broken}"'
    if not unicodedata.is_normalized("NFC", text):
        yield "not-nfc", "decomposed characters"


def _invisible(character: str) -> bool:
    """Controls, line and paragraph separators, byte order marks, private and unassigned code points."""
    category = unicodedata.category(character)
    return category in ("Cc", "Zl", "Zp", "Co", "Cs") or character == "\ufeff"


def _mojibake(text: str) -> str | None:
    found = _LATIN_MOJIBAKE.search(text)
    if found:
        return found[0]
    for found in _KOREAN_MOJIBAKE.finditer(text):
        try:
            decoded = found[0].encode("latin-1").decode("euc-kr")
        except UnicodeError:
            continue
        if all(_script_of(character) == "Hangul" for character in decoded):
            return found[0]
    return None


def visible(text: str, width: int = 60) -> str:
    """Text from data as it may go to a terminal: controls and direction marks written out, cut to `width`."""
    shown = text[:width] + ("…" if len(text) > width else "")
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in shown
    )
