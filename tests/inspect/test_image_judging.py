"""A test set of images against a model: every image counts once, what cannot be judged is named."""

from __future__ import annotations

import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from image_files import SMALL, classifier_of, write_images
from PIL import Image

from jumok.data.images.sources import open_images
from jumok.errors import BadInput, Failure
from jumok.inspect import image_judging
from jumok.inspect.image_judging import judge_images
from jumok.inspect.judging import judge
from jumok.recipe import Corpus, Recipe
from jumok.tasks.image_classifier import ImageClassifier

LABELS = ["blue", "green", "red"]


def a_run(model: ImageClassifier, path: Path) -> Any:
    """As if it had been loaded from its folder."""
    data = {"train": [{"drawn": "shapes"}]}
    model.recipe = Recipe.model_validate({"task": "vision", "data": data, "model": {"kind": "vit", **SMALL}})  # type: ignore[attr-defined]
    model.run = SimpleNamespace(path=path)  # type: ignore[attr-defined]
    return model


def test_the_scores_are_those_of_the_images_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier_of(LABELS)
    folder = write_images(tmp_path / "images", LABELS, 9, (12, 10))
    monkeypatch.setattr(image_judging, "ROWS", 4)
    found = judge_images(model, open_images([folder]), 5, 20)
    files = sorted(folder.glob("*/*.png"))
    assert [Path(name) for name in found.names] == files
    said = model.predict(files)
    assert list(found.gold) == [file.parent.name for file in files]
    right = [one.label == gold for one, gold in zip(said, found.gold, strict=True)]
    assert found.scores.accuracy.score == pytest.approx(sum(right) / 27)
    expected = [list(one.probabilities.values()) for one in said]
    np.testing.assert_allclose(found.probabilities, expected, atol=1e-6)
    assert found.mistakes.count == 27 - sum(right) > 0
    for mistake in found.mistakes.of_each():
        place = mistake.number - 1
        assert (mistake.name, mistake.gold) == (found.names[place], found.gold[place])
        assert mistake.said == said[place].label != mistake.gold
        assert mistake.probability == pytest.approx(said[place].probability)
        assert mistake.loss == pytest.approx(-np.log(said[place].probabilities[mistake.gold]))
        pixels = model.pixels([files[place]])[0].transpose(1, 2, 0)
        np.testing.assert_array_equal(mistake.pixels, pixels)


def test_grey_images_in_an_archive(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "images", LABELS, 4)
    with tarfile.open(tmp_path / "images.tar.gz", "w:gz") as archive:
        for file in sorted(folder.glob("*/*.png")):
            archive.add(file, file.relative_to(folder))
    model = classifier_of(LABELS, channels=1)
    one, other = (judge_images(model, open_images([path]), 3) for path in (folder, tmp_path / "images.tar.gz"))
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert all(mistake.pixels.shape == (8, 8, 1) for mistake in one.mistakes.worst())


def test_what_cannot_be_read_is_left_out_by_name(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "images", LABELS, 3)
    whole = (folder / "red" / "001.png").read_bytes()
    (folder / "red" / "001.png").write_bytes(whole[: len(whole) // 2])
    (folder / "blue" / "zz.jpg").write_bytes(b"<html>")
    found = judge(a_run(classifier_of(LABELS), tmp_path / "run"), [folder], page=tmp_path / "x.html")
    assert (found.examples, found.left_out, found.scores.count) == (8, 2, 8)
    assert "2 images cannot be read and are left out" in found.notes[0]
    for name in ("red/001.png", "blue/zz.jpg"):
        assert name in found.notes[0]
        assert name in (tmp_path / "x.html").read_text(encoding="utf-8")
    for number in range(7):
        (folder / "green" / f"broken-{number}.png").write_bytes(b"nothing")
    found = judge(a_run(classifier_of(LABELS), tmp_path / "run"), [folder])
    assert found.notes[0].startswith("9 images")
    assert found.notes[0].endswith("; and 4 more")
    for file in folder.glob("*/*.*"):
        file.write_bytes(b"nothing")
    with pytest.raises(BadInput, match=r"no images to judge, and the first of \d+ that cannot be read is: .*blue/000"):
        judge(a_run(classifier_of(LABELS), tmp_path / "run"), [folder])


def test_classes_are_checked_before_anything_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = a_run(classifier_of(LABELS), tmp_path / "run")

    def never(source: object) -> None:
        raise AssertionError("the long work has begun")

    monkeypatch.setattr(model, "prepared", never)
    folder = write_images(tmp_path / "images", [*LABELS, "reed"], 2)
    with pytest.raises(BadInput, match=r'reed/000.png: the label "reed" was never seen.* Did you mean "red"'):
        judge(model, [folder])
    bare = tmp_path / "bare"
    bare.mkdir()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(bare / "one.png")
    with pytest.raises(BadInput, match=r"one.png: it is not said of which class"):
        judge(model, [bare])
    with pytest.raises(BadInput, match="nowhere"):
        judge(model, [tmp_path / "nowhere"])
    with pytest.raises(BadInput, match="no images were given"):
        judge(model)


def test_pictures_are_written_on_the_way(tmp_path: Path) -> None:
    model = a_run(classifier_of(LABELS), tmp_path / "run")
    folder = write_images(tmp_path / "images", LABELS, 5)
    page, sheet, confusion = (tmp_path / name for name in ("x.html", "sheet.png", "matrix.svg"))
    found = judge(model, [str(folder)], page=page, sheet=sheet, confusion=confusion)
    assert found.examples == 15
    assert "run: images" in page.read_text(encoding="utf-8")
    assert Image.open(sheet).format == "PNG"
    assert b"<svg" in confusion.read_bytes()


def test_drawn_images(tmp_path: Path) -> None:
    from jumok.data.images.drawn import CLASSES

    model = a_run(classifier_of(sorted(CLASSES)), tmp_path / "run")
    found = judge(model, grammar=Corpus(drawn="shapes", pairs=40), page=tmp_path / "x.html")
    assert found.examples == 40
    assert "run: drawn images" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_pictures_that_cannot_be_drawn_are_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = a_run(classifier_of(LABELS), tmp_path / "run")
    for keys, said in (
        ({"sheet": tmp_path / "x.svg"}, r"--sheet .*x.svg.*not \.png"),
        ({"confusion": tmp_path / "x.jpg"}, r"--confusion .*x.jpg.*none of \.png, \.svg"),
        ({"sheet": tmp_path / "no" / "x.png"}, r"--sheet .*there is no folder"),
    ):
        with pytest.raises(BadInput, match=said):
            judge(model, [tmp_path / "nowhere"], **keys)
    strange = a_run(classifier_of(["one", "two \U0001f9ff\U0001fa77 \U0001345a"]), tmp_path / "run")
    with pytest.raises(Failure, match="no installed font can draw"):
        judge(strange, [tmp_path / "nowhere"], sheet=tmp_path / "x.png")


def test_a_model_whose_weights_are_no_numbers(tmp_path: Path) -> None:
    model = a_run(classifier_of(LABELS), tmp_path / "run")
    model.model.scores.bias.data[1] = float("nan")
    with pytest.raises(Failure, match=r"scores\.bias"):
        judge(model, [write_images(tmp_path / "images", LABELS, 1)])


def test_bytes_of_images_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_images(tmp_path / "images", LABELS, 6)
    monkeypatch.setattr(image_judging, "ROWS", 5)
    batches = list(image_judging._batches(classifier_of(LABELS), open_images([folder]), []))
    assert [len(images) for images, _ in batches] == [5, 5, 5, 3]
    assert all(image.data == b"" for images, _ in batches for image in images)
