"""What a bare machine needs to run scene_text_card.py, in one folder that is small enough to travel (41 MiB); and what
came of it, in few files that are small enough to come back.

    python benchmarks/scene_text_pack.py pack --python 3.12 [--fonts .device-fonts] [--words .device-scene]
    python benchmarks/scene_text_pack.py unpack --out FOLDER
    python benchmarks/scene_text_pack.py back --from FOLDER --out $OUT
    python benchmarks/scene_text_pack.py join --from FOLDER --out FOLDER

`pack`, where the fonts and word lists were made (scene_text_fonts.py, scene_text_words.py), writes `.device-pack`: them
and the packages that a machine with PyTorch may lack. `unpack`, there, needs Python alone: it lays FOLDER/{src,deps,
fonts,words}, with a copy of the project, as the tree that it came in may be laid anew while a training reads it. `back`
packs all that scene_text_card.py wrote as one archive in parts of 15 MiB, of which `join` makes what it was.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = [
    *("pydantic", "pydantic-core", "annotated-types", "typing-inspection", "typing-extensions"),
    *("pooch", "platformdirs", "rapidfuzz", "fonttools", "zstandard", "pyyaml"),
    *("pytest", "pluggy", "iniconfig", "packaging", "pytest-xdist", "execnet"),
    "pillow",  # which families have letters alike is seen in how it draws them: as where they are judged
]
OF_THE_PROJECT = ["src", "benchmarks", "tests", "pyproject.toml", "Makefile"]
PACK = ".device-pack"
ARCHIVES = ("deps.tar.xz", "fonts.tar.xz", "words.tar.xz")
PART, MOST_PARTS = 15 * 2**20, 8


def packed(folder: Path, name: str, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(out, "w:xz") as archive:
        archive.add(folder, name, filter=lambda entry: None if "__pycache__" in entry.name else entry)
    print(f"{out}: {out.stat().st_size / 2**20:.1f} MiB", flush=True)


def packages() -> list[str]:
    """What constraints.txt says of these packages, so that there runs what was tested here."""
    lines = (ROOT / "constraints.txt").read_text().lower().replace("_", "-").split()
    pins = dict(line.split("==") for line in lines if "==" in line)
    return [f"{name}=={pins[name]}" if name in pins else name for name in PACKAGES]


def pack(arguments: argparse.Namespace) -> None:
    out = arguments.out / PACK
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        wheels = ["--only-binary=:all:", "--no-deps", f"--python-version={arguments.python}", f"--target={folder}"]
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wheels, *packages()], check=True)
        packed(Path(folder), "deps", out / "deps.tar.xz")
    packed(arguments.fonts, "fonts", out / "fonts.tar.xz")
    packed(arguments.words, "words", out / "words.tar.xz")


def unpack(arguments: argparse.Namespace) -> None:
    if missing := [name for name in ARCHIVES if not (ROOT / PACK / name).is_file()]:
        sys.exit(f"{PACK} lacks {', '.join(missing)}: was it carried?")
    shutil.rmtree(arguments.out, ignore_errors=True)
    for name in OF_THE_PROJECT:
        source, target = ROOT / name, arguments.out / "src" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    for name in ARCHIVES:
        with tarfile.open(ROOT / PACK / name) as archive:
            archive.extractall(arguments.out, filter="data")
    print(f"{arguments.out}: {', '.join(sorted(path.name for path in arguments.out.iterdir()))}")


def back(arguments: argparse.Namespace) -> None:
    arguments.out.mkdir(parents=True, exist_ok=True)
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for path in sorted(arguments.source.iterdir()):
            if path.is_file() and path.suffix in (".tar", ".json", ".log", ".txt"):
                archive.add(path, path.name)
    data = whole.getvalue()
    parts = [data[start : start + PART] for start in range(0, len(data), PART)]
    for number, part in enumerate(parts):
        (arguments.out / f"back.{number}").write_bytes(part)
    few = "" if len(parts) <= MOST_PARTS else f": more than the {MOST_PARTS} files that come back"
    print(f"{len(data) / 2**20:.1f} MiB in {len(parts)} parts{few}")


def join(arguments: argparse.Namespace) -> None:
    parts = sorted(arguments.source.rglob("back.*"), key=lambda path: int(path.suffix[1:]))
    with tarfile.open(fileobj=io.BytesIO(b"".join(path.read_bytes() for path in parts))) as archive:
        archive.extractall(arguments.out, filter="data")
    print(f"{arguments.out}: {', '.join(sorted(path.name for path in arguments.out.iterdir()))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("--python", default="3.12", help="of the machine that they are for")
    packing.add_argument("--fonts", type=Path, default=ROOT / ".device-fonts")
    packing.add_argument("--words", type=Path, default=ROOT / ".device-scene")
    packing.add_argument("--out", type=Path, default=ROOT)
    packing.set_defaults(does=pack)
    unpacking = commands.add_parser("unpack")
    unpacking.add_argument("--out", type=Path, required=True)
    unpacking.set_defaults(does=unpack)
    for name, does in (("back", back), ("join", join)):
        one = commands.add_parser(name)
        one.add_argument("--from", type=Path, required=True, dest="source")
        one.add_argument("--out", type=Path, required=True)
        one.set_defaults(does=does)
    arguments = parser.parse_args()
    arguments.does(arguments)


if __name__ == "__main__":
    main()
