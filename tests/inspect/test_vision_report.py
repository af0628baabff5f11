"""The report after training on images: what went wrong comes first, and images are inside the file."""

from __future__ import annotations

import base64
import html
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from image_files import SMALL, coloured, write_images
from PIL import Image

from jumok.inspect import vision_report
from jumok.inspect.vision_report import validation_images, write_vision_report
from jumok.recipe import Recipe
from jumok.tasks.image_classifier import ImageClassifier
from jumok.tasks.vision import VisionTask
from jumok.training.run import RunFolder

LABELS = ['<b>"x"</b>', "blue & red", "초록"]


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VisionTask:
    """Of three classes, whose names cannot be those of folders everywhere."""
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    write_images(tmp_path, ["train"], 1)
    rows = []
    for number in range(60):
        file = tmp_path / "train" / f"{number}.png"
        Image.fromarray(coloured(number % 3)).save(file)
        rows.append(f"train/{number}.png\t{LABELS[number % 3]}\n")
    (tmp_path / "all.tsv").write_text("path\tlabel\n" + "".join(rows), encoding="utf-8")
    recipe: dict[str, Any] = {
        "task": "vision",
        "data": {
            "train": [{"images": [str(tmp_path / "all.tsv")]}],
            "valid": [{"images": [str(tmp_path / "all.tsv")]}],
        },
        "model": {"kind": "vit", **SMALL},
        "training": {"updates": 4, "batch_images": 8},
    }
    return VisionTask(Recipe.model_validate(recipe), torch.device("cpu"), lambda _: None)


def knowing(task: VisionTask, right: set[int]) -> ImageClassifier:
    """Says the truth of the images with these numbers, and of the others the next class, all with its own sureness."""
    images, gold = task.held[0][0].images, task.held[0][1]
    place = {image.tobytes(): number for number, image in enumerate(images)}

    class Knowing(ImageClassifier):
        def probabilities(self, shown: Any) -> Any:
            rows = []
            for image in shown:
                number = place[image.tobytes()]
                said = gold[number] if number in right else (gold[number] + 1) % 3
                sure = 0.5 + number / 150
                rows.append([sure if label == said else (1 - sure) / 2 for label in range(3)])
            return np.array(rows)

    return Knowing(task.objective.model, task.classes, "crop", torch.device("cpu"))


def shown(content: str) -> list[tuple[np.ndarray, str]]:
    found = re.findall(r'<li><img src="data:image/png;base64,([^"]+)" alt="([^"]*)">', content)
    images = [np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))) for data, _ in found]
    return [(image, html.unescape(alt)) for image, (_, alt) in zip(images, found, strict=True)]


def test_what_went_wrong_comes_first(task: VisionTask) -> None:
    store, gold, _ = task.held[0]
    names = task.classes.names
    content = validation_images(knowing(task, set(range(60)) - {7, 30, 52}), task).content
    assert "3 of 60 validation images went wrong; these come first" in content
    found = shown(content)
    assert len(found) == 24
    for (pixels, alt), number in zip(found, [52, 30, 7, *range(6)], strict=False):
        np.testing.assert_array_equal(pixels.transpose(2, 0, 1), store.images[number])
        name, said = names[gold[number]], names[(gold[number] + 1) % 3]
        assert alt == (f"{name}, taken for {said}" if number in (7, 30, 52) else name)
    assert content.count('<mark class="extra">') == 3
    assert '<b>"x"' not in content
    assert "&lt;b&gt;" in content


def test_many_are_looked_at_evenly(task: VisionTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vision_report, "LOOKED_AT", 7)
    content = validation_images(knowing(task, set(range(60))), task).content
    assert "0 of 7 validation images went wrong." in content
    task.held = [*task.held, (task.held[0][0], task.held[0][1], np.arange(30, 60))]
    images, gold = vision_report._looked_at(task)
    whole = np.concatenate([np.arange(60), np.arange(30, 60)])
    places = whole[np.linspace(0, 89, 7).round().astype(int)]
    np.testing.assert_array_equal(images, task.held[0][0].images[places])
    np.testing.assert_array_equal(gold, task.held[0][1][places])


@pytest.mark.browser
def test_the_whole_report(task: VisionTask, tmp_path: Path, visit: Any) -> None:
    run = RunFolder.create(tmp_path / "run", task.recipe)
    model = ImageClassifier(task.objective.model.eval(), task.classes, "crop", torch.device("cpu"))
    assert write_vision_report(model, task.recipe, run, task) == run.report
    view = visit(run.report)
    images = view.locator("ul.images img")
    assert images.count() == 24
    assert images.first.evaluate("one => one.decode().then(() => one.naturalWidth)") == 8
    assert view.locator("h2").all_inner_texts() == ["Validation images", "Recipe"]
