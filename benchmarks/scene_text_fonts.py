"""Gathers fonts for training on a machine that has none: Debian's and a few of npm's, cut down to what is needed.

    python benchmarks/scene_text_fonts.py --out .device-fonts [--sheets /tmp/fonts_sheet]

Writes OUT/latin (ASCII and Latin-1) and OUT/hangul (these and the syllables 가…힣), no layout features, no hints, and
OUT/manifest.json: family, style, package, licence and sha256 of each file. Of a family at most four faces are taken:
regular, bold, and of some families italic or the heaviest. What is not legible is left out: faces without all of A–Z,
a–z and 0–9, faces many of whose letters look the same, and the families named in scene_text_font_lists.py.

Packages are fetched with `apt-get download` (no root, nothing is installed) and `npm pack`, four at a time, into
--cache. What is there already, packages or finished fonts, is not made again. `--sheets` draws every family.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import io
import json
import logging
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fontTools import subset
from fontTools.ttLib import TTCollection, TTFont
from fontTools.varLib import instancer
from PIL import Image, ImageDraw, ImageFont

from scene_text_font_lists import DROPPED, FONTSOURCE, HANGUL, LATIN, WHOLE_NAMES

AT_ONCE = 4
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
LATIN_POINTS = [*range(0x20, 0x7F), *range(0xA0, 0x100)]
HANGUL_POINTS = range(0xAC00, 0xD7A4)
FEWEST_SYLLABLES = 2350  # KS X 1001: what every Korean font has
LARGEST = {"latin": 100_000, "hangul": 4_000_000}  # bytes of a file: letters with rough edges take too many
SHOWN = {"latin": "Aag35RK", "hangul": "뷁한글Ag3"}
ALIKE = 0.012  # mean difference of two drawings, of 1, below which two families are the same one under two names
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
        """The family without sizes and signs of the vendor; narrow and wide ones are families of their own."""
        width = re.search(WIDTHS, self.style, re.IGNORECASE)
        name = self.family + (width[0] if width else "")
        return re.sub("[^a-z가-힣]", "", name.lower()) or re.sub(r"\W", "", name.lower())


# ---------------------------------------------------------------- packages


def fetch(packages: Sequence[str], cache: Path) -> dict[str, Path]:
    """The folders with the packages' font files and licences; downloads and unpacks what was not yet."""
    folders = {package: cache / package.replace("/", "+") for package in packages}
    missing = [package for package in packages if not (folders[package] / ".complete").exists()]
    # apt reads its lists once for all of them, and is kind to the server itself
    debian = [package for package in missing if not package.startswith("@")]
    with tempfile.TemporaryDirectory(dir=cache) as place:
        for group in [debian, *([package] for package in debian)]:  # one by one if one of them cannot be had
            wanted = [package for package in group if not downloaded(Path(place), package)]
            if wanted:
                command = ["apt-get", "download", "-qq", *wanted]
                done = subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                if done.returncode and len(group) == 1:
                    print(f"{group[0]} cannot be had: {done.stderr.strip()[-300:]}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda package: npm_pack(package, Path(place)), set(missing) - set(debian)))
        for package in missing:
            if found := downloaded(Path(place), package):
                shutil.rmtree(folders[package], ignore_errors=True)
                folders[package].mkdir()
                unpack(found, folders[package])
                (folders[package] / ".complete").touch()
    return {package: folder for package, folder in folders.items() if folder.is_dir()}


def npm_pack(package: str, place: Path) -> None:
    done = subprocess.run(["npm", "pack", "--silent", package], cwd=place, capture_output=True, text=True)
    if done.returncode:
        print(f"{package} cannot be had: {done.stderr.strip()[-300:]}", flush=True)


def downloaded(place: Path, package: str) -> Path | None:
    pattern = f"{package[1:].replace('/', '-')}-[0-9]*.tgz" if package.startswith("@") else f"{package}_*.deb"
    return next(place.glob(pattern), None)


def unpack(package: Path, folder: Path) -> None:
    if package.suffix == ".tgz":
        with package.open("rb") as file:
            extract(file, folder)
        return
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as opened:
        assert opened.stdout
        extract(opened.stdout, folder)


def extract(stream: Any, folder: Path) -> None:
    """Font files and the licence; of npm's slices only the Latin one, upright and italic, plain and bold."""
    with tarfile.open(fileobj=stream, mode="r|*") as archive:
        for member in archive:
            name = Path(member.name)
            licence = name.name in ("copyright", "LICENSE") and ("doc" in name.parts or "package" in name.parts)
            slice_ = re.search(r"-latin-(400|700|900)-(normal|italic)\.woff$", name.name)
            wanted = name.suffix.lower() in (".ttf", ".otf", ".ttc") or slice_ or licence
            read = archive.extractfile(member) if wanted and member.isfile() else None
            if read:
                flat = "copyright" if licence else "+".join(name.parts[-3:])
                (folder / flat).write_bytes(read.read())


def licence(folder: Path) -> str:
    """What the package says of its licence, in a few words."""
    path = folder / "copyright"
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    names = list(dict.fromkeys(re.findall(r"^License:[ \t]*(\S.*?)\s*$", text, re.MULTILINE)))
    if not names:
        known = {"SIL Open Font License": "OFL-1.1", "Apache License": "Apache-2.0", "General Public": "GPL"}
        names = [short for long, short in known.items() if long.lower() in text.lower()]
    return "; ".join(names[:6])[:200] or "see the package's copyright file"


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
    if re.search("bold", style, re.IGNORECASE) and weight <= 400:
        weight = 700
    italic = bool(re.search("italic|oblique|slanted|kursiv", style, re.IGNORECASE))
    axes = {axis.axisTag: axis for axis in font["fvar"].axes} if "fvar" in font else {}
    location = {tag: axis.defaultValue for tag, axis in axes.items()}
    made = Face(path, number, package, family.strip(), style.strip(), weight, italic, location)
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
    with TTFont(face.path, fontNumber=face.number, recalcTimestamp=False) as font:
        covered = font.getBestCmap()
        if not all(ord(letter) in covered for letter in LETTERS):
            return None
        syllables = [point for point in HANGUL_POINTS if point in covered] if kind == "hangul" else []
        if kind == "hangul" and len(syllables) < FEWEST_SYLLABLES:
            return None
        if face.location:
            instancer.instantiateVariableFont(font, face.location, inplace=True)
        options = subset.Options(
            layout_features=[], hinting=False, glyph_names=False, notdef_outline=True, name_IDs=[1, 2, 13, 16, 17],
            name_languages=[0x409], desubroutinize=False, recalc_bounds=True, ignore_missing_glyphs=True,
            ignore_missing_unicodes=True, legacy_kern=False,
        )  # fmt: skip
        options.drop_tables += ["GSUB", "GPOS", "GDEF", "kern", "DSIG", "STAT", "BASE", "JSTF", "MATH", "FFTM", "PfEd",
                                "VORG", "vhea", "vmtx", "SVG ", "COLR", "CPAL", "sbix", "EBDT", "EBLC", "EBSC", "prop",
                                "Silf", "Glat", "Gloc", "Feat", "Sill", "morx", "mort", "feat", "meta"]  # fmt: skip
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=[*LATIN_POINTS, *syllables])
        cutter.subset(font)
        font.flavor = None
        whole = io.BytesIO()
        font.save(whole)
    return whole.getvalue()


