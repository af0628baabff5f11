"""The runs that can be looked at."""

from __future__ import annotations

import json
import random
import shutil
import threading
from pathlib import Path

import pytest
import torch
from pydantic_core import to_json
from safetensors.torch import load_file

from jumok import api
from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.studio import shelf as shelves
from jumok.studio.shelf import Shelf, described
from jumok.training.checkpoint import MODEL
from jumok.training.comparison import Summary

SENTENCE = "The cat sees a dog."


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Transformer with several checkpoints."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    keys = [
        "data.train.pairs=60", "data.valid.pairs=4", "model.width=16", "model.feed_forward=16", "training.updates=6",
        "training.validate_every=6", "training.checkpoint_every=2", "training.keep=9", "device=cpu",
    ]  # fmt: skip
    api.train("demo-transformer", folder, keys, quiet=True, report=False)
    return folder


def test_an_entry_says_what_a_page_needs(trained: Path) -> None:
    entry = Shelf.of([trained]).entries()[1]
    assert (entry["name"], entry["family"], entry["task"], entry["state"]) == (
        "tiny",
        "transformer",
        "translation",
        "done",
    )
    found = {(one["kind"], one["part"], one["layers"], one["heads"]) for one in entry["heads"]}
    assert found == {("self", "encoder", 2, 4), ("causal", "decoder", 2, 4), ("cross", "decoder", 2, 4)}
    assert entry["checkpoints"] == [2, 4, 6]
    assert (entry["recurrent"], entry["position"], entry["updates"], entry["planned"]) == (False, "rotary", 6, 6)


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_can_be_described(name: str) -> None:
    about = described(recipes.read(name, []))
    assert about["family"]
    assert about["recurrent"] or about["heads"]
    assert all(one["layers"] >= 1 and one["heads"] >= 1 for one in about["heads"])


def test_what_is_described_is_what_is_loaded(trained: Path) -> None:
    from jumok.studio.taps import taps_of

    shelf = Shelf.of([trained])
    for name in shelf.names:
        assert taps_of(shelf.load(name).model) == shelf.entry(name)["heads"]


@pytest.mark.full
def test_a_checkpoint_is_loaded_by_its_update(trained: Path) -> None:
    shelf = Shelf.of([trained], device="cpu")
    for update in (2, 6):
        weights = load_file(trained / "checkpoints" / f"step-{update}" / MODEL)
        model = shelf.load("tiny", update).model
        for name, tensor in model.state_dict().items():
            if name in weights:
                assert torch.equal(tensor, weights[name]), name
    before, after = (shelf.load("tiny", update).nbest([SENTENCE])[0][0] for update in (2, 6))
    assert before.log_probability != after.log_probability  # also what was prepared for the search is of its update


@pytest.mark.parametrize("name", ["nothing", "../tiny", "/etc", "", "tiny/", "en-fr\x00", "."])
def test_only_names_of_the_list_are_known(trained: Path, name: str) -> None:
    shelf = Shelf.of([trained])
    for ask in (shelf.entry, shelf.load, shelf.folder, shelf.checkpoints):
        with pytest.raises(BadInput, match="there is no run"):
            ask(name)


def test_an_update_without_a_checkpoint_is_refused(trained: Path) -> None:
    with pytest.raises(BadInput, match="no checkpoint of update 3"):
        Shelf.of([trained]).load("tiny", 3)


