"""Hangul words rendered in fonts that training never saw, read by runs of scene_text_train.py and by Tesseract's `kor`.

    python benchmarks/hangul_text.py NAME.tar … --fonts FOLDER --words FILE [--count 2000] [KEY=VALUE …]

The pictures are `jumok render permuted-hangul --split test` with these fonts and words: a word of the test split is in
no training batch, and neither is any of its fonts. They are made with the keys given, the same for all readers, in two
ways: words that people can read, with little that disturbs (PLAIN); and everything as training has it, random syllables
and pictures of which nothing can be made out among them. What counts is the word as it is written (NFC). Tesseract gets
each picture as it likes it best: page modes 7, 8 and 13, the crop made 64 or 96 pixels high, a border of 16 or none,
chosen on 200 of these very pictures.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageOps

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from jumok import api  # noqa: E402
from jumok.data.images.raw import RawImage  # noqa: E402
from jumok.tasks.text_reader import Read, Way  # noqa: E402
from packed_run import unpack  # noqa: E402
from scene_text_data import wilson  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
CHOOSING = 200
PLAIN = [
    "render.texts={words: 0.5, frequent: 0.5, letters: 0, numbers: 0, syllables: 0, empty: 0}",
    *("render.blur=0.15", "render.noise=0.15", "render.clutter=0.02", "render.colour=0.25", "render.outline=0.02"),
    *("render.curve=0.2", "render.perspective=0.2", "render.lettering=0"),
]
DRAWINGS: dict[str, list[str]] = {"plain": PLAIN, "as in training": []}
PAGE_MODES, HEIGHTS, BORDERS = (7, 8, 13), (64, 96), (0, 16)


def rendered(arguments: argparse.Namespace, drawing: list[str], folder: Path) -> list[tuple[Path, str]]:
    """The pictures with their words."""
    keys = [f"render.fonts={json.dumps([str(arguments.fonts.absolute())])}"]
    keys.append(f"render.words={json.dumps([str(arguments.words.absolute())])}")
    command = [sys.executable, "-m", "jumok", "render", "permuted-hangul", "--split", "test", "--out", str(folder)]
    subprocess.run([*command, "--count", str(arguments.count), *keys, *drawing, *arguments.keys], check=True)
    lines = (folder / "labels.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t", 1) for line in lines]
    # a picture without a word has nothing to be read, and Tesseract says nothing there
    return [(folder / name, text) for name, text in pairs if text.strip() and (folder / name).exists()]


def right(texts: Sequence[str], labels: Sequence[str]) -> int:
    pairs = zip(texts, labels, strict=True)
    return sum(unicodedata.normalize("NFC", "".join(text.split())) == label for text, label in pairs)


def tesseract(files: Sequence[Path], psm: int, height: int, border: int) -> list[str]:
    """One process for all: a page for each picture."""
    with tempfile.TemporaryDirectory() as place:
        made = []
        for number, file in enumerate(files):
            with Image.open(file) as picture:
                grey = picture.convert("L")
                grey = grey.resize((max(1, round(grey.width * height / grey.height)), height), Image.Resampling.LANCZOS)
                if border:
                    grey = ImageOps.expand(grey, border, grey.getpixel((0, 0)))
                made.append(Path(place, f"{number}.png"))
                grey.save(made[-1])
        names = Path(place, "names.txt")
        names.write_text("\n".join(map(str, made)) + "\n", encoding="utf-8")
        asked = ["tesseract", str(names), "-", "-l", "kor", "--psm", str(psm), "--dpi", "150"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    pages = told.split("\f")
    assert len(pages) >= len(files), f"{len(pages)} pages for {len(files)} pictures"
    return [page.strip() for page in pages[: len(files)]]


def peer(files: Sequence[Path], labels: Sequence[str]) -> dict[str, Any]:
    few = slice(0, CHOOSING)
    ways = list(itertools.product(PAGE_MODES, HEIGHTS, BORDERS))
    tried = {way: right(tesseract(files[few], *way), labels[few]) for way in ways}
    best = max(tried, key=lambda way: tried[way])
    began = time.perf_counter()
    texts = tesseract(files, *best)
    seconds = time.perf_counter() - began
    settings = dict(zip(("psm", "height", "border"), best, strict=True))
    return {"run": "Tesseract kor", "settings": settings, "seconds": round(seconds, 1), **scored(texts, labels)}


def scored(texts: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    count = right(texts, labels)
    low, high = wilson(count, len(labels))
    return {
        "accuracy": round(100 * count / len(labels), 2),
        "interval": [round(100 * low, 1), round(100 * high, 1)],
        "words": len(labels),
        "misread": [[label, text] for label, text in zip(labels, texts, strict=True) if not right([text], [label])][
            :40
        ],
    }


def judged(folders: dict[str, Path], pairs: Sequence[tuple[Path, str]], drawing: str) -> list[dict[str, Any]]:
    """All readers on the same pictures."""
    files, labels = [file for file, _ in pairs], [text for _, text in pairs]
    rows: list[dict[str, Any]] = []

    def tell(row: dict[str, Any]) -> None:
        rows.append(row)
        print(drawing, {key: value for key, value in row.items() if key != "misread"}, flush=True)

    for name, folder in folders.items():
        reader = api.load(folder, device="cpu")
        raw = [RawImage(file.name, None, file.read_bytes()) for file in files]
        texts = [seen.read.text if isinstance(seen.read, Read) else "" for seen in reader.stream(raw, Way())]
        parameters = sum(parameter.numel() for parameter in reader.model.parameters())
        tell({"run": name, "parameters": parameters, **scored(texts, labels)})
    tell(peer(files, labels))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", help="packed runs or run folders; and keys of the recipe (KEY=VALUE)")
    parser.add_argument("--fonts", type=Path, required=True)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "hangul-text.json")
    arguments = parser.parse_args()
    arguments.keys = [one for one in arguments.runs if "=" in one]
    runs = [Path(one) for one in arguments.runs if "=" not in one]
    torch.set_num_threads(arguments.threads)
    about: dict[str, Any] = {"keys": arguments.keys, "drawings": {}}
    with tempfile.TemporaryDirectory() as place:
        folders = {path.stem: path if path.is_dir() else unpack(path, Path(place) / path.stem) for path in runs}
        for number, (name, drawing) in enumerate(DRAWINGS.items()):
            pairs = rendered(arguments, drawing, Path(place, f"pictures-{number}"))
            about["drawings"][name] = {"keys": drawing, "pictures": len(pairs), "readers": judged(folders, pairs, name)}
    arguments.out.write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(arguments.out)


if __name__ == "__main__":
    main()
