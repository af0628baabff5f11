"""Vocabulary, lengths, disk and the worst batch, on corpora whose numbers are known."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401

from jumok import recipe as recipes
from jumok.data.batch import UNKNOWN
from jumok.data.packing import PackedPairs
from jumok.recipe import Recipe
from jumok.tasks.build import build_task
from jumok.tasks.objective import Task
from jumok.training.doctor.corpora import check_corpora
from jumok.training.doctor.findings import Report
from jumok.training.doctor.lengths import check_lengths, padding_share
from jumok.training.doctor.space import check_disk
from jumok.training.doctor.vocabulary import check_vocabulary, single_letters
from jumok.training.doctor.worst import few_rows, worst_batch

CPU = torch.device("cpu")
SMALL = ["model.width=16", "model.embedding=8", "model.layers=1", "tokenizer.kind=word", "threads=1"]


def quiet(message: str) -> None:
    pass


def made(folder: Path, sources: list[str], targets: list[str], *keys: str) -> tuple[Recipe, Task, Report]:
    files = folder / "a.en", folder / "a.fr"
    for file, lines in zip(files, (sources, targets), strict=True):
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    named = [f"data.train.source={files[0]}", f"data.train.target={files[1]}"]
    recipe = recipes.read("lstm-luong", [*named, *SMALL, *keys])
    return recipe, build_task(recipe, CPU, quiet), Report()


def grammar(*keys: str, name: str = "lstm-luong") -> tuple[Recipe, Any, Report]:
    pairs = "data.train.pairs=400" if name != "forecast" else "seed=1"
    recipe = recipes.read(name, [pairs, *keys])
    return recipe, build_task(recipe, CPU, quiet), Report()


# ---------------------------------------------------------------- vocabulary


def test_unknown_words_are_counted(tmp_path: Path) -> None:
    rare = ["rare c", "b seldom", "never b", "c once"]
    sources, targets = [*["b c"] * 300, *rare], ["b c"] * 304
    _, task, report = made(tmp_path, sources, targets, "tokenizer.vocabulary=8", "tokenizer.kind=space")
    check_vocabulary(task, report)
    source, target = report.facts["vocabulary"]["source"], report.facts["vocabulary"]["target"]
    ids = [id for row in task.source.encode(sources) for id in row]  # type: ignore[attr-defined]
    assert source["tokens"] == len(ids)
    assert source["unknown"] == ids.count(UNKNOWN) / len(ids) > 0
    assert target["unknown"] == 0
    (found,) = [finding for finding in report.findings if "unknown" in finding.what]
    assert found.level == "note"
    assert found.where.startswith("source side (tokenizer.kind: space")
    assert "tokenizer.kind=bpe" in found.todo


def test_words_that_are_spelled(tmp_path: Path) -> None:
    lines = [
        " ".join(f"{chr(97 + (i * 7 + j * 3) % 26)}{chr(97 + (i + j) % 26)}x" for j in range(6)) for i in range(60)
    ]
    _, task, report = made(tmp_path, lines, lines, "tokenizer.kind=bpe", "tokenizer.vocabulary=60")
    check_vocabulary(task, report)
    told = [finding.what for finding in report.findings if "single letters" in finding.what]
    assert len(told) == 2
    assert report.facts["vocabulary"]["source"]["single_letters"] > 0.35


def test_syllables_are_no_letters(tmp_path: Path) -> None:
    lines = ["안녕 세계 a", "세계 안녕 b", "학생 이다 c", "나는 학생 d"] * 10
    _, task, _ = made(tmp_path, lines, lines, "tokenizer.kind=character")
    letters = single_letters(task.source)  # type: ignore[attr-defined]
    shown = {task.source.pieces([id])[0] for id in np.flatnonzero(letters)}  # type: ignore[attr-defined]
    assert shown == {"a", "b", "c", "d"}


def test_entries_that_never_occur(tmp_path: Path) -> None:
    from jumok.text.tokenizer import train_tokenizer

    train_tokenizer([f"w{number}" for number in range(100)], "space", 200).save(tmp_path / "large")
    lines = ["w1 w2 w3", "w2 w3 w4"] * 20
    _, task, report = made(tmp_path, lines, lines, f"tokenizer.source={tmp_path / 'large'}")
    check_vocabulary(task, report)
    (found,) = [finding for finding in report.findings if finding.what.startswith("only 4 of ")]
    assert (found.level, found.where) == ("note", "source side")


def test_a_language_model_has_one_vocabulary() -> None:
    _, task, report = grammar(name="lstm-lm")
    check_vocabulary(task, report)
    assert report.facts["vocabulary"]["text"]["tokens"] > 1000
    assert report.findings == []


# ---------------------------------------------------------------- lengths


def test_what_is_left_out_is_named_with_its_length(tmp_path: Path) -> None:
    lines = ["a b c d"] * 50
    sources = [*lines, "a " * 30, *lines, "a " * 40]
    recipe, task, report = made(tmp_path, sources, [*lines, "b", *lines, "b"], "data.max_length=20")
    check_lengths(task, recipe, check_corpora(recipe, Report(), quiet), report)
    (found,) = report.findings
    assert found.level == "warning"  # 2 of 102
    assert found.what.startswith("2 pairs (1.96%) left out")
    assert "the longest: line 102 with 40 tokens, line 51 with 30 tokens" in found.where
    assert "the longest needs 40" in found.todo
    known = report.facts["lengths"][f"{tmp_path / 'a.en'}, {tmp_path / 'a.fr'}"]
    assert known == {"left_out": 2, "median": 4, "p99": 4, "longest": 4}


def test_one_that_is_far_longer_than_the_rest(tmp_path: Path) -> None:
    lines = ["a b c d"] * 200
    recipe, task, report = made(tmp_path, [*lines, "a " * 100], [*lines, "b"], "training.batch_tokens=256")
    check_lengths(task, recipe, {}, report)
    (found,) = report.findings
    assert "has 100 tokens, 99 of 100 have at most 4: its batch holds 2 pairs" in found.what
    assert found.where.endswith("a.fr, line 201")
    assert found.todo == "data.max_length=10 would leave out 0.50% of the pairs"


def test_padding(tmp_path: Path) -> None:
    _, task, _ = made(tmp_path, ["a b c"] * 100, ["b c"] * 100)
    assert padding_share(task) == 0
    _, task, _ = grammar(*SMALL, "training.batch_tokens=1024")
    share = padding_share(task)
    assert share is not None
    assert 0 < share < 0.4
    assert padding_share(grammar(name="lstm-lm")[1]) is None


# ---------------------------------------------------------------- the worst batch


@pytest.mark.parametrize("budget", [200, 1500])
def test_the_worst_batch_is_as_bad_as_any_of_an_epoch(budget: int) -> None:
    _, task, _ = grammar(*SMALL, f"training.batch_tokens={budget}")
    worst = worst_batch(task, budget)
    assert worst is not None
    rows, (source, target) = len(worst.batch), (worst.batch.source.ids.size(1), worst.batch.target.ids.size(1))
    assert rows * max(source, target) <= budget
    all_batches = [batch for update in range(task.plan.batches_per_epoch) for batch in task.batches(update)]
    largest = max(batch.target.ids.numel() for batch in all_batches)
    assert worst.batch.target.ids.numel() >= 0.9 * largest
    assert not worst.whole


def test_the_worst_batch_of_all_there_is(tmp_path: Path) -> None:
    _, task, _ = made(tmp_path, ["a b c"] * 40, ["b c"] * 40)
    worst = worst_batch(task, 10_000)
    assert worst is not None
    assert worst.whole
    assert len(worst.batch) == 40


def test_packed_batches_are_tried_packed() -> None:
    _, task, _ = grammar("training.pack=true", name="transformer-tiny")
    worst = worst_batch(task, 500)
    assert worst is not None
    assert isinstance(worst.batch, PackedPairs)
    assert 0.8 * 500 <= max(worst.batch.source.tokens, worst.batch.tokens) <= 1.1 * 500


def test_windows_fill_the_budget() -> None:
    _, text, _ = grammar("data.window=16", name="lstm-lm")
    worst = worst_batch(text, 400)
    assert worst is not None
    assert tuple(worst.batch.ids.shape) == (25, 16)
    _, series, _ = grammar(name="forecast")
    many = worst_batch(series, 10**7)
    assert many is not None
    assert many.whole
    assert len(many.batch) == 10**7 // series.layout.window
    assert len(few_rows(worst.batch, 3)) == 3
    assert worst_batch(object(), 100) is None  # type: ignore[arg-type]


# ---------------------------------------------------------------- disk


class Usage(NamedTuple):
    free: int


@pytest.mark.parametrize(
    ("keys", "copies", "tensors"), [((), 4, 3), (("training.ema=0.9", "training.average=5"), 9, 4)]
)
def test_room_for_all_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], copies: int, tensors: int
) -> None:
    recipe, task, report = grammar(*SMALL, *keys)
    checkpoint = tensors * 4 * sum(parameter.numel() for parameter in task.objective.parameters())
    run = tmp_path / "not" / "there"
    for free, level in ((copies * checkpoint - 1, "error"), (copies * checkpoint + 1, "warning"), (10**15, None)):
        monkeypatch.setattr(shutil, "disk_usage", lambda place, free=free: Usage(free))
        report = Report()
        check_disk(recipe, task, run, report)
        assert [finding.level for finding in report.findings] == ([level] if level else [])
        assert report.facts["disk"]["needed"] == copies * checkpoint
        assert report.facts["disk"]["place"] == str(tmp_path)
        assert report.facts["disk"]["token_stores"] > 1000
    assert not run.exists()
