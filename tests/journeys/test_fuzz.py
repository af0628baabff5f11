"""Whatever people feed in, the answer is a result or a sentence: never another exception.

A few hundred cases in `make test`, ten thousand in `make test-full`.
"""

from __future__ import annotations

import contextlib
import gzip
import random
import tempfile
from pathlib import Path

import pytest
import yaml

from jumok import recipe as recipes
from jumok.data.pharaoh import parse_pharaoh
from jumok.data.readers import read_pairs
from jumok.errors import JumokError
from jumok.inspect.attention import Attention
from jumok.recipe import Corpus
from jumok.text.tokenizer import Tokenizer, train_tokenizer

SPICE = [
    "",
    "0",
    "-1",
    "1e400",
    ".nan",
    "null",
    "true",
    "[",
    "{}",
    "a: b",
    "\x00",
    "주목",
    "\ud800",
    "é" * 50,
    "=",
    ".",
    "\n",
    "\t",
]
FEW, MANY = 40, 2000


def spoiled(text: str, dice: random.Random) -> str:
    """The text with a few random edits: cut, doubled, swapped, spiced."""
    for _ in range(dice.randint(1, 4)):
        place, length = dice.randrange(len(text) + 1), dice.randint(0, 12)
        middle = dice.choice(["", text[place : place + length] * 2, dice.choice(SPICE), chr(dice.randrange(1, 0xD7FF))])
        text = text[:place] + middle + text[place + length :]
    return text


def fuzz_recipe_files(dice: random.Random, place: Path) -> None:
    file = place / "recipe.yaml"
    text = spoiled(recipes.dump(recipes.read(dice.choice(recipes.names()))), dice)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    recipes.read(str(file))


def fuzz_overrides(dice: random.Random, place: Path) -> None:
    flat = yaml.safe_load(recipes.dump(recipes.read("lstm-luong")))
    section = dice.choice([key for key in flat if isinstance(flat[key], dict)])
    key = f"{section}.{dice.choice(list(flat[section]))}"
    recipes.read("lstm-luong", [spoiled(f"{key}={dice.choice(SPICE)}", dice), f"{key}={dice.choice(SPICE)}"])


def fuzz_corpora(dice: random.Random, place: Path) -> None:
    lines = ["a b\tc d", '{"source": "a", "target": "b"}', "", "x" * 1000]
    raw = spoiled("\n".join(dice.choices(lines, k=6)), dice).encode("utf-8", "surrogatepass")
    if dice.random() < 0.3:
        raw = gzip.compress(raw)[: dice.randint(1, 80)]
    if dice.random() < 0.3:
        raw = bytes(dice.choices(range(256), k=dice.randint(0, 60)))
    ending = dice.choice(["tsv", "jsonl", "txt", "tsv.gz", "jsonl.xz", "txt.zst"])
    file = place / f"corpus.{ending}"
    file.write_bytes(raw)
    sides = {"source": [str(file)], "target": [str(file)]} if "txt" in ending else {"file": [str(file)]}
    list(read_pairs(Corpus.model_validate(sides)))


def fuzz_alignments_and_pictures(dice: random.Random, place: Path) -> None:
    parse_pharaoh(spoiled("0-0 1?2 3-1 10p4", dice), dice.random() < 0.5)
    Attention.from_json(spoiled('{"format": 1, "source": ["a"], "target": ["b"], "weights": [[1.0]]}', dice))


def fuzz_tokenizer_folders(dice: random.Random, place: Path) -> None:
    folder = place / "tokenizer"
    train_tokenizer(["a b c", "나는 학생"], dice.choice(["word", "character"]), 40).save(folder)
    file = dice.choice(sorted(folder.iterdir()))
    file.write_bytes(spoiled(file.read_text(encoding="utf-8"), dice).encode("utf-8", "surrogatepass"))
    Tokenizer.load(folder).encode(["a b", "주목"])


KINDS = [fuzz_recipe_files, fuzz_overrides, fuzz_corpora, fuzz_alignments_and_pictures, fuzz_tokenizer_folders]


def run_cases(kind: object, first: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        for case in range(first, first + count):
            with contextlib.suppress(JumokError):
                try:
                    kind(random.Random(case), Path(place))  # type: ignore[operator]
                except JumokError:
                    raise
                except Exception as error:
                    raise AssertionError(f"case {case} gave {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_few_hundred_cases(kind: object) -> None:
    run_cases(kind, random.SystemRandom().randrange(1 << 30), FEW)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_ten_thousand_cases(kind: object) -> None:
    run_cases(kind, 0, MANY)
