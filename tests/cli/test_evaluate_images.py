"""`jumok evaluate` of a run that looks at images: scores, pictures, pages; what is wrong is named before the work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from asked import Ask, Asked, refused
from image_files import write_images
from PIL import Image

from jumok.cli.main import run as command

LABELS = ["black", "blue", "green", "초록"]
KEYS = [
    "model.image=8", "model.patch=4", "model.width=16", "model.heads=2", "model.layers=1", "model.feed_forward=24",
    "training.updates=12", "training.batch_images=16", "training.warmup=2", "training.validate_every=6",
    "training.checkpoint_every=6", "training.learning_rate=0.003", "threads=1", "device=cpu", "augment={}",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("images")


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    write_images(folder / "train", LABELS, 20)
    write_images(folder / "test", LABELS, 10)
    place = folder / "run"
    assert command(["train", "vit-tiny", *KEYS, "--train", str(folder / "train"), "--run", str(place)]) == 0
    return place


def test_scores_pictures_and_page(run: Path, folder: Path, ask: Ask, tmp_path: Path) -> None:
    page, sheet, matrix = tmp_path / "page.html", tmp_path / "mistakes.png", tmp_path / "matrix.svg"
    code, out, err = ask(
        "evaluate", "--run", run, "--data", folder / "test", "--report", page, "--sheet", sheet, "--confusion", matrix
    )
    assert code == 0, err
    assert "40 examples, 4 labels" in out
    for word in (
        "accuracy",
        "macro F1",
        "95 % interval",
        "calibration error",
        "초록",
        *map(str, (page, sheet, matrix)),
    ):
        assert word in out
    assert Image.open(sheet).width > 300
    assert b"</svg>" in matrix.read_bytes()
    assert "run: test" in page.read_text(encoding="utf-8")
    assert "Validation images" in (run / "report.html").read_text(encoding="utf-8")


def test_as_json(run: Path, folder: Path, ask: Ask, tmp_path: Path) -> None:
    test = write_images(tmp_path / "test", LABELS, 3)
    (test / "blue" / "000.png").write_bytes(b"no image")
    code, out, err = ask("evaluate", "--run", run, "--data", test, "--json", "--confusion", tmp_path / "x.PNG")
    assert code == 0, err
    found = json.loads(out)
    assert found["examples"] == 11
    assert found["labels"] == LABELS
    assert sum(map(sum, found["confusion"])) == 11
    assert found["accuracy"]["low"] <= found["accuracy"]["score"] <= found["accuracy"]["high"]
    assert "1 image cannot be read and is left out" in err
    assert "blue/000.png" in err
    assert Image.open(tmp_path / "x.PNG").format == "PNG"


def test_several_sets_are_one(run: Path, folder: Path, ask: Ask) -> None:
    code, out, _ = ask("evaluate", "--run", run, "--data", folder / "test", "--data", folder / "train", "--json")
    assert code == 0
    assert json.loads(out)["examples"] == 120


def test_a_table_of_paths(run: Path, folder: Path, ask: Ask, tmp_path: Path) -> None:
    files = sorted((folder / "test").glob("*/*.png"))
    rows = "".join(f"{file},{file.parent.name}\n" for file in files)
    (tmp_path / "list.csv").write_text("path,label\n" + rows, encoding="utf-8")
    (tmp_path / "other.csv").write_text("where,what\n" + rows, encoding="utf-8")
    code, out, _ = ask("evaluate", "--run", run, "--data", tmp_path / "list.csv", "--json")
    assert code == 0
    (tmp_path / "third.csv").write_text("where,what,copy\n" + rows.replace("\n", ",x.png\n"), encoding="utf-8")
    refused(ask("evaluate", "--run", run, "--data", tmp_path / "third.csv"), "or say its number: --field text=N")
    fields = ("--field", "text=where", "--field", "label=what")
    code, other, err = ask("evaluate", "--run", run, "--data", tmp_path / "other.csv", *fields, "--json")
    assert code == 0, err
    _, whole, _ = ask("evaluate", "--run", run, "--data", folder / "test", "--json")
    assert json.loads(out) == json.loads(whole) == json.loads(other)


def test_what_cannot_be_judged_is_named(run: Path, folder: Path, ask: Ask, tmp_path: Path) -> None:
    def evaluate(*options: object) -> Asked:
        return ask("evaluate", "--run", run, *options)

    strange = write_images(tmp_path / "strange", [*LABELS, "grün"], 2)
    refused(
        evaluate("--data", strange), "grün/000.png", '"grün" was never seen in training', "black, blue, green, 초록"
    )
    refused(evaluate("--data", folder / "test" / "blue"), "blue/000.png", "not said of which class")
    refused(evaluate("--data", tmp_path / "nowhere"), "nowhere")
    refused(evaluate(), "has learned vision: give --data with images")
    refused(evaluate("--sheet", tmp_path / "x.png"), "--data needs one --run")
    test = ("--data", folder / "test")
    refused(evaluate(*test, "--sheet", tmp_path / "x.svg"), "--sheet", "not .png")
    refused(evaluate(*test, "--confusion", tmp_path / "x.pdf"), "--confusion", ".png, .svg")
    refused(evaluate(*test, "--report", tmp_path), "--report", "name a file")
    refused(evaluate(*test, "--sheet", folder / "test" / "blue" / "x.png"), "among the data")
    refused(
        evaluate(*test, "--sheet", tmp_path / "x.png", "--confusion", tmp_path / "x.png"), "two files under one name"
    )
    assert not (tmp_path / "x.png").exists()


def test_other_runs_have_no_sheet(ask: Ask, tmp_path: Path) -> None:
    rows = [f"{word} word\t{label}\n" for word, label in (("good", "yes"), ("bad", "no")) for _ in range(12)]
    (tmp_path / "data.tsv").write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    size = ["model.width=16", "model.heads=2", "model.layers=1", "model.feed_forward=32", "training.warmup=2"]
    keys = [*size, "training.updates=4", "training.validate_every=2", "training.checkpoint_every=2", "device=cpu"]
    data, run = ("--data", tmp_path / "data.tsv"), ("--run", tmp_path / "run")
    assert ask("train", "classify", *keys, "threads=1", "--train", tmp_path / "data.tsv", *run)[0] == 0
    refused(ask("evaluate", *run, *data, "--sheet", tmp_path / "x.png"), "--sheet", "has learned classification")
    code, out, err = ask("evaluate", *run, *data, "--confusion", tmp_path / "x.png")
    assert code == 0, err
    assert "24 examples" in out
    assert Image.open(tmp_path / "x.png").format == "PNG"
