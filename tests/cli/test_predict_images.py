"""`jumok train` and `jumok predict` with images, as a user types them."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

TINY = ["model.image=16", "model.width=32", "model.heads=2", "model.layers=1", "model.feed_forward=32", "threads=1"]
TINY += [
    "training.updates=60",
    "training.batch_images=16",
    "training.validate_every=60",
    "training.learning_rate=0.003",
]
TINY += ["augment.crop=1", "training.warmup=5", "device=cpu"]
COLOURS = {"rot": (200, 40, 40), "grün": (40, 200, 40), "파랑": (40, 40, 200)}


def jumok(*arguments: object, cache: Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "JUMOK_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "jumok", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, input=given, check=False)


def image(colour: str, size: tuple[int, int] = (20, 24)) -> Image.Image:
    pixels = np.clip(COLOURS[colour] + np.random.default_rng().normal(0, 30, (*size, 3)), 0, 255)
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("images")
    for colour in COLOURS:
        (place / "train" / colour).mkdir(parents=True)
        for number in range(20):
            image(colour).save(place / "train" / colour / f"{number}.png")
    (place / "train" / "rot" / "torn.jpg").write_bytes(b"\xff\xd8\xff\xe0 torn")
    told = jumok("train", "vit-demo", "--train", place / "train", "--run", place / "run", *TINY, cache=place / "cache")
    assert told.returncode == 0, told.stderr
    assert "1 image cannot be read and is left out" in told.stdout + told.stderr
    assert "torn.jpg" in told.stdout + told.stderr
    assert "jumok predict --run" in told.stdout
    return place


def test_files_and_folders(place: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    for number, colour in enumerate(COLOURS):
        image(colour, (50, 31)).save(tmp_path / "new" / f"{number}.png")
    told = jumok("predict", "--run", place / "run", tmp_path / "new", cache=place / "cache")
    assert told.returncode == 0, told.stderr
    rows = [line.split("\t") for line in told.stdout.splitlines()]
    assert [row[1] for row in rows] == list(COLOURS)
    assert [Path(row[0]).name for row in rows] == ["0.png", "1.png", "2.png"]
    pattern = jumok("predict", "--run", place / "run", tmp_path / "new" / "[01].png", cache=place / "cache")
    assert pattern.stdout.splitlines() == told.stdout.splitlines()[:2]
    piped = "".join(f"{tmp_path / 'new' / f'{number}.png'}\n" for number in range(3))
    assert jumok("predict", "--run", place / "run", cache=place / "cache", given=piped).stdout == told.stdout


def test_json_and_csv(place: Path, tmp_path: Path) -> None:
    image("rot").save(tmp_path / "a,b.png")
    told = jumok("predict", "--run", place / "run", tmp_path / "a,b.png", "--json", "--best", 2, cache=place / "cache")
    found = json.loads(told.stdout)
    assert found["label"] == "rot"
    assert len(found["probabilities"]) == 2
    told = jumok("predict", "--run", place / "run", tmp_path / "a,b.png", "--csv", "--best", 9, cache=place / "cache")
    head, row = csv.reader(io.StringIO(told.stdout))
    assert head[:3] == ["image", "label_1", "probability_1"]
    assert len(row) == len(head) == 7
    assert row[0].endswith("a,b.png")


def test_what_cannot_be_looked_at(place: Path, tmp_path: Path) -> None:
    image("rot").save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes((tmp_path / "good.png").read_bytes()[:60])
    told = jumok("predict", "--run", place / "run", tmp_path, cache=place / "cache")
    assert told.returncode == 2
    assert "good.png\trot" in told.stdout
    assert "bad.png" in told.stderr
    assert "1 image could not be read" in told.stderr
    for arguments in ([tmp_path / "nowhere.png"], [tmp_path / "good.png", "--question", "?"], ["--csv", "--json", "x"]):
        told = jumok("predict", "--run", place / "run", *arguments, cache=place / "cache")
        assert told.returncode == 2
        assert "Traceback" not in told.stderr
    told = jumok(
        "predict", "--run", place / "run", cache=place / "cache", given=f"{tmp_path}/gone.png\n{tmp_path}/good.png\n"
    )
    assert told.returncode == 2
    assert "gone.png" in told.stderr
    assert "good.png\trot" in told.stdout


def test_an_empty_class(place: Path, tmp_path: Path) -> None:
    (tmp_path / "train" / "full").mkdir(parents=True)
    (tmp_path / "train" / "void").mkdir()
    image("rot").save(tmp_path / "train" / "full" / "1.png")
    told = jumok(
        "train", "vit-demo", "--train", tmp_path / "train", "--run", tmp_path / "run", *TINY, cache=place / "cache"
    )
    assert told.returncode == 2
    assert "void" in told.stderr
    assert "Traceback" not in told.stderr
