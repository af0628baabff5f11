"""`jumok render`: a sheet to look at, or a data set that can be trained on."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked import Ask
from PIL import Image
from word_runs import words_recipe

from jumok.data.text_images.sources import open_text_images
from jumok.recipe.writing import dump


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "words.yaml").write_text(dump(words_recipe()), encoding="utf-8")
    return tmp_path / "words.yaml"


def test_a_sheet(ask: Ask, recipe: Path, tmp_path: Path) -> None:
    sheets = []
    for more in ([], ["--seed", "2"], ["--dark"], ["render.blur=2"], ["--split", "test"]):
        code, out, err = ask("render", recipe, "--out", tmp_path / "sheet.png", "--count", "7", *more)
        assert code == 0, err
        assert out == f"7 words: {tmp_path / 'sheet.png'}\n"
        with Image.open(tmp_path / "sheet.png") as picture:
            picture.load()
        sheets.append((tmp_path / "sheet.png").read_bytes())
    assert len(set(sheets)) == 5
    assert ask("render", recipe, "--out", tmp_path / "sheet.png", "--count", "7")[0] == 0
    assert (tmp_path / "sheet.png").read_bytes() == sheets[0]


@pytest.mark.parametrize("name", ["words", "deep/words", "words.lmdb"])
def test_a_data_set(ask: Ask, recipe: Path, tmp_path: Path, name: str) -> None:
    code, out, err = ask("render", recipe, "--out", tmp_path / name, "--count", "9")
    assert code == 0, err
    assert out.startswith("9 words: ")
    found = list(open_text_images([tmp_path / name]))
    assert len(found) == 9
    assert all(image.label is not None and set(image.label) <= set("0123456789") for image in found)
    assert (tmp_path / name / "data.mdb").exists() == name.endswith(".lmdb")
    before = sorted(tmp_path.rglob("*"))
    code, _, err = ask("render", recipe, "--out", tmp_path / name, "--count", "3")
    assert code == 2
    assert f"{tmp_path / name} is there already: name a new folder" in err
    assert sorted(tmp_path.rglob("*")) == before


def test_one_word_is_one_word(ask: Ask, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()  # a folder that is empty is as good as none
    assert ask("render", recipe, "--out", tmp_path / "empty", "--count", "1")[1] == f"1 word: {tmp_path / 'empty'}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("RECIPE --out OUT/x.png --split dev", "--split dev: train, valid or test"),
        ("gru --out OUT/x.png", "gru has the task translation: give a recipe of task recognition"),
        ("RECIPE --out OUT/x.png --count 601", "a sheet shows up to 600"),
        ("RECIPE --out OUT/x.png --count 0", "--count"),
        ("RECIPE render.blurr=1 --out OUT/x.png", "blur"),
        ("RECIPE --out OUT/missing/x.png", "there is no folder OUT/missing"),
        ("RECIPE --out OUT/folder.png", "it is a folder"),
        ("RECIPE --out OUT/words.yaml", "is there already"),
        ("RECIPE --out OUT/words.yaml/words", "is a file, not a folder"),
        ("RECIPE --out OUT/sheet.jpg", "a sheet is a .png file"),
        ("nowhere --out OUT/x.png", "no recipe"),
    ],
)
def test_what_is_refused(ask: Ask, recipe: Path, tmp_path: Path, words: str, said: str) -> None:
    (tmp_path / "folder.png").mkdir()
    given = [word.replace("RECIPE", str(recipe)).replace("OUT", str(tmp_path)) for word in words.split()]
    code, _, err = ask("render", *given)
    assert code == 2
    assert said.replace("OUT", str(tmp_path)) in err
    assert not (tmp_path / "x.png").exists()