def test_few_are_kept_and_each_is_loaded_once(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[int | None] = []
    real = shelves._loaded

    def counted(run: object, update: int | None, device: str) -> object:
        loaded.append(update)
        return real(run, update, device)  # type: ignore[arg-type]

    monkeypatch.setattr(shelves, "_loaded", counted)
    monkeypatch.setattr(shelves, "KEPT", 2)
    shelf = Shelf.of([trained])
    threads = [threading.Thread(target=shelf.load, args=("tiny", 2)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loaded == [2]
    for update in (4, 2, 6, 2, 4):
        shelf.load("tiny", update)
    assert loaded == [2, 4, 6, 4]  # 4 was asked for longest ago when 6 came
    shelf.forget("tiny")
    shelf.load("tiny", 4)
    assert loaded[-1] == 4
    assert len(loaded) == 5


def test_names_tell_runs_apart(trained: Path, tmp_path: Path) -> None:
    for parent in ("a", "b"):
        shutil.copytree(trained, tmp_path / parent / "tiny")
    shelf = Shelf.of([tmp_path])
    assert shelf.names == ["en-fr", "a/tiny", "b/tiny"]
    assert shelf.add("a/tiny", tmp_path / "b" / "tiny") == "a/tiny-2"
    assert shelf.add("a/tiny", tmp_path / "a" / "tiny") == "a/tiny"


def test_a_new_checkpoint_is_seen(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "run")
    shelf = Shelf.of([tmp_path / "run"])
    assert shelf.entry("run")["checkpoints"] == [2, 4, 6]
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-2")
    assert shelf.entry("run")["checkpoints"] == [4, 6]


def test_a_damaged_run_is_listed_with_what_is_wrong(trained: Path, tmp_path: Path) -> None:
    for name in ("good", "bad"):
        shutil.copytree(trained, tmp_path / name)
    (tmp_path / "bad" / "recipe.yaml").write_text("format: 1\ntask: nonsense\n", encoding="utf-8")
    entries = {entry["name"]: entry for entry in Shelf.of([tmp_path]).entries()}
    assert entries["bad"]["state"] == "damaged"
    assert "nonsense" in entries["bad"]["problem"]
    assert set(entries["good"]) == set(entries["bad"])  # a page finds the same keys


FILES = ("recipe.yaml", "metrics.jsonl", "last.json", "checkpoints/step-6/state.json")


@pytest.mark.full
@pytest.mark.parametrize("file", FILES)
def test_whatever_is_in_a_folder_the_others_are_listed(trained: Path, tmp_path: Path, file: str, seed: int) -> None:
    """Files that are half written, of another kind, or hold other things than they should: told of that run."""
    draw = random.Random(seed)
    for name in ("good", "odd"):
        shutil.copytree(trained, tmp_path / name)
    odd, folders = tmp_path / "odd" / file, [(name, tmp_path / name) for name in ("good", "odd")]
    whole = odd.read_bytes()
    keys = set(Shelf(folders).entry("good"))
    state = {"update": "x", "total": [], "seconds": {}, "best": "y", "best_update": None, "averaged": "", "stopped": 1}
    spoilt = [
        whole[: draw.randrange(1, len(whole))], b"", b"\x00" * 64, bytes(draw.randbytes(200)), b"[" * 30_000, b"null",
        b"[1, 2]", b'"text"', json.dumps(state).encode(), json.dumps({"event": "valid", "step": 1e400}).encode(),
        b'{"update": null}', b'{"update": 1e999}',
    ]  # fmt: skip
    for content in spoilt:
        odd.write_bytes(content)
        entries = {entry["name"]: entry for entry in Shelf(folders).entries()}
        assert entries["good"]["state"] == "done", content[:80]
        assert set(entries["odd"]) == keys
        assert to_json(entries["odd"], inf_nan_mode="null")
    odd.unlink()
    odd.mkdir()
    assert Shelf(folders).entries()[0]["state"] == "done"
    odd.rmdir()
    odd.write_bytes(whole)
    assert [entry["state"] for entry in Shelf(folders).entries()] == ["done", "done"]


def test_a_run_that_is_gone_is_left_out(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that goes between two looks at it; and one that comes back is there again."""
    for name in ("good", "lost"):
        shutil.copytree(trained, tmp_path / name)
    shelf, real = Shelf.of([tmp_path]), shelves.summarise

    def going(path: Path) -> Summary:
        found = real(path)
        if path.name == "lost":
            shutil.rmtree(path)
        return found

    monkeypatch.setattr(shelves, "summarise", going)
    assert [entry["name"] for entry in shelf.entries()] == ["en-fr", "good"]
    monkeypatch.undo()
    assert [entry["name"] for entry in shelf.entries()] == ["en-fr", "good"]
    shutil.copytree(trained, tmp_path / "lost")
    assert [entry["state"] for entry in shelf.entries()] == ["done", "done", "done"]


def test_what_nobody_foresaw_is_told_of_one_run(
    trained: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shelf, real = Shelf.of([trained]), shelves.summarise

    def failing(path: Path) -> Summary:
        if path == trained:
            raise RecursionError("deeper than anybody thought")
        return real(path)

    monkeypatch.setattr(shelves, "summarise", failing)
    for _ in range(3):
        good, bad = shelf.entries()
    assert (good["state"], bad["state"], bad["problem"]) == ("done", "damaged", "deeper than anybody thought")
    assert len(caplog.records) == 1  # once, however often it is asked for
    monkeypatch.undo()
    assert shelf.entry("tiny")["state"] == "done"


def test_a_damaged_checkpoint_is_refused(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / "checkpoints" / "step-4" / MODEL).write_bytes(b"x")
    shelf = Shelf.of([tmp_path / "run"])
    with pytest.raises(BadInput, match="damaged"):
        shelf.load("run", 4)
    shelf.load("run", 2)


def test_what_was_named_and_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"recipe\.yaml"):
        Shelf.of([tmp_path])


def test_hostile_names_of_folders_are_names(trained: Path, tmp_path: Path) -> None:
    odd = tmp_path / "<script>\x07alert(1)"
    shutil.copytree(trained, odd)
    shelf = Shelf.of([odd])
    assert shelf.names[1] == "<script>\ufffdalert(1)"
    assert shelf.entry(shelf.names[1])["task"] == "translation"
