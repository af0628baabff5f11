"""IIIT5K's 3,000 real word crops, and how the field counts what was read from them.

    crops = read_crops(Path("../shared/data/scene-text"))
    accuracy([reading, …], [crop.label for crop in crops])

The 36-character protocol (Baek et al. 2019): both sides in lower case, all but a–z and 0–9 taken away, then equal or
not. Needs nothing but the standard library, so that a peer's own Python can use it too.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
import unicodedata
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SCENE_TEXT = Path(__file__).resolve().parents[2] / "shared" / "data" / "scene-text"
PICTURES, LABELS = "iiit5k_test.zip", "iiit5k_test.gt.txt"
SAMPLE_SEED = 0  # one fixed sample, so that later figures are of the same crops


@dataclass(frozen=True)
class Crop:
    number: int  # line of the labels file, from 0
    name: str  # inside the archive
    label: str
    encoded: bytes  # the JPEG or PNG file


def read_crops(folder: Path) -> list[Crop]:
    """All crops in the order of the labels file."""
    for name in (PICTURES, LABELS):
        if not (folder / name).is_file():
            raise SystemExit(f"{folder / name} is not there. Name the folder that holds it with --data.")
    crops = []
    with zipfile.ZipFile(folder / PICTURES) as archive:
        for number, line in enumerate((folder / LABELS).read_text(encoding="utf-8").splitlines()):
            name, label = line.split("\t")
            crops.append(Crop(number, name, label, archive.read(name)))
    return crops


def labels_digest(folder: Path) -> str:
    """By which stored readings can be told to belong to these labels."""
    return hashlib.sha256((folder / LABELS).read_bytes()).hexdigest()


def sample(crops: Sequence[Crop], count: int) -> list[Crop]:
    """`count` of the crops, drawn at random but always the same ones."""
    return random.Random(SAMPLE_SEED).sample(list(crops), min(count, len(crops)))


def alphanumeric(text: str) -> str:
    """What the 36-character protocol compares; full-width letters count as the letters that they are."""
    return re.sub("[^a-z0-9]", "", unicodedata.normalize("NFKC", text).lower())


def right(readings: Sequence[str], labels: Sequence[str]) -> int:
    """How many words are right by the 36-character protocol."""
    return sum(alphanumeric(read) == alphanumeric(label) for read, label in zip(readings, labels, strict=True))


def right_as_written(readings: Sequence[str], labels: Sequence[str]) -> int:
    """How many are right to the last character, upper and lower case told apart; spaces do not count."""
    return sum("".join(read.split()) == label for read, label in zip(readings, labels, strict=True))


def accuracy(readings: Sequence[str], labels: Sequence[str]) -> float:
    return right(readings, labels) / len(labels)


def wilson(count_right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a proportion."""
    share = count_right / count
    middle, whole = share + z * z / (2 * count), 1 + z * z / count
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - half) / whole, (middle + half) / whole
