"""Hangul words rendered in fonts that training never saw, read by runs of scene_text_train.py and by Tesseract's `kor`.

    python benchmarks/hangul_text.py [NAME.tar …] --fonts FOLDER --words FILE [--count 2000] [KEY=VALUE …]

The pictures are those of recipe permuted-hangul, split test, with these fonts and words: a word of the test split is in
no training batch, and neither is any of its fonts. Which ones these are is computed anew, from what lies in --fonts and
--words. So a run is refused unless NAME.json beside it (scene_text_train.py writes it) has the same sums of both, and
its recipe the same shares and characters: what is held out here could be what it was trained with. Without a run,
Tesseract alone is judged.

All readers get the same picture files, made with the keys given, in two ways: words that people can read, with little
that disturbs (PLAIN), drawn with twice the rows and columns that the recipe's model looks at; and everything as
training has it, in the recipe's own size, random syllables and pictures of which nothing can be made out among them.
The renderer fills one size whatever the word; a file has the word as wide as it is (`natural`), and each reader brings
it to what it was made for. What counts is the word as it is written (NFC).

Tesseract gets each picture as it likes it best: page modes 7, 8 and 13, the crop made 32 to 96 pixels high, a border of
16 or none. That is chosen on 200 words of the split valid, in the same fonts: none of them is a word of the test.

Two 95 % intervals. `interval` is Wilson's, as if each word were a draw of its own; it says how exact the figure is for
these very fonts. Words of one family are right or wrong together, though, and families are few: `interval_families`
draws whole families, with replacement, 10,000 times, and says what other fonts of this kind would give. Of a handful of
families it is still too narrow, since a bootstrap knows no family but these; of one there is none.
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from jumok import api  # noqa: E402
from jumok import recipe as recipes  # noqa: E402
from jumok.data.images.raw import RawImage  # noqa: E402
from jumok.data.rendering.rendered import RenderedWords, Split  # noqa: E402
from jumok.data.rendering.renderer import Renderer  # noqa: E402
from jumok.errors import BadInput  # noqa: E402
from jumok.recipe import Recipe, RecognizerSection  # noqa: E402
from jumok.tasks.text_reader import Read, Way  # noqa: E402
from jumok.text.charset import Charset  # noqa: E402
from jumok.training.run import RunFolder  # noqa: E402
from packed_run import unpack  # noqa: E402
from scene_text_data import wilson  # noqa: E402
from scene_text_train import sum_of  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
RECIPE = "permuted-hangul"
CHOOSING = 200
ROWS = 32  # composed together; more take longer each on a CPU
SEED = 1
PLAIN = [
    "render.texts={words: 0.5, frequent: 0.5, letters: 0, numbers: 0, syllables: 0, empty: 0}",
    *("render.blur=0.15", "render.noise=0.15", "render.clutter=0.02", "render.colour=0.25", "render.outline=0.02"),
    *("render.curve=0.2", "render.perspective=0.2", "render.lettering=0"),
]
# how many times the recipe's size: what the renderer does to pixels is as in training only at 1
DRAWINGS: dict[str, tuple[list[str], int]] = {"plain": (PLAIN, 2), "as in training": ([], 1)}
PAGE_MODES, HEIGHTS, BORDERS = (7, 8, 13), (32, 40, 48, 64, 96), (0, 16)
HELD_OUT = ("held_out_fonts", "held_out_words")
SEVERAL = "several families"  # of a word whose letters no single font has
DRAWS = 10_000


@dataclass(frozen=True)
class Word:
    """A picture file, what it says, and the family of fonts that it is written in."""

    file: Path
    text: str
    family: str


# ---------------------------------------------------------------- what is held out


def check_sums(run: Path, fonts: Sequence[str], words: Sequence[str]) -> None:
    """Refuse a run that was not trained with files of these sums."""
    about = run.with_suffix(".json")
    try:
        told = json.loads(about.read_text(encoding="utf-8"))
        trained = {key: sorted(told[key].values()) for key in ("fonts", "words")}
    except FileNotFoundError:
        raise BadInput(
            f"{run}: no {about.name} beside it, so nobody knows which fonts and words it was trained with; "
            "scene_text_train.py writes that file: bring it along"
        ) from None
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BadInput(f"{about}: no sums of fonts and words in it ({type(error).__name__}: {error})") from None
    for key, here in (("fonts", fonts), ("words", words)):
        if trained[key] != sorted(here):
            raise BadInput(
                f"{run}: trained with other {key} than those of --{key} (sums {_short(trained[key])}, here "
                f"{_short(here)}): what is held out here may be what it has learned from. Judge it with the {key} that "
                "it was trained with, or train it with these"
            )


def check_families(run: Path, tested: Iterable[str]) -> None:
    """Refuse a run that has learned from a family that would be tested with: relatives are told by how FreeType draws
    their letters, and another FreeType may draw the line elsewhere."""
    trained = json.loads(run.with_suffix(".json").read_text(encoding="utf-8")).get("families")
    if not trained:
        raise BadInput(f"{run.with_suffix('.json')}: no families in it, so nobody knows which it has learned from")
    if both := sorted(set(trained) & set(tested)):
        raise BadInput(f"{run}: has learned from {', '.join(both)}, which would be tested with")


def _short(sums: Iterable[str]) -> str:
    return " + ".join(f"{one[:8]}…" for one in sums) or "none"


def check_recipe(run: Path, theirs: Recipe, here: Recipe) -> None:
    """Refuse a run that held out other shares, or had other characters: a font belongs to a side by these, too."""
    for key in HELD_OUT:
        share, own = getattr(theirs.render, key), getattr(here.render, key)
        if share != own:
            raise BadInput(
                f"{run}: trained with render.{key}={share:g}, judged with {own:g}: give render.{key}={share:g}"
            )
    if Charset.of(theirs.charset).characters != Charset.of(here.charset).characters:
        raise BadInput(f"{run}: trained with another charset than that of {RECIPE}, so other fonts were held out")


# ---------------------------------------------------------------- pictures


def natural(picture: Image.Image, aspect: float) -> Image.Image:
    """As wide as what it shows, by its height. Enlarged down or across, so that no row and no column is lost."""
    wide, high = picture.size
    size = (round(high * aspect), high) if aspect * high >= wide else (wide, round(wide / aspect))
    return picture.resize(size, Image.Resampling.LANCZOS)


def drawn(recipe: Recipe, split: Split, count: int, times: int, folder: Path) -> tuple[list[Word], list[str]]:
    """Words of a split as files, and all families that the split has for them. A picture without a word is none:
    nothing is to be read there, and Tesseract says nothing."""
    section = recipe.model
    assert isinstance(section, RecognizerSection)
    words = RenderedWords(recipe.render, Charset.of(recipe.charset), section.max_length, split, print)
    high, wide = section.image
    renderer = Renderer(words.atlas, recipe.render, (high * times, wide * times), section.channels)
    face_of = np.full(len(words.atlas), -1)
    for number, glyphs in enumerate(words.atlas.index):
        face_of[glyphs[glyphs > 0]] = number
    folder.mkdir(parents=True)
    found = []
    for start in range(0, count, ROWS):
        numbers = np.arange(start, min(count, start + ROWS))
        batch = words.batch(numbers, SEED)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED * 1_000_003 + start)
            made = renderer(batch.glyphs)
        rows = zip(numbers.tolist(), made.images, made.aspects.tolist(), batch.glyphs.numpy(), strict=True)
        for number, image, aspect, glyphs in rows:
            text = words.text(number, SEED)
            if not text.strip():
                continue
            pixels = image.permute(1, 2, 0).contiguous().numpy()
            picture = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
            file = folder / f"{number:08d}.png"
            natural(picture, aspect).save(file, compress_level=1)
            families = {words.faces[face].family for face in set(face_of[glyphs[glyphs > 0]].tolist())}
            found.append(Word(file, text, families.pop() if len(families) == 1 else SEVERAL))
    return found, sorted({face.family for face in words.faces})


# ---------------------------------------------------------------- counting


def right(texts: Sequence[str], labels: Sequence[str]) -> int:
    return sum(_flags(texts, labels))


def _flags(texts: Sequence[str], labels: Sequence[str]) -> list[bool]:
    pairs = zip(texts, labels, strict=True)
    return [unicodedata.normalize("NFC", "".join(text.split())) == label for text, label in pairs]


def by_family(flags: Sequence[bool], families: Sequence[str]) -> dict[str, list[int]]:
    """How many words of each family are right, and how many there are."""
    counts: dict[str, list[int]] = {family: [0, 0] for family in sorted(set(families))}
    for flag, family in zip(flags, families, strict=True):
        counts[family][0] += flag
        counts[family][1] += 1
    return counts


def over_families(counts: dict[str, list[int]]) -> tuple[float, float] | None:
    """The 95 % interval of the share that is right, whole families drawn again and again (see above)."""
    if len(counts) < 2:
        return None
    each = np.array(list(counts.values()))
    chosen = np.random.default_rng(0).integers(len(each), size=(DRAWS, len(each)))
    sums = each[chosen].sum(axis=1)
    low, high = np.percentile(sums[:, 0] / sums[:, 1], [2.5, 97.5])
    return float(low), float(high)


def scored(texts: Sequence[str], words: Sequence[Word]) -> dict[str, Any]:
    labels = [word.text for word in words]
    flags = _flags(texts, labels)
    families = by_family(flags, [word.family for word in words])
    spread = over_families(families)
    return {
        "accuracy": round(100 * sum(flags) / len(flags), 2),
        "interval": _percent(wilson(sum(flags), len(flags))),
        "interval_families": None if spread is None else _percent(spread),
        "words": len(flags),
        "different_words": len(set(labels)),
        "families": families,
        "misread": [[label, text] for label, text, flag in zip(labels, texts, flags, strict=True) if not flag][:40],
    }


def _percent(interval: tuple[float, float]) -> list[float]:
    return [round(100 * end, 1) for end in interval]


# ---------------------------------------------------------------- readers


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


def peer(words: Sequence[Word], choosing: Sequence[Word]) -> dict[str, Any]:
    """Tesseract, as it reads the words best that are there to choose by."""
    few, labels = [word.file for word in choosing], [word.text for word in choosing]
    ways = list(itertools.product(PAGE_MODES, HEIGHTS, BORDERS))
    tried = {way: right(tesseract(few, *way), labels) for way in ways}
    best = max(tried, key=lambda way: tried[way])
    began = time.perf_counter()
    texts = tesseract([word.file for word in words], *best)
    seconds = time.perf_counter() - began
    settings = dict(zip(("psm", "height", "border"), best, strict=True))
    chosen_on = {"words": len(few), "right": {" ".join(map(str, way)): count for way, count in tried.items()}}
    about = {"run": "Tesseract kor", "settings": settings, "seconds": round(seconds, 1)}
    return {**about, **scored(texts, words), "chosen_on": chosen_on}


def judged(
    folders: dict[str, Path], words: Sequence[Word], choosing: Sequence[Word], drawing: str
) -> list[dict[str, Any]]:
    """All readers on the same pictures."""
    rows: list[dict[str, Any]] = []

    def tell(row: dict[str, Any]) -> None:
        rows.append(row)
        print(drawing, {key: value for key, value in row.items() if key not in _LONG}, flush=True)
        for family, (good, count) in row["families"].items():
            print(f"    {family:24} {good:5} of {count:5}  {100 * good / count:5.1f} %", flush=True)

    for name, folder in folders.items():
        reader = api.load(folder, device="cpu")
        raw = [RawImage(word.file.name, None, word.file.read_bytes()) for word in words]
        texts = [seen.read.text if isinstance(seen.read, Read) else "" for seen in reader.stream(raw, Way())]
        parameters = sum(parameter.numel() for parameter in reader.model.parameters())
        tell({"run": name, "parameters": parameters, **scored(texts, words)})
    tell(peer(words, choosing))
    return rows


_LONG = ("misread", "families", "chosen_on")


def run(arguments: argparse.Namespace) -> None:
    keys = [one for one in arguments.runs if "=" in one]
    runs = [Path(one) for one in arguments.runs if "=" not in one]
    sums = {name: [sum_of(path) for path in getattr(arguments, name)] for name in ("fonts", "words")}
    for path in runs:
        check_sums(path, **sums)
    for name in ("fonts", "words"):
        keys.append(f"render.{name}={json.dumps([str(path.absolute()) for path in getattr(arguments, name)])}")
    here = recipes.read(RECIPE, keys)
    about: dict[str, Any] = {"keys": keys, "sums": sums, "drawings": {}}
    with tempfile.TemporaryDirectory() as place:
        folders = {path.stem: path if path.is_dir() else unpack(path, Path(place) / path.stem) for path in runs}
        for path in runs:
            check_recipe(path, RunFolder.open(folders[path.stem]).recipe(), here)
        for name, (drawing, times) in DRAWINGS.items():
            described = recipes.read(RECIPE, [*drawing, *keys])
            pictures = Path(place, f"pictures {name}")
            words, families = drawn(described, "test", arguments.count, times, pictures / "test")
            tested = {word.text for word in words}
            choosing, _ = drawn(described, "valid", CHOOSING, times, pictures / "valid")
            choosing = [word for word in choosing if word.text not in tested]  # random syllables, a number
            for path in runs:
                check_families(path, families)
            print(f"{name}: families held out: {', '.join(families)}", flush=True)
            about["drawings"][name] = {
                "keys": drawing,
                "times": times,
                "pictures": len(words),
                "held_out_families": families,
                "readers": judged(folders, words, choosing, name),
            }
    arguments.out.write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(arguments.out)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", help="packed runs or run folders; and keys of the recipe (KEY=VALUE)")
    parser.add_argument("--fonts", type=Path, nargs="+", required=True, help="those of scene_text_train.py")
    parser.add_argument("--words", type=Path, nargs="+", required=True, help="those of scene_text_train.py")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "hangul-text.json")
    arguments = parser.parse_intermixed_args(given)
    torch.set_num_threads(arguments.threads)
    try:
        run(arguments)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
