"""Gathers fonts for training on a machine that has none: Debian's and a few of npm's, cut down to what is needed.

    python benchmarks/scene_text_fonts.py --out .device-fonts [--sheets /tmp/fonts_sheet]

Writes OUT/latin (ASCII and Latin-1) and OUT/hangul (these and the syllables 가…힣), no layout features, no hints, and
OUT/manifest.json: family, style, package, licence and sha256 of each file. Of a family at most four faces are taken:
regular, bold, and of some families italic or the heaviest. What is not legible is left out: faces without all of A–Z,
a–z and 0–9, faces many of whose letters look the same, and the families named in scene_text_font_packages.py.

Packages are fetched with `apt-get download` (no root, nothing is installed) and `npm pack`, four at a time, into
--cache. What is there already, packages or finished fonts, is not made again. `--sheets` draws every family.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import logging
import lzma
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fontTools import subset
from fontTools.ttLib import TTCollection, TTFont
from fontTools.varLib import instancer
from PIL import Image, ImageDraw, ImageFont

from scene_text_font_packages import RARE, fetch, left_out, licence, package_names

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
LATIN_POINTS = [*range(0x20, 0x7F), *range(0xA0, 0x100)]
HANGUL_POINTS = range(0xAC00, 0xD7A4)
COMMON = [point for point in HANGUL_POINTS if len(chr(point).encode("euc_kr")) == 2]  # KS X 1001: all fonts have them
FEWEST_SYLLABLES = 2340  # Baekmuk's headlines lack one of the common ones
WHOLE_BLOCK = 420_000  # compressed bytes of a file up to which all of its syllables are kept, not only the common ones
ALWAYS_WHOLE = ("notosanscjkkr",)
LARGEST = {"latin": 60_000, "hangul": 620_000}  # compressed bytes: letters with rough edges take too many
SHOWN = {"latin": "Aag35RK", "hangul": "뷁한글Ag3"}
ALIKE = 0.012  # mean difference of two drawings, of 1, below which two families are the same one under two names
NOT_WANTED = "CJK (JP|SC|TC|HK)|Mono CJK|YetHangul|_ac|Eco$"  # the same Hangul under another name
WEIGHTS = r"\b(thin|extralight|light|book|medium|semibold|demi|bold|extrabold|heavy|black)\b"
WIDTHS = "condensed|compressed|narrow|extended|expanded|wide|cond"


@dataclass
class Face:
    """A face in a file of a package, by what it calls itself."""

    path: str
    number: int
    package: str
    family: str
    style: str
    weight: int
    italic: bool
    location: dict[str, float]  # of a variable font

    @property
    def key(self) -> str:
        """The family without weights, sizes and signs; narrow and wide ones are families of their own."""
        width = re.search(WIDTHS, self.style, re.IGNORECASE)
        name = re.sub(WEIGHTS, "", self.family, flags=re.IGNORECASE) + (width[0] if width else "")
        return re.sub("[^a-z가-힣]", "", name.lower()) or re.sub(r"\W", "", name.lower())


# ---------------------------------------------------------------- faces


def faces_in(package: str, folder: Path) -> Iterator[Face]:
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in (".ttf", ".otf", ".ttc", ".woff"):
            continue
        try:
            count = len(TTCollection(str(path), lazy=True)) if path.suffix.lower() == ".ttc" else 1
            for number in range(count):
                with TTFont(str(path), fontNumber=number, lazy=True) as font:
                    yield from described(font, str(path), number, package)
        except Exception as problem:  # there are many ways to be broken, and other fonts
            print(f"{path.name}: not a font that can be read ({problem})", flush=True)


def described(font: TTFont, path: str, number: int, package: str) -> Iterator[Face]:
    """The face, or two of a variable font: as it is, and bold."""
    if not ({"glyf", "CFF ", "CFF2"} & set(font.keys())) or font.getBestCmap() is None:
        return
    names = font["name"]
    family = names.getDebugName(16) or names.getDebugName(1) or Path(path).stem
    style = names.getDebugName(17) or names.getDebugName(2) or "Regular"
    weight = font["OS/2"].usWeightClass if "OS/2" in font else 400
    weight = weight * 100 if weight < 10 else weight
    if re.search("bold|heavy|black", f"{family} {style}", re.IGNORECASE) and weight <= 400:
        weight = 700
    italic = bool(re.search("italic|oblique|slanted|kursiv", style, re.IGNORECASE))
    axes = {axis.axisTag: axis for axis in font["fvar"].axes} if "fvar" in font else {}
    location = {tag: axis.defaultValue for tag, axis in axes.items()}
    made = Face(path, number, package, family.strip(), style.strip(), weight, italic, location)
    if re.search(NOT_WANTED, made.family):
        return
    yield made
    if "wght" in axes and axes["wght"].maxValue >= 700 and weight < 600:
        yield Face(path, number, package, made.family, "Bold", 700, italic, {**location, "wght": 700})


def chosen(faces: Iterable[Face]) -> list[Face]:
    """Of each family regular and bold, of one in two families an italic one, of one in two the heaviest."""
    families = defaultdict[str, list[Face]](list)
    for face in faces:
        families[face.key].append(face)
    found = []
    for key, members in families.items():
        of_one_package = [face for face in members if face.package == members[0].package]
        upright = [face for face in of_one_package if not face.italic]
        slanted = [face for face in of_one_package if face.italic]
        chance = hashlib.sha256(key.encode()).digest()[0]
        if chance % RARE.get(members[0].package, 1):
            continue
        picked = []
        if upright:
            regular = min(upright, key=lambda face: (abs(face.weight - 400), len(face.style)))
            bold = min(upright, key=lambda face: (abs(face.weight - 700), len(face.style)))
            heavy = max(upright, key=lambda face: (face.weight, -len(face.style)))
            picked += [regular] + [bold] * (bold.weight - regular.weight >= 150)
            picked += [heavy] * (chance % 2 == 0 and heavy.weight - bold.weight >= 100)
        if slanted and (not upright or chance % 4 >= 2):
            picked.append(min(slanted, key=lambda face: (abs(face.weight - 400), len(face.style))))
        found += picked
    return found


# ---------------------------------------------------------------- cutting down


def cut(face: Face, kind: str) -> bytes | None:
    """The font with nothing but the characters wanted, or nothing where it lacks letters."""
    if kind == "latin":
        return cut_to(face, LATIN_POINTS)
    whole = cut_to(face, [*LATIN_POINTS, *HANGUL_POINTS])
    if whole and compressed(whole) > WHOLE_BLOCK and face.key not in ALWAYS_WHOLE:
        return cut_to(face, [*LATIN_POINTS, *COMMON])
    return whole


def compressed(font: bytes) -> int:
    return len(lzma.compress(font))


def with_ink(font: TTFont) -> set[int]:
    """The characters that it draws; some fonts have empty outlines for rare syllables."""
    outlines = font.get("glyf", {})
    spaces = (0x20, 0xA0)
    return {
        point
        for point, name in font.getBestCmap().items()
        if point in spaces or name not in outlines or outlines[name].numberOfContours
    }


def cut_to(face: Face, points: Sequence[int]) -> bytes | None:
    with TTFont(face.path, fontNumber=face.number, recalcTimestamp=False) as font:
        covered = with_ink(font)
        if not all(ord(letter) in covered for letter in LETTERS):
            return None
        if len(points) > len(LATIN_POINTS) and len(covered.intersection(COMMON)) < FEWEST_SYLLABLES:
            return None
        if face.location:
            instancer.instantiateVariableFont(font, face.location, inplace=True)
        options = subset.Options(
            layout_features=[], hinting=False, glyph_names=False, notdef_outline=True, name_IDs=[],
            desubroutinize=False, recalc_bounds=True, ignore_missing_glyphs=True,
            ignore_missing_unicodes=True, legacy_kern=False,
        )  # fmt: skip
        options.drop_tables += ["GSUB", "GPOS", "GDEF", "kern", "DSIG", "STAT", "BASE", "JSTF", "MATH", "FFTM", "PfEd",
                                "VORG", "vhea", "vmtx", "SVG ", "COLR", "CPAL", "sbix", "EBDT", "EBLC", "EBSC", "prop",
                                "Silf", "Glat", "Gloc", "Feat", "Sill", "morx", "mort", "feat", "meta"]  # fmt: skip
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=[point for point in points if point in covered])
        cutter.subset(font)
        font.flavor = None
        for number, name in ((1, face.family), (2, face.style)):  # in the one way that every reader knows
            font["name"].setName(name, number, 3, 1, 0x409)
        whole = io.BytesIO()
        font.save(whole)
    return whole.getvalue()


def opened(font: bytes, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(io.BytesIO(font), size, layout_engine=ImageFont.Layout.BASIC)


def drawn(face: ImageFont.FreeTypeFont, text: str) -> Image.Image:
    """The text in black on white, as tight as its ink."""
    left, top, right, bottom = map(int, face.getbbox(text))
    picture = Image.new("L", (max(1, right - left), max(1, bottom - top)), 255)
    ImageDraw.Draw(picture).text((-left, -top), text, fill=0, font=face)
    return picture


def illegible(font: bytes) -> str:
    """Why it is, or nothing: letters without ink, or letters that look like each other."""
    face = opened(font, 32)
    for letters, fewest in ((LETTERS[:26], 24), (LETTERS[26:52], 24), (LETTERS[52:], 9)):
        looks = set()
        for letter in letters:
            picture = np.asarray(drawn(face, letter))
            if picture.min() > 128:
                return "a letter has no ink"
            looks.add((picture.shape, picture.tobytes()))
        if len(looks) < fewest:
            return "letters look like each other"
    return ""


def made_of(face: Face, kind: str) -> tuple[bytes, str]:
    """The font, and why it is left out, if it is."""
    if why := left_out(face.key):
        return b"", why
    try:
        font = cut(face, kind)
        why = illegible(font) if font else "lacks letters"
    except Exception as problem:  # a broken font is no reason to stop: there are others
        return b"", f"broken ({type(problem).__name__})"
    return font or b"", why or ("too large" if compressed(font or b"") > LARGEST[kind] else "")


def fingerprint(font: bytes, kind: str) -> Any:
    return (
        np.asarray(drawn(opened(font, 48), SHOWN[kind]).resize((128, 32), Image.Resampling.BOX), dtype=np.float32) / 255
    )


def file_name(face: Face, font: bytes) -> str:
    slug = re.sub(r"[^A-Za-z0-9가-힣]+", "-", f"{face.family}-{face.style}").strip("-")
    return slug + (".otf" if font[:4] == b"OTTO" else ".ttf")


class Gathering:
    """The folder, and what is known of each face: where its font is, or why it has none."""

    def __init__(self, out: Path) -> None:
        self.out, self.stored = out, out / "manifest.json"
        told = json.loads(self.stored.read_text("utf-8")) if self.stored.is_file() else {"fonts": [], "left_out": []}
        self.known = {entry["source"]: entry for entry in told["fonts"] + told["left_out"]}
        self.entries: dict[str, dict[str, Any]] = {}

    def add(self, kind: str, faces: list[Face], licences: dict[str, str]) -> None:
        (self.out / kind).mkdir(parents=True, exist_ok=True)
        looks: list[Any] = []
        names: set[str] = set()
        for count, face in enumerate(faces, 1):
            if count % 20 == 0:
                self.keep()
            if count % 100 == 0:
                print(f"  {kind}: {count} of {len(faces)} faces", flush=True)
            limits = [LARGEST[kind], *([FEWEST_SYLLABLES, WHOLE_BLOCK, ALWAYS_WHOLE] if kind == "hangul" else [])]
            asked = json.dumps([kind, face.number, face.location, limits, left_out(face.key)])
            source = hashlib.sha256(Path(face.path).read_bytes() + asked.encode()).hexdigest()
            entry = {"family": face.family, "key": face.key, "style": face.style, "package": face.package}
            known = self.known.get(source, {})
            if "file" in known and (self.out / known["file"]).is_file():
                font, why = (self.out / known["file"]).read_bytes(), ""
            elif "why" in known and not known["why"].startswith("the same"):
                font, why = b"", known["why"]
            else:
                font, why = made_of(face, kind)
            if not why:
                look = fingerprint(font, kind)
                name = f"{kind}/{file_name(face, font)}"
                same = any(np.abs(other - look).mean() < ALIKE for other in looks)
                why = "the same as another" if same else "the same name as another" if name in names else ""
            if why:
                self.entries[source] = {**entry, "why": why, "kind": kind, "source": source}
                continue
            looks.append(look)
            names.add(name)
            (self.out / name).write_bytes(font)
            syllables = len([point for point in TTFont(io.BytesIO(font)).getBestCmap() if point in HANGUL_POINTS])
            self.entries[source] = {
                "file": name, **entry, "weight": face.weight, "italic": face.italic, "syllables": syllables,
                "licence": licences[face.package], "bytes": len(font), "compressed": compressed(font),
                "sha256": hashlib.sha256(font).hexdigest(), "kind": kind, "source": source,
            }  # fmt: skip
        for path in (self.out / kind).iterdir():
            if f"{kind}/{path.name}" not in names:
                path.unlink()

    def keep(self, last: bool = False) -> None:
        """Now and then, so that a run that was stopped goes on where it was."""
        entries = (self.entries if last else {**self.known, **self.entries}).values()
        lists = {"fonts": [e for e in entries if "file" in e], "left_out": [e for e in entries if "why" in e]}
        self.stored.write_text(json.dumps(lists, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def report(self, kind: str, sheets: str | None) -> None:
        missing = defaultdict[str, list[str]](list)
        for entry in self.entries.values():
            if entry["kind"] == kind and "why" in entry:
                missing[entry["why"]].append(f"{entry['family']} {entry['style']}")
        for why, names in missing.items():
            print(f"{kind}: {len(names)} faces left out, {why}: {', '.join(names[:6])} …")
        written = [entry for entry in self.entries.values() if entry["kind"] == kind and "file" in entry]
        size, small = (sum(entry[what] for entry in written) / 1e6 for what in ("bytes", "compressed"))
        families = len({entry["key"] for entry in written})
        print(f"{kind}: {len(written)} faces of {families} families, {size:.1f} MB, {small:.1f} MB compressed")
        if sheets:
            draw_sheets(written, self.out, sheets, kind)


def draw_sheets(entries: list[dict[str, Any]], out: Path, prefix: str, kind: str) -> None:
    """Every family's first face, 120 on a picture."""
    first = {entry["key"]: entry for entry in reversed(entries) if "file" in entry}
    members = [first[key] for key in sorted(first)]
    for number in range(0, len(members), 120):
        sheet = Image.new("RGB", (6 * 260, 20 * 74), "white")
        pen, small = ImageDraw.Draw(sheet), ImageFont.load_default(12)
        for place, entry in enumerate(members[number : number + 120]):
            x, y = place % 6 * 260, place // 6 * 74
            pen.text((x + 4, y), entry["key"][:36], fill="red", font=small)
            picture = drawn(opened((out / entry["file"]).read_bytes(), 42), SHOWN[kind])
            picture.thumbnail((250, 54))
            sheet.paste(picture, (x + 4, y + 16))
        sheet.save(f"{prefix}_{kind}_{number // 120:02d}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(".device-fonts"))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "jumok-fonts")
    parser.add_argument("--sheets", help="draw every family to PREFIX_latin_00.png …")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    logging.getLogger("fontTools").setLevel(logging.CRITICAL)  # old fonts have much that is out of order
    packages = package_names()
    every = packages["latin"] + packages["hangul"]
    folders = fetch(every, options.cache)
    licences = {package: licence(folder) for package, folder in folders.items()}
    gathering = Gathering(options.out)
    for kind, names in packages.items():
        faces = chosen(face for name in names if name in folders for face in faces_in(name, folders[name]))
        print(f"{kind}: {len(faces)} faces of {len({face.key for face in faces})} families to look at", flush=True)
        gathering.add(kind, faces, licences)
    gathering.keep(last=True)
    for kind in packages:
        gathering.report(kind, options.sheets)


if __name__ == "__main__":
    main()