def drawn(font: bytes, text: str, size: int = 32) -> Image.Image:
    """The text in black on white, as tight as its ink."""
    face = ImageFont.truetype(io.BytesIO(font), size, layout_engine=ImageFont.Layout.BASIC)
    left, top, right, bottom = map(int, face.getbbox(text))
    picture = Image.new("L", (max(1, right - left), max(1, bottom - top)), 255)
    ImageDraw.Draw(picture).text((-left, -top), text, fill=0, font=face)
    return picture


def legible(font: bytes) -> str:
    """Why not, or nothing: letters without ink, or letters that look like each other."""
    for letters, fewest in ((LETTERS[:26], 24), (LETTERS[26:52], 24), (LETTERS[52:], 9)):
        looks = set()
        for letter in letters:
            picture = np.asarray(drawn(font, letter))
            if picture.min() > 128:
                return f"{letter} has no ink"
            looks.add((picture.shape, picture.tobytes()))
        if len(looks) < fewest:
            return f"{letters[0]}–{letters[-1]} look like each other"
    return ""


def fingerprint(font: bytes, kind: str) -> Any:
    return np.asarray(drawn(font, SHOWN[kind], 48).resize((128, 32), Image.Resampling.BOX), dtype=np.float32) / 255


def file_name(face: Face, font: bytes) -> str:
    slug = re.sub(r"[^A-Za-z0-9가-힣]+", "-", f"{face.family}-{face.style}").strip("-")
    return slug + (".otf" if font[:4] == b"OTTO" else ".ttf")


