"""`jumok train` and `jumok predict` with images, as a user types them."""

from __future__ import annotations

import builtins
import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import journey
import numpy as np
import pytest
from PIL import Image

from jumok.cli.main import run

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
    return journey.jumok(*arguments, input=given, JUMOK_CACHE=str(cache), OMP_NUM_THREADS="1")


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


def test_of_an_animation_the_first_picture_counts_and_that_is_told(place: Path, tmp_path: Path) -> None:
    noise = np.random.default_rng(4).integers(0, 255, (2, 24, 24, 3), dtype=np.uint8)
    first, second = (Image.fromarray(frame) for frame in noise)
    first.save(tmp_path / "moves.gif", save_all=True, append_images=[second])
    result = jumok("predict", "--run", place / "run", tmp_path / "moves.gif", cache=place / "cache")
    assert result.returncode == 0, result.stderr
    assert "moves.gif has more pictures than one: its first was looked at" in result.stderr


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
    assert "1 input could not be read" in told.stderr
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


def test_what_can_be_read_is_told_beside_what_cannot(place: Path, tmp_path: Path) -> None:
    for number, colour in enumerate(COLOURS):
        (tmp_path / "new" / colour).mkdir(parents=True)
        image(colour).save(tmp_path / "new" / colour / f"{number}.png")
        image(colour).save(tmp_path / f"{colour}.png")
    inputs = [tmp_path / "rot.png", tmp_path / "gone.png", tmp_path / "no*.png", tmp_path / "grün.png"]
    told = jumok("predict", "--run", place / "run", *inputs, cache=place / "cache")
    assert told.returncode == 2
    assert [line.split("\t")[1] for line in told.stdout.splitlines()] == ["rot", "grün"]
    assert "gone.png: no such file" in told.stderr
    assert "no*.png: no file matches" in told.stderr
    assert "2 inputs could not be read" in told.stderr
    (tmp_path / "new" / "grün" / "dead.png").symlink_to(tmp_path / "nowhere.png")
    told = jumok("predict", "--run", place / "run", tmp_path / "new", tmp_path / "rot.png", cache=place / "cache")
    assert told.returncode == 2
    assert [line.split("\t")[1] for line in told.stdout.splitlines()] == [*sorted(COLOURS), "rot"]
    assert told.stderr.count("dead.png") == 1
    assert "1 input could not be read" in told.stderr


def test_a_file_that_cannot_be_read_within_a_folder(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file without permission; said by hand, since an administrator has permission for all."""
    for name in ("1\t.png", "2.png", "3.png", "deep/4.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        image("rot").save(tmp_path / name)
    opened = builtins.open

    def guarded(file: Any, *arguments: Any, **named: Any) -> Any:
        if str(file).endswith("2.png"):
            raise PermissionError(13, "Permission denied", str(file))
        return opened(file, *arguments, **named)

    monkeypatch.setattr(builtins, "open", guarded)
    assert run(["predict", "--run", str(place / "run"), "--device", "cpu", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    names = [line.split("\t")[0] for line in captured.out.splitlines()]
    assert names == [str(tmp_path / name) for name in ("1\\t.png", "3.png", "deep/4.png")]
    assert captured.err.count("2.png: no permission") == 1


def test_folders_are_no_classes_here(place: Path, tmp_path: Path) -> None:
    """What training would refuse: an empty folder, both parts of a data set."""
    for name in ("train", "test"):
        (tmp_path / name / "rot").mkdir(parents=True)
        image("rot").save(tmp_path / name / "rot" / "1.png")
    (tmp_path / "none").mkdir()
    told = jumok("predict", "--run", place / "run", tmp_path, cache=place / "cache")
    assert (told.returncode, told.stderr) == (0, "")
    assert [line.split("\t")[0] for line in told.stdout.splitlines()] == [
        str(tmp_path / name / "rot" / "1.png") for name in ("test", "train")
    ]


def test_a_pattern_through_all_folders_tells_each_image_once(place: Path, tmp_path: Path) -> None:
    for number, colour in enumerate(COLOURS):
        (tmp_path / "new" / colour / "deep").mkdir(parents=True)
        image(colour).save(tmp_path / "new" / colour / "deep" / f"{number}.png")
        image(colour).save(tmp_path / "new" / colour / f"{number}.png")
    told = jumok("predict", "--run", place / "run", tmp_path / "new" / "**", cache=place / "cache")
    assert told.returncode == 0, told.stderr
    names = [line.split("\t")[0] for line in told.stdout.splitlines()]
    assert len(names) == len(set(names)) == 6
