"""Commands on runs that read words in pictures: the real thing, or a refusal that says what there is instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from asked import Ask
from PIL import Image
from word_runs import words_recipe

from jumok import api
from jumok.cli.main import run as command
from jumok.recipe.writing import dump
from jumok.training.run import RunFolder


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("hello\n", encoding="utf-8")
    return tmp_path / "text.txt"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("predict --run RUN TEXT", "jumok read --run RUN word.png"),
        ("predict --run RUN a.png b.png --csv", "jumok read --run RUN word.png"),
        ("embed --run RUN TEXT", "jumok read --run RUN word.png"),
        ("fill --run RUN [MASK]", "jumok read --run RUN word.png"),
        ("evaluate --run RUN", "RUN has learned recognition: give --data with pictures of words and a labels file"),
        ("evaluate --run RUN --words TEXT", "--words are for words in pictures: give --data, pictures of words"),
        ("evaluate --run RUN --data TEXT --words nowhere.txt", "nowhere.txt"),
        ("evaluate --run RUN --data TEXT --trust 3", "--trust 3 says how much the words of --words are trusted"),
        ("evaluate --run RUN --text TEXT", "RUN is not a language model but a run of task: recognition"),
        ("translate --run RUN hello", "RUN is not a translation run but one of task: recognition"),
        ("score --run RUN --source TEXT --target TEXT", "RUN is not a translation run"),
        ("attribute --run RUN hello", "RUN is not a translation run"),
        ("ablate --run RUN --source TEXT --target TEXT", "RUN is not a translation run"),
        ("align --run RUN --source TEXT --target TEXT", "RUN is not a translation run"),
        ("generate --run RUN", "RUN is not a language model"),
        ("forecast --run RUN", "RUN is not a forecaster"),
        ("patterns --run RUN TEXT", "RUN has learned recognition: patterns are those of a BERT"),
        ("gates --run RUN hello", "this model has no recurrence"),
        ("gates --run COLUMNS hello", "this model reads pictures, not a sentence"),
        ("positions --run COLUMNS", "this model has no positions: it is recurrent"),
    ],
)
def test_what_is_for_other_models_is_refused_in_words(
    words: str, said: str, ask: Ask, words_run: Path, columns_run: Path, text: Path
) -> None:
    places = {"RUN": str(words_run), "COLUMNS": str(columns_run), "TEXT": str(text)}
    code, _, err = ask(*(places.get(word, word) for word in words.split()))
    assert code == 2
    assert said.replace("RUN", str(words_run)) in err


def test_runs_and_describe(ask: Ask, words_run: Path, columns_run: Path) -> None:
    code, out, err = ask("runs", words_run, columns_run)
    assert code == 0, err
    assert "permuted" in out
    assert "crnn" in out
    code, out, err = ask("describe", words_run)
    assert code == 0, err
    assert "Vision Transformer with a permuted decoder" in out
    assert "B × 4 × 14" in out  # three digits and the end; ten digits and four that are none


def test_averaged_it_reads(ask: Ask, words_run: Path, tmp_path: Path) -> None:
    code, out, err = ask("average", "--run", words_run, "--last", "2", "--out", tmp_path / "averaged")
    assert code == 0, err
    assert f"jumok read --run {tmp_path / 'averaged'} word.png" in out
    one, mean = (api.load(path, "cpu").model for path in (words_run, tmp_path / "averaged"))
    assert RunFolder(tmp_path / "averaged").pointed("best") == 2
    assert any((a != b).any() for a, b in zip(mean.parameters(), one.parameters(), strict=True))
    assert mean.charset == one.charset


@pytest.mark.full
def test_a_killed_run_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    file = tmp_path / "words.yaml"
    file.write_text(dump(words_recipe(render={"blur": 1.0, "noise": 1.0})), encoding="utf-8")
    assert command(["verify-resume", str(file), "--kills", "1"]) == 0


def test_a_test_set_is_judged_with_lists_of_words(ask: Ask, words_run: Path, tmp_path: Path) -> None:
    """Digits alone are no words: a list changes nothing of them, and is read."""
    folder = tmp_path / "signs"
    folder.mkdir()
    pixels = np.random.default_rng().integers(0, 255, (4, 20, 60, 3), np.uint8)
    for number, each in enumerate(pixels):
        Image.fromarray(each).save(folder / f"{number}.png")
    (folder / "labels.tsv").write_text("".join(f"{number}.png\t{number}\n" for number in range(4)))
    (tmp_path / "list.txt").write_text("one\ntwo\n")
    code, out, err = ask("evaluate", "--run", words_run, "--data", folder, "--json")
    assert code == 0, err
    assert ask("evaluate", "--run", words_run, "--data", folder, "--words", tmp_path / "list.txt", "--json")[:2] == (
        0, out,
    )  # fmt: skip
