"""Fonts that can really draw a text. A picture with empty boxes where the Hangul should be is worse than no picture."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from matplotlib import font_manager, ft2font, get_data_path

from jumok.errors import Failure

# The same text should look the same on every machine, so the font that ships with matplotlib is always asked first.
# Then plain text faces of the usual systems, and only then whatever else is installed.
_PREFERRED = (
    "nanumgothic",
    "notosanskr",
    "notosanscjk",
    "malgungothic",
    "applesdgothicneo",
    "notosans",
    "unifont",
)
_PACKAGES = {
    "HANGUL": "fonts-nanum",
    "CJK": "fonts-noto-cjk",
    "HIRAGANA": "fonts-noto-cjk",
    "KATAKANA": "fonts-noto-cjk",
}
# The extra "fonts": a package that carries NanumGothic. Its files are used; it is not imported, for it would change
# matplotlib's settings.
_EXTRA = "koreanize_matplotlib"


@dataclass(frozen=True)
class FontFile:
    path: str
    family: str
    regular: bool
    characters: frozenset[int]


def families_for(text: str) -> list[str]:
    """Font families, most important first, that have a glyph for every character of `text`."""
    needed = {ord(character) for character in text if not character.isspace()}
    chosen: list[FontFile] = []
    for font in _candidates(needed):
        if font.characters & needed:
            chosen.append(font)
            needed -= font.characters
    if needed:
        raise Failure(_missing_message(needed))
    return [_register(font) for font in chosen] or [_open(_bundled()).family]


def _candidates(needed: set[int]) -> Iterable[FontFile]:
    """The bundled font; when that is not enough, those of the system, then those of the extra; of each the best face
    for what is still missing first."""
    bundled = _open(_bundled())
    yield bundled
    if needed <= bundled.characters:
        return
    missing = needed - bundled.characters
    for paths in (font_manager.findSystemFonts, extra_fonts):  # looked up now, not in a cache: .ttf, .ttc and .otf
        fonts = [font for path in paths() if (font := _try_open(path)) is not None and font.characters & missing]
        yield from sorted(
            fonts, key=lambda font: (-len(font.characters & missing), not font.regular, _rank(font), font.path)
        )


def extra_fonts() -> list[str]:
    """The font files of the extra `fonts`, where it is installed."""
    found = importlib.util.find_spec(_EXTRA)
    folders = [] if found is None else found.submodule_search_locations or []
    return sorted(str(path) for folder in folders for path in (Path(folder) / "fonts").glob("*.ttf"))


def _rank(font: FontFile) -> int:
    name = font.family.lower().replace(" ", "")
    return next((rank for rank, wanted in enumerate(_PREFERRED) if name.startswith(wanted)), len(_PREFERRED))


def _bundled() -> str:
    return str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf")


def _try_open(path: str) -> FontFile | None:
    try:
        return _open(path)
    except (OSError, RuntimeError, UnicodeDecodeError):  # a damaged or unsupported font is no reason to stop
        return None


@functools.cache
def _open(path: str) -> FontFile:
    font = ft2font.FT2Font(path)
    if not font.scalable:
        raise RuntimeError("bitmap fonts cannot be drawn at any size")
    return FontFile(
        path, font.family_name, font.style_name in ("Regular", "Book", "Normal"), frozenset(font.get_charmap())
    )


@functools.cache
def _register(font: FontFile) -> str:
    """A family name that leads to exactly this file, whatever matplotlib's own (maybe outdated) font cache holds."""
    family = f"jumok {font.path}"
    manager = font_manager.fontManager
    manager.addfont(font.path)
    known = next(entry for entry in manager.ttflist if Path(entry.fname) == Path(font.path))
    manager.ttflist.append(dataclasses.replace(known, name=family, weight=400))
    return family


def _missing_message(missing: set[int]) -> str:
    shown = ", ".join(_describe(code) for code in sorted(missing)[:8])
    more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
    packages = sorted({_package(code) for code in missing})
    names = " ".join(packages)
    extra = '; anywhere: pip install "jumok[fonts]"' if packages == [_PACKAGES["HANGUL"]] else ""
    return (
        f"no installed font can draw {shown}{more}. Install one (Debian, Ubuntu: apt install {names}{extra}) "
        "and try again; nothing else has to be restarted. Or write .html or .json, which need no font here."
    )


def _describe(code: int) -> str:
    character = chr(code)
    sign = f' "{character}"' if character.isprintable() else ""
    return f"U+{code:04X}{sign} ({unicodedata.name(character, 'no character')})"


def _package(code: int) -> str:
    script = unicodedata.name(chr(code), "").split(" ")[0].split("-")[0]
    return _PACKAGES.get(script, "fonts-noto fonts-unifont")
