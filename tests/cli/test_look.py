"""`jumok look` on a small run: maps, pages and what the weights show are written; what cannot be, is refused."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torch import Tensor

from jumok import api
from jumok import recipe as recipes
from jumok.cli.look import _evenly
from jumok.cli.main import run
from jumok.data.images.raw import RawImage
from jumok.inspect import vision_files, vision_picture
from jumok.tasks.image_classifier import ImageClassifier

MODEL = {"kind": "vit", "image": [8, 12], "patch": [4, 2], "width": 16, "heads": 2, "layers": 2, "feed_forward": 16}
COLOURS = {"red": (200, 40, 40), "초록": (40, 200, 40), "blue": (40, 40, 200)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("look")
    chance = np.random.default_rng()
    for name, colour in COLOURS.items():
        (place / "images" / name).mkdir(parents=True)
        for number in range(4):
            pixels = np.clip(colour + chance.normal(0, 40, (14, 20, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(place / "images" / name / f"{number}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUMOK_CACHE", str(place / "cache"))
        for run_name, keys in (("run", {}), ("lost", {"position": "none", "pooling": "mean"})):
            training = {"batch_images": 6, "updates": 2, "warmup": 1, "metric": "accuracy"}
            raw: dict[str, Any] = {
                "task": "vision", "threads": 1, "device": "cpu", "data": {"train": {"images": [str(place / "images")]}},
                "model": {**MODEL, **keys}, "training": training,
            }  # fmt: skip
            api.train(recipes.check(raw, "test"), place / run_name, quiet=True, report=False)
    (place / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    return place


def look(folder: Path, *words: str, name: str = "run") -> int:
    places = {"ONE": "images/red/0.png", "OTHER": "images/초록/1.png", "FOLDER": "images", "BROKEN": "broken.png"}
    given = [str(folder / places[word]) if word in places else word.replace("OUT/", f"{folder}/") for word in words]
    return run(["look", "--run", str(folder / name), "--device", "cpu", *given])


@pytest.mark.parametrize(
    "words",
    [
        ("ONE", "--out", "OUT/all.png"),
        ("ONE", "OTHER", "--layer", "0", "--head", "1", "--from", "1,3", "--out", "OUT/one.svg"),
        ("ONE", "--kind", "rollout", "--from", "5", "--dark", "--out", "OUT/rollout.png"),
        ("ONE", "OTHER", "--kind", "gradient", "--label", "초록", "--out", "OUT/gradient.png"),
        ("--what", "filters", "--out", "OUT/filters.png"),
        ("--what", "filters", "--images", "FOLDER", "--out", "OUT/both.png"),
        ("--what", "positions", "--out", "OUT/positions.svg"),
        ("--what", "distance", "--images", "FOLDER", "--out", "OUT/distance.png"),
    ],
)
def test_pictures_are_written(folder: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert look(folder, *words) == 0, capsys.readouterr().err
    out = folder / words[-1].removeprefix("OUT/")
    assert str(out) in capsys.readouterr().out
    if out.suffix == ".svg":
        assert ElementTree.fromstring(out.read_text(encoding="utf-8")).tag.endswith("svg")
    else:
        with Image.open(out) as picture:
            picture.load()


def test_the_numbers_of_maps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert look(folder, "ONE", "OTHER", "--from", "class", "--out", "OUT/maps.json") == 0
    told = json.loads((folder / "maps.json").read_text(encoding="utf-8"))
    assert told["about"] == "attention of layer 1, from the class token"
    assert [Path(one["name"]).name for one in told["images"]] == ["0.png", "1.png"]
    for one in told["images"]:
        assert one["label"] in COLOURS
        assert [each["name"] for each in one["maps"]] == ["mean of heads", "head 0", "head 1"]
        for each in one["maps"]:
            assert np.shape(each["values"]) == (2, 6)
            assert np.sum(each["values"]) + each["elsewhere"] == pytest.approx(1.0, abs=1e-4)
    said = capsys.readouterr().out
    assert "0.png: " in said
    assert "%" in said


def test_the_page(folder: Path) -> None:
    assert look(folder, "ONE", "--layer", "0", "--from", "7", "--label", "blue", "--out", "OUT/page.html") == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert '"first":[0,-1,7]' in text
    assert "초록" in text
    assert "https:" not in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--what", "filters"), ["component", "of the variance"]),
        (("--what", "filters", "--images", "FOLDER", "--most", "6"), ["a small CNN after"]),
        (("--what", "positions"), ["Positions are learned", "in a row"]),
        (("--what", "distance", "--images", "FOLDER"), ["on 12 images of 8×12 pixels", "nearest head"]),
    ],
)
def test_a_page_of_what_the_model_is_like(folder: Path, words: tuple[str, ...], told: list[str]) -> None:
    assert look(folder, *words, "--out", "OUT/what.html") == 0
    text = (folder / "what.html").read_text(encoding="utf-8")
    for part in ("<h1>run: ", "data:image/svg+xml", '<table class="numbers">', *told):
        assert part in text
    assert not re.search(r"(src|href|srcset)=\"(?!data:)", text)  # nothing is fetched


def test_distances_as_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert look(folder, "--what", "distance", "--images", "FOLDER", "--most", "5") == 0
    assert "4 heads look: mean attention distance over 5 images of 8×12 pixels" in capsys.readouterr().out
    assert look(folder, "ONE", "OTHER", "--what", "distance", "--json", "--out", "OUT/distance.json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((folder / "distance.json").read_text(encoding="utf-8"))
    assert told["images"] == 2
    assert len(told["layers"]) == 2
    assert look(folder, "--what", "filters", "--out", "OUT/filters.json") == 0
    assert look(folder, "--what", "positions", "--out", "OUT/positions.json") == 0
    assert np.shape(json.loads((folder / "positions.json").read_text())["cosine"]) == (12, 12)


def test_filters_of_a_small_cnn_beside_the_models(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = []
    for most in ("12", "12", "6"):
        words = ("--what", "filters", "--images", "FOLDER", "--most", most, "--out", "OUT/filters.json")
        assert look(folder, *words) == 0
        assert f"learns {most} images of 3 classes" in capsys.readouterr().err
        written.append(json.loads((folder / "filters.json").read_text(encoding="utf-8")))
    model, network = written[0]["groups"]
    assert np.shape(model["filters"])[1:] == (3, 4, 2)
    assert np.shape(network["filters"]) == (28, 3, 3, 3)  # as large as the shorter side of a patch, and odd
    assert "small CNN" in network["name"]
    assert written[0] == written[1]
    assert written[0]["groups"][1] != written[2]["groups"][1]  # it has learned from them


def test_what_cannot_be_read_is_left_out_of_a_measure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert look(folder, "ONE", "BROKEN", "--what", "distance") == 0
    captured = capsys.readouterr()
    assert "over 1 image of" in captured.out
    assert "broken.png" in captured.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ONE", "--layer", "2", "--out", "OUT/x.png"], "layers 0 to 1"),
        (["ONE", "--head", "2", "--out", "OUT/x.png"], "heads 0 to 1"),
        (["ONE", "--from", "12", "--out", "OUT/x.png"], "2 rows of 6 patches"),
        (["ONE", "--from", "left", "--out", "OUT/x.png"], '"left" is no patch'),
        (["ONE", "--kind", "rolout", "--out", "OUT/x.png"], 'Did you mean "rollout"'),
        (["ONE", "--kind", "rollout", "--layer", "0", "--out", "OUT/x.png"], "all layers"),
        (["ONE", "--kind", "gradient", "--from", "3", "--out", "OUT/x.png"], "the whole image"),
        (["ONE", "--kind", "gradient", "--label", "bleu", "--out", "OUT/x.png"], 'Did you mean "blue"'),
        (["ONE", "--label", "blue", "--out", "OUT/x.png"], "--kind gradient"),
        (["ONE", "--kind", "gradient", "--out", "OUT/x.html"], "shows all kinds"),
        (["ONE", "OTHER", "--out", "OUT/x.html"], "a page is about one image"),
        (["ONE", "--out", "OUT/x.gif"], "none of .png"),
        (["ONE", "--out", "OUT/missing/x.png"], "no folder"),
        (["ONE", "--dark", "--out", "OUT/x.html"], "--dark"),
        (["ONE"], "--out look.png"),
        (["--out", "OUT/x.png"], "name an image"),
        (["BROKEN", "--out", "OUT/x.png"], "broken.png"),
        (["nowhere.png", "--out", "OUT/x.png"], "nowhere.png"),
        (["ONE", "--json", "--out", "OUT/x.png"], "--what distance"),
        (["--what", "filter", "--out", "OUT/x.png"], 'Did you mean "filters"'),
        (["--what", "filters"], "--out filters.png"),
        (["--what", "filters", "--images", "ONE", "--out", "OUT/x.png"], "not told what these images show"),
        (["--what", "filters", "--images", "BROKEN", "--out", "OUT/x.png"], "no image in it that can be read"),
        (["--what", "filters", "--images", "OUT/images/red", "--out", "OUT/x.png"], "not told what these images show"),
        (["--what", "positions", "--images", "FOLDER", "--out", "OUT/x.png"], "about the model alone"),
        (["--what", "filters", "--out", "OUT/x.gif"], "none of .png"),
        (["--what", "filters", "--dark", "--out", "OUT/x.html"], "--dark is for pictures"),
        (["ONE", "--what", "positions", "--out", "OUT/x.png"], "the model alone"),
        (["--what", "distance"], "--images"),
        (["--what", "distance", "--layer", "1", "--images", "FOLDER"], "--what is not"),
    ],
)
def test_what_is_refused(folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert look(folder, *words) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "x.png").exists()


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ("ONE OTHER", "all.png"),
        ("ONE --layer 0 --head 1 --from 1,3", "one.json"),
        ("ONE --kind rollout --dark", "rollout.svg"),
        ("--what filters", "filters.png"),
        ("--what positions", "positions.json"),
        ("ONE OTHER --what distance", "distance.json"),
    ],
)
def test_where_a_reader_of_words_looks(
    words: str, out: str, folder: Path, words_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert look(folder, *words.split(), "--out", str(tmp_path / out), name=str(words_run)) == 0, capsys.readouterr().err
    assert str(tmp_path / out) in capsys.readouterr().out
    if out == "one.json":
        (told,) = json.loads((tmp_path / out).read_text(encoding="utf-8"))["images"]
        assert set(told) == {"name", "text", "confidence", "maps"}
        assert np.shape(told["maps"][0]["values"]) == (2, 12)
        assert np.sum(told["maps"][0]["values"]) == pytest.approx(1.0, abs=1e-4)


def test_what_a_reader_of_words_cannot_show(
    folder: Path, words_run: Path, columns_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run_name, words, said in (
        (words_run, ["ONE", "--out", "OUT/x.html"], "a page is about labels"),
        (words_run, ["ONE", "--kind", "gradient", "--out", "OUT/x.png"], "no labels"),
        (words_run, ["ONE", "--from", "24", "--out", "OUT/x.png"], "2 rows of 12 patches"),
        (words_run, ["BROKEN", "--out", "OUT/x.png"], "broken.png"),
        (columns_run, ["ONE", "--out", "OUT/x.png"], "which have no attention"),
        (columns_run, ["--what", "positions", "--out", "OUT/x.png"], "jumok attend"),
    ):
        assert look(folder, *words, name=str(run_name)) == 2
        assert said in capsys.readouterr().err
    assert not (folder / "x.png").exists()


def test_a_model_without_positions_and_one_without_images(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert look(folder, "--what", "positions", "--out", "OUT/x.png", name="lost") == 2
    assert "has no positions" in capsys.readouterr().err
    assert look(folder, "ONE", "--out", "OUT/lost.html", name="lost") == 0
    assert "mean of all patches" in (folder / "lost.html").read_text(encoding="utf-8")
    assert look(folder, "--what", "filters", "--out", "OUT/x.png", name="nowhere") == 2


@pytest.mark.parametrize(
    "words",
    [
        ["attend", "ONE"],
        ["attend", "ONE", "ONE"],
        ["attend", "ONE", "--json"],
        ["translate", "ONE"],
        ["generate"],
        ["forecast"],
        ["embed", "ONE"],
    ],
)
def test_commands_for_other_runs_say_which_are_for_images(
    words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, place = str(folder / "images" / "red" / "0.png"), str(folder / "run")
    name, *rest = [image if word == "ONE" else word for word in words]
    assert run([name, "--run", place, *rest]) == 2
    assert f"vision. For that there is: jumok predict --run {place} or jumok look --run {place}" in (
        capsys.readouterr().err
    )


def test_a_run_that_lost_what_it_had(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = shutil.copytree(folder / "run", tmp_path / "run")
    shutil.rmtree(place / "checkpoints")
    assert look(folder, "--what", "positions", "--out", "OUT/x.png", name=str(place)) == 2
    said = capsys.readouterr().err
    assert f"{place}: the checkpoints that it had are gone" in said
    assert "--resume" not in said
    (place / "recipe.yaml").write_text("task: vision\nmodel: a: b\n", encoding="utf-8")
    assert look(folder, "--what", "positions", "--out", "OUT/x.png", name=str(place)) == 2
    said = capsys.readouterr().err
    assert f"{place / 'recipe.yaml'}, line 2, column 9: not valid YAML: mapping values are not allowed here\n" in said
    assert run(["describe", str(tmp_path / "nope")]) == 2
    said = capsys.readouterr().err
    assert f"there is no run folder {tmp_path / 'nope'}, and no recipe in a file of that name" in said
    assert "vit-demo" not in said


@pytest.mark.parametrize("out", ["x.png", "x.json"])
def test_too_many_images_are_refused_before_the_work(
    folder: Path, out: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vision_files.MOST_IMAGES == vision_picture.MOST_IMAGES
    made: list[int] = []
    predictions = vision_files.predictions

    def counted(model: Any, images_BCHW: Tensor) -> Any:
        made.append(len(images_BCHW))
        return predictions(model, images_BCHW)

    monkeypatch.setattr(vision_files, "predictions", counted)
    words = ["--kind", "rollout", "--out", f"OUT/{out}"]
    assert look(folder, *["ONE"] * 41, *words) == 2
    said = capsys.readouterr().err
    assert "more than 40 images are too many for one picture" in said
    assert "--most 40" in said
    assert not made
    assert not (folder / out).exists()
    assert look(folder, *["ONE"] * 40, "--kind", "rollout", "--out", "OUT/forty.json") == 0
    assert made == [40]
    assert len(json.loads((folder / "forty.json").read_text(encoding="utf-8"))["images"]) == 40
    assert look(folder, *["ONE"] * 41, "--out", "OUT/x.html") == 2
    assert "more than 40 are given" in capsys.readouterr().err


def test_some_images_are_chosen_of_many(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert look(folder, "FOLDER", "--most", "3", "--out", "OUT/three.json") == 0, capsys.readouterr().err
    told = json.loads((folder / "three.json").read_text(encoding="utf-8"))["images"]
    assert {Path(one["name"]).parent.name for one in told} == set(COLOURS)


def test_the_share_of_the_label_that_was_asked_for(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    draw_maps = vision_picture.draw_maps

    def noted(shown: Any, *arguments: Any, **named: Any) -> bytes:
        drawn[:] = [each.name for one in shown for each in one.maps]
        return draw_maps(shown, *arguments, **named)

    monkeypatch.setattr(vision_picture, "draw_maps", noted)
    assert look(folder, "ONE", "--out", "OUT/what.json") == 0
    said = json.loads((folder / "what.json").read_text(encoding="utf-8"))["images"][0]
    other = next(name for name in COLOURS if name != said["label"])
    capsys.readouterr()
    for words, label in (([], said["label"]), (["--label", other], other)):
        assert look(folder, "ONE", "--kind", "gradient", *words, "--out", "OUT/share.svg") == 0
        told = capsys.readouterr().out
        shares = dict(re.findall(r"(\S+) (\d+ %)", told))
        assert set(shares) == {said["label"], label}
        assert drawn == [f"for {label} ({shares[label]})"]


@pytest.mark.parametrize("packed", [False, True])
def test_distances_are_measured_on_all_classes(
    folder: Path, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = folder / "images"
    if packed:
        source = Path(shutil.make_archive(str(tmp_path / "images"), "tar", source))
    seen: list[list[str]] = []
    prepared = ImageClassifier.prepared

    def noted(self: ImageClassifier, images: Iterable[RawImage]) -> Any:
        chosen = list(images)
        seen.append([image.name for image in chosen])
        return prepared(self, chosen)

    monkeypatch.setattr(ImageClassifier, "prepared", noted)
    for _ in range(2):
        assert look(folder, "--what", "distance", "--images", str(source), "--most", "3") == 0
    assert seen[0] == seen[1], "the same ones each time"
    assert sorted(Path(name).parent.name for name in seen[0]) == sorted(COLOURS)
    assert look(folder, "--what", "distance", "--images", str(source), "--most", "99") == 0
    assert len(set(seen[2])) == 12


def test_images_in_a_table_count_among_the_others(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "some.csv"
    rows = [f"{folder / 'images' / name / '0.png'},{name}" for name in COLOURS]
    table.write_text("\n".join(["path,label", *rows]), encoding="utf-8")
    for most, count in (("14", 14), ("99", 16)):
        assert look(folder, "ONE", str(table), "--images", "FOLDER", "--what", "distance", "--most", most) == 0
        assert f"over {count} images" in capsys.readouterr().out


def test_evenly_is_one_of_each_part_and_not_every_tenth() -> None:
    count, most = int(np.random.default_rng().integers(1_000, 50_000)), 100
    numbers = _evenly(count, most)
    assert [number * most // count for number in numbers] == pytest.approx(list(range(most)), abs=1)
    assert len(set(numbers)) == most
    assert _evenly(7, 9) == list(range(7))
    assert {number % 10 for number in _evenly(10_000, 100)} == set(range(10))
