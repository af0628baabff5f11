"""Runs side by side: each in one line whatever its condition, and the keys they differ in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from filelock import FileLock
from runs import make_run

from jumok.errors import BadInput
from jumok.training.comparison import (
    differences,
    find,
    flat,
    header,
    ordered,
    short_names,
    summarise,
)


def test_a_run_in_one_line(tmp_path: Path) -> None:
    run = summarise(make_run(tmp_path / "one", "model.width=64", seconds=90.0))
    assert (run.state, run.problem, run.task, run.model) == ("done", "", "translation", "lstm luong 64×2")
    assert (run.updates, run.planned, run.parameters, run.minutes) == (40, 40, 22, 1.5)
    assert (run.metric, run.best, run.best_update, run.tokens_per_second) == ("loss", 2.0, 30, 2500.0)
    assert json.loads(json.dumps(run.to_json()))["path"] == str(tmp_path / "one")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("transformer-tiny", "transformer 128×3+3"),
        ("lstm", "lstm 512×2"),
        ("gru-lm", "gru lm 512×2"),
        ("transformer-lm", "transformer lm"),
        ("forecast", "lstm forecaster 64×1"),
    ],
)
def test_every_kind_of_model_has_a_name(tmp_path: Path, name: str, model: str) -> None:
    assert summarise(make_run(tmp_path / "run", name=name)).model.startswith(model)


def test_an_average_of_checkpoints_is_no_update(tmp_path: Path) -> None:
    """It is stored as one step more: 41 of 40 would be a riddle."""
    path = make_run(tmp_path / "one", done=41)
    file = path / "checkpoints" / "step-41" / "state.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "averaged": 3}))
    assert (summarise(path).updates, summarise(path).planned) == (40, 40)


def test_the_best_is_by_the_metric_that_is_asked_for(tmp_path: Path) -> None:
    path = make_run(tmp_path / "one")
    best = summarise(path, "bleu")
    assert (best.metric, best.best, best.best_update) == ("bleu", 40.0, 40)
    assert summarise(path, "chrf").best is None
    without_curves = make_run(tmp_path / "two", losses=(2.0,))
    (without_curves / "metrics.jsonl").unlink()
    assert summarise(without_curves).best == 2.0  # what the state remembers, its sign turned back


def test_states(tmp_path: Path) -> None:
    path = make_run(tmp_path / "one", stopped=None, done=20)
    assert summarise(path).state == "stopped"
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"event": "train", "step": 33, "loss": 1.0}\n{"event": "tr')
    assert summarise(path).updates == 20  # what was computed after the checkpoint is lost with a kill
    with FileLock(path / ".lock"):
        running = summarise(path)
    assert (running.state, running.updates) == ("running", 33)
    assert summarise(path).state == "stopped"


def test_a_run_that_was_killed_before_its_first_checkpoint(tmp_path: Path) -> None:
    path = make_run(tmp_path / "one", losses=())
    (path / "checkpoints" / "step-40" / "state.json").unlink()
    (path / "checkpoints" / "step-40" / "model.safetensors").unlink()
    (path / "checkpoints" / "step-40").rmdir()
    found = summarise(path)
    assert (found.state, found.updates, found.best, found.parameters) == ("stopped", 0, None, None)


def test_damage_is_told_and_the_checkpoint_before_counts(tmp_path: Path) -> None:
    path = make_run(tmp_path / "one")
    older = make_run(tmp_path / "other", done=20)
    (older / "checkpoints" / "step-20").rename(path / "checkpoints" / "step-20")
    weights = path / "checkpoints" / "step-40" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    found = summarise(path)
    assert (found.state, found.updates) == ("done", 20)
    assert found.problem == "step-40: model.safetensors is cut short"
    (path / "checkpoints" / "step-20" / "state.json").write_text("[]")
    assert summarise(path).state == "damaged"
    for nonsense in ('{"update": "x"}', '{"update": null}', '{"update": [1]}'):
        (path / "checkpoints" / "step-20" / "state.json").write_text(nonsense)
        assert "does not say which update" in summarise(path).problem
    (path / "checkpoints" / "step-20" / "state.json").unlink()
    assert "state.json is missing" in summarise(path).problem


@pytest.mark.parametrize("content", ["", "model: [1", "format: 1\n", "format: 7\n", "format: 1\nmodel: {width: -3}\n"])
def test_an_unreadable_recipe_is_one_line(tmp_path: Path, content: str) -> None:
    path = make_run(tmp_path / "one")
    (path / "recipe.yaml").write_text(content)
    found = summarise(path)
    assert found.state == "damaged"
    assert found.problem.startswith("recipe.yaml: ")
    assert "\n" not in found.problem
    (path / "recipe.yaml").unlink()
    assert summarise(path).state == "damaged"


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, b"\x02" + bytes(7) + b"[]", b"\x02" + bytes(7) + b"{x"])
def test_weights_that_are_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        header(file)


def test_runs_are_found_below_a_folder_and_others_are_named(tmp_path: Path) -> None:
    first, deep = make_run(tmp_path / "first"), make_run(tmp_path / "more" / "deep")
    (tmp_path / "notes").mkdir()
    (tmp_path / ".hidden").mkdir()
    assert find([tmp_path]) == ([first, deep], [tmp_path / "notes"])
    assert find([first, tmp_path / "notes", first]) == ([first, tmp_path / "notes"], [])
    assert summarise(tmp_path / "notes").state == "none"
    with pytest.raises(BadInput, match="there is no folder"):
        find([tmp_path / "nowhere"])


def test_keys_that_differ(tmp_path: Path) -> None:
    one = summarise(make_run(tmp_path / "one", "model.width=64"))
    two = summarise(make_run(tmp_path / "two", "model.width=32", "seed=7"))
    assert differences([one, two]) == {"seed": [1, 7], "model.width": [64, 32]}
    assert differences([one, one]) == {}
    other = summarise(make_run(tmp_path / "three", name="transformer-tiny"))
    found = differences([one, other])
    assert found["model.kind"] == ["seq2seq", "transformer"]
    assert "model.cell" not in found  # the one has none: its kind says so
    nothing = summarise(tmp_path)
    assert differences([one, nothing, two]) == {"seed": [1, 7], "model.width": [64, 32]}


def test_corpora_are_numbered() -> None:
    assert flat({"data": {"train": [{"a": 1}, {"a": 2}], "list": [1, 2]}}) == {
        "data.train.0.a": 1, "data.train.1.a": 2, "data.list": [1, 2],
    }  # fmt: skip


def test_sorting(tmp_path: Path) -> None:
    good = summarise(make_run(tmp_path / "b", losses=(1.0,), seconds=10.0, age=50.0))
    bad = summarise(make_run(tmp_path / "a", losses=(2.0,), seconds=20.0, age=100.0))
    unknown = summarise(make_run(tmp_path / "c", losses=()))
    names = {key: [run.path.name for run in ordered([unknown, good, bad], key)] for key in ("name", "best", "changed")}
    assert names["name"] == ["a", "b", "c"]
    assert names["best"][:2] == ["b", "a"]
    assert names["changed"] == ["c", "b", "a"]
    assert [run.path.name for run in ordered([good, bad], "minutes")] == ["a", "b"]
    by_score = [summarise(run.path, "bleu") for run in (good, bad)]
    assert [run.best for run in ordered(by_score, "best")] == [10.0, 10.0]
    with pytest.raises(BadInput, match='Did you mean "minutes"'):
        ordered([], "minuets")


def test_names_tell_folders_apart(tmp_path: Path) -> None:
    assert short_names([tmp_path / "a" / "x", tmp_path / "b" / "x"]) == ["a/x", "b/x"]
    assert short_names([tmp_path / "a"]) == ["a"]
    assert short_names([tmp_path / "a", tmp_path / "a" / "b"]) == ["a", "a/b"]