def gather(
    kind: str,
    faces: list[Face],
    out: Path,
    licences: dict[str, str],
    old: dict[str, Any],
    keep: Callable[[list[Any]], None],
) -> list[dict[str, Any]]:
    """Writes the fonts of a kind; what the manifest says of them. `keep` is called now and then with what is done."""
    folder = out / kind
    folder.mkdir(parents=True, exist_ok=True)
    made: list[dict[str, Any]] = []
    seen: list[tuple[str, Any]] = []
    left_out = defaultdict[str, list[str]](list)
    for count, face in enumerate(faces):
        if count % 100 == 99:
            print(f"  {kind}: {count + 1} of {len(faces)} faces", flush=True)
            keep(made)
        if face.key in DROPPED:
            left_out["named as not legible"].append(face.family)
            continue
        source = hashlib.sha256(Path(face.path).read_bytes() + json.dumps(asdict(face)).encode()).hexdigest()
        kept = old.get(source)
        if kept and kept.get("left out"):
            left_out[kept["left out"]].append(face.family)
            made.append(kept)
            continue
        if kept and (out / kept["file"]).is_file():
            font: bytes | None = (out / kept["file"]).read_bytes()
        else:
            try:
                font = cut(face, kind)
                why = "lacks letters" if font is None else legible(font)
            except Exception as problem:  # a broken font is no reason to stop: there are others
                font, why = None, f"broken ({type(problem).__name__})"
            if font and len(font) > LARGEST[kind]:
                why = "too large"
            if font is None or why:
                left_out[why].append(face.family)
                made.append({"source": source, "left out": why, "family": face.family, "style": face.style})
                continue
        look = fingerprint(font, kind)
        twin = next((key for key, other in seen if np.abs(other - look).mean() < ALIKE), None)
        if twin is not None:
            left_out["the same as another"].append(f"{face.family} {face.style} = {twin}")
            if kept:
                (out / kept["file"]).unlink()
            continue
        seen.append((f"{face.family} {face.style}", look))
        path = folder / file_name(face, font)
        path.write_bytes(font)
        made.append(
            {
                "file": f"{kind}/{path.name}", "family": face.family, "key": face.key, "style": face.style,
                "weight": face.weight, "italic": face.italic, "package": face.package,
                "licence": licences[face.package], "bytes": len(font), "sha256": hashlib.sha256(font).hexdigest(),
                "source": source,
            }
        )  # fmt: skip
    wanted = {entry["file"] for entry in made if "file" in entry}
    for path in folder.iterdir():
        if f"{kind}/{path.name}" not in wanted:
            path.unlink()
    for why, names in left_out.items():
        print(f"{kind}: left out {len(names)} faces, {why}: {', '.join(sorted(set(names))[:12])} …", flush=True)
    return made


# ---------------------------------------------------------------- report


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
            picture = drawn((out / entry["file"]).read_bytes(), SHOWN[kind], 42)
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
    packages = {
        "latin": [f"fonts-{n}" for n in LATIN.split()] + WHOLE_NAMES + [f"@fontsource/{n}" for n in FONTSOURCE.split()],
        "hangul": [f"fonts-{n}" for n in HANGUL.split()],
    }
    every = packages["latin"] + packages["hangul"]
    folders = fetch(every, options.cache)
    licences = {package: licence(folder) for package, folder in folders.items()}
    stored = options.out / "manifest.json"
    old = {e["source"]: e for e in json.loads(stored.read_text("utf-8"))["fonts"]} if stored.is_file() else {}
    made: dict[str, list[dict[str, Any]]] = {}

    def keep(some: list[dict[str, Any]]) -> None:
        """So that a run that was stopped goes on where it was."""
        entries = {entry["source"]: entry for entry in [*old.values(), *some]}
        stored.write_text(json.dumps({"fonts": list(entries.values())}), "utf-8")

    for kind, names in packages.items():
        faces = chosen(face for name in names if name in folders for face in faces_in(name, folders[name]))
        print(f"{kind}: {len(faces)} faces of {len({face.key for face in faces})} families to look at", flush=True)
        made[kind] = gather(kind, faces, options.out, licences, old, keep)
        old |= {entry["source"]: entry for entry in made[kind]}
    text = json.dumps({"fonts": [e for entries in made.values() for e in entries]}, indent=1, ensure_ascii=False)
    stored.write_text(text + "\n", "utf-8")
    for kind, entries in made.items():
        if options.sheets:
            draw_sheets(entries, options.out, options.sheets, kind)
        written = [entry for entry in entries if "file" in entry]
        size = sum(entry["bytes"] for entry in written) / 1e6
        print(f"{kind}: {len(written)} faces of {len({e['key'] for e in written})} families, {size:.1f} MB")


if __name__ == "__main__":
    main()
