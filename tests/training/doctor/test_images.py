"""What the doctor says of images: rare and uneven classes, copies, the same image in two classes, how many fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forked import fork_instead
from PIL import Image

from jumok import recipe as recipes
from jumok.tasks.vision import VisionTask
from jumok.training.doctor import session
from jumok.training.doctor.examine import examine
from jumok.training.doctor.findings import Report
from jumok.training.doctor.images import check_images

TINY = {"kind": "vit", "image": 8, "patch": 4, "width": 16, "heads": 2, "layers": 1, "feed_forward": 16}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))


def images(folder: Path, counts: dict[str, int]) -> Path:
    generator = np.random.default_rng()
    for name, count in counts.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            Image.fromarray(generator.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / name / f"{number}.png")
    return folder


def recipe_of(train: Path, valid: Path | None = None) -> recipes.Recipe:
    data: dict[str, Any] = {"train": {"images": [str(train)]}}
    if valid is not None:
        data["valid"] = {"images": [str(valid)]}
    training = {"batch_images": 16, "updates": 10, "warmup": 0}
    raw = {"task": "vision", "device": "cpu", "threads": 1, "data": data, "model": TINY, "training": training}
    return recipes.check(raw, "x")


def findings(recipe: recipes.Recipe) -> dict[str, str]:
    report = Report()
    check_images(VisionTask(recipe, torch.device("cpu"), lambda text: None), report)
    return {finding.what: finding.where for finding in report.findings}


def test_nothing_is_wrong(tmp_path: Path) -> None:
    assert (
        findings(recipe_of(images(tmp_path / "a", {"x": 20, "y": 30}), images(tmp_path / "b", {"x": 3, "y": 3}))) == {}
    )


def test_classes(tmp_path: Path) -> None:
    found = findings(recipe_of(images(tmp_path / "a", {"x": 100, "y": 6})))
    assert found["1 class of fewer than 10 images"] == "y (6)"
    assert "the classes are uneven: 100 images of x, 6 of y" in found


def test_copies(tmp_path: Path) -> None:
    train, valid = images(tmp_path / "a", {"x": 12, "y": 12}), images(tmp_path / "b", {"x": 2, "y": 2})
    (valid / "x" / "copy.png").write_bytes((train / "x" / "5.png").read_bytes())
    (train / "y" / "torn.png").write_bytes((train / "x" / "7.png").read_bytes())
    (train / "x" / "broken.png").write_bytes(b"no image")
    found = findings(recipe_of(train, valid))
    (where,) = [where for what, where in found.items() if "1 of 5 validation images are among" in what]
    assert "copy.png is" in where
    assert "5.png" in where
    (where,) = [where for what, where in found.items() if "1 image is there with two classes" in what]
    assert "torn.png" in where
    assert any("broken.png" in what for what in found)


def test_two_corpora_with_classes_in_another_order(tmp_path: Path) -> None:
    first, second = images(tmp_path / "a", {"x": 12, "y": 12}), images(tmp_path / "b", {"y": 12})
    for file in (first / "x").iterdir():
        (second / "y" / f"x{file.name}").write_bytes(file.read_bytes())
    recipe = recipe_of(first)
    corpora = [*recipe.data.train, recipe.data.train[0].model_copy(update={"images": [str(second)]})]
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"train": corpora})})
    (where,) = [where for what, where in findings(recipe).items() if "there with two classes" in what]
    assert "/x/" in where
    assert "/y/" in where


def test_a_whole_examination(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.training.doctor.examine.TIMED", 0.1)
    fork_instead(monkeypatch, session)
    report = examine(recipe_of(images(tmp_path / "a", {"x": 30, "y": 30})), tmp_path / "run", patience=3.0)
    assert not report.would_fail
    assert report.facts["memory"]["key"] == "training.batch_images"
    assert report.facts["memory"]["fits"]
    assert report.facts["time"]["counted"] == "images"
