"""Readers of Hangul: judged with the fonts and words that they were trained with, on pictures that are not squashed."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from word_runs import words_recipe

from jumok.errors import BadInput

Files = dict[str, Path]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = Path(__file__).parents[2] / "benchmarks"
    if not folder.exists():
        pytest.skip("the benchmarks are not part of this package")
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield importlib.import_module("hangul_text")
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__ or "").parent == folder:
            del sys.modules[name]


@pytest.fixture
def files(script: Any, tmp_path: Path) -> Files:
    """A run that says it was trained with these fonts and words."""
    fonts, words, run = tmp_path / "fonts", tmp_path / "words.txt", tmp_path / "reader.tar"
    fonts.mkdir()
    (fonts / "one.ttf").write_bytes(b"a font")
    words.write_text("나무\n", encoding="utf-8")
    run.write_bytes(b"not looked into")
    told = {key: {f"/where/it/was/{key}": script.sum_of(path)} for key, path in (("fonts", fonts), ("words", words))}
    (tmp_path / "reader.json").write_text(json.dumps(told), encoding="utf-8")
    return {"fonts": fonts, "words": words, "run": run}


def refused(script: Any, files: Files, capsys: pytest.CaptureFixture[str]) -> str:
    out = files["run"].with_name("out.json")
    given = [str(files["run"]), "--fonts", str(files["fonts"]), "--words", str(files["words"]), "--out", str(out)]
    assert script.main(given) == 2
    assert not out.exists()
    return capsys.readouterr().err


def test_a_run_of_these_files_is_taken(script: Any, files: Files) -> None:
    """Whatever their folder was called where it was trained."""
    script.check_sums(files["run"], [script.sum_of(files["fonts"])], [script.sum_of(files["words"])])


def test_a_run_without_its_sums_is_refused(script: Any, files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files["run"].with_suffix(".json").unlink()
    assert "no reader.json beside it" in refused(script, files, capsys)
    files["run"].with_suffix(".json").write_text('{"seconds": 3}')
    assert "no sums of fonts and words in it" in refused(script, files, capsys)


def test_a_run_of_other_fonts_or_words_is_refused(
    script: Any, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    another = files["fonts"] / "two.ttf"
    another.write_bytes(b"came later")
    assert "reader.tar: trained with other fonts than those of --fonts" in refused(script, files, capsys)
    another.unlink()
    files["words"].write_text("나무\n하늘\n", encoding="utf-8")
    assert "reader.tar: trained with other words than those of --words" in refused(script, files, capsys)


def test_a_run_that_learned_from_families_of_the_test_is_refused(script: Any, files: Files) -> None:
    about = files["run"].with_suffix(".json")
    with pytest.raises(BadInput, match="no families in it"):
        script.check_families(files["run"], ["Nanum"])
    about.write_text(json.dumps({"families": ["Baekmuk", "Nanum"]}), encoding="utf-8")
    script.check_families(files["run"], ["Gulim"])
    with pytest.raises(BadInput, match=r"has learned from Nanum, which would be tested with"):
        script.check_families(files["run"], ["Gulim", "Nanum"])


def test_a_run_that_held_out_others_is_refused(script: Any) -> None:
    here = words_recipe()
    script.check_recipe(Path("reader.tar"), words_recipe(), here)
    with pytest.raises(BadInput, match=r"trained with render\.held_out_fonts=0\.25, judged with 0\.5"):
        script.check_recipe(Path("reader.tar"), words_recipe({"held_out_fonts": 0.25}), here)
    letters = here.model_copy(update={"charset": here.charset.model_copy(update={"sets": ("latin",)})})
    with pytest.raises(BadInput, match="trained with another charset"):
        script.check_recipe(Path("reader.tar"), letters, here)


@pytest.mark.parametrize(("aspect", "size"), [(4.0, (96, 24)), (8.0, (192, 24)), (2.0, (96, 48)), (0.5, (96, 192))])
def test_a_picture_gets_its_own_aspect_and_loses_no_pixel(script: Any, aspect: float, size: tuple[int, int]) -> None:
    assert script.natural(Image.new("RGB", (96, 24)), aspect).size == size


def test_pictures_are_as_wide_as_their_words(script: Any, tmp_path: Path) -> None:
    recipe = words_recipe()
    words, families = script.drawn(recipe, "test", 40, 2, tmp_path / "test")
    assert {word.family for word in words} == set(families) < {"DejaVu Sans", "DejaVu Serif"}
    aspects: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for word in words:
        with Image.open(word.file) as picture:
            wide, high = picture.size
        assert wide >= 96  # both sides of 32 × 48, twice
        assert high >= 64
        aspects[len(word.text)].append(wide / high)
    means = [sum(some) / len(some) for some in aspects.values() if some]
    assert len(means) > 1
    assert means == sorted(means)
    assert max(means) > 1.4 * min(means)
    valid, _ = script.drawn(recipe, "valid", 40, 2, tmp_path / "valid")
    assert [word.text for word in valid] != [word.text for word in words]


def test_an_interval_over_families_knows_that_their_words_go_together(script: Any) -> None:
    families = [name for name in "abcdef" for _ in range(100)]
    alike = script.by_family([number % 2 == 0 for number in range(600)], families)
    apart = script.by_family([family in "abc" for family in families], families)
    assert alike["a"] == [50, 100]
    assert script.over_families(alike) == (0.5, 0.5)
    low, high = script.over_families(apart)
    assert low < 0.2
    assert high > 0.8
    assert script.over_families({"a": [3, 4]}) is None
