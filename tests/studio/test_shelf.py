"""The runs that can be looked at."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
from pathlib import Path

import pytest
import torch
from pydantic_core import to_json
from safetensors.torch import load_file, save_file
from starlette.testclient import TestClient

from jumok import api
from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.studio import routes_recurrent
from jumok.studio import shelf as shelves
from jumok.studio.app import create_app
from jumok.studio.shelf import Shelf, described
from jumok.training.checkpoint import CHECKSUMS, MODEL, sha256
from jumok.training.comparison import Summary
from jumok.training.run import RunFolder

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
    entry = Shelf.of([trained]).entries()[0]
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
    assert shelf.names == ["a/tiny", "b/tiny", "en-fr"]
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
    assert [entry["name"] for entry in shelf.entries()] == ["good", "en-fr"]
    monkeypatch.undo()
    assert [entry["name"] for entry in shelf.entries()] == ["good", "en-fr"]
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
        bad, good = shelf.entries()
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
    assert shelf.names[0] == "<script>\ufffdalert(1)"
    assert shelf.entry(shelf.names[0])["task"] == "translation"


# ---------------------------------------------------------------- what changes while somebody looks


def test_named_runs_come_first_in_their_order(trained: Path, tmp_path: Path) -> None:
    for name in ("z", "a", "en-fr"):
        shutil.copytree(trained, tmp_path / name)
    shelf = Shelf.of([tmp_path / "z", tmp_path / "en-fr", tmp_path / "a"])
    assert shelf.names == ["z", "en-fr-2", "a", "en-fr"]
    assert shelf.folder("en-fr").path == api.packaged_run()  # whatever others are called
    assert [entry["name"] for entry in shelf.entries()] == shelf.names
    assert Shelf.of([], usual=[tmp_path]).names == ["en-fr", "a", "en-fr-2", "z"]


def test_runs_that_come_later_are_listed(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also deeper ones, and where the folder itself was not there at first; names that are there stay."""
    runs, looks = tmp_path / "runs", []
    shelf, real = Shelf.of([], usual=[runs]), shelves.find
    monkeypatch.setattr(shelves, "find", lambda folders: looks.append(folders) or real(folders))  # type: ignore[func-returns-value]
    assert [entry["name"] for entry in shelf.entries()] == ["en-fr"]
    shutil.copytree(trained, runs / "deep" / "er" / "one")
    shelf._looked -= shelves.EVERY
    assert [entry["name"] for entry in shelf.entries()] == ["en-fr", "deep/er/one"]
    shutil.copytree(trained, runs / "two")
    for _ in range(20):
        assert len(shelf.entries()) == 2  # it was looked a moment ago
    assert len(looks) == 1
    shelf._looked -= shelves.EVERY
    assert shelf.load("two") is not None  # a link to it needs no list before
    assert [entry["name"] for entry in shelf.entries()] == ["en-fr", "deep/er/one", "two"]
    shutil.rmtree(runs)
    shelf._looked -= shelves.EVERY
    assert [entry["name"] for entry in shelf.entries()] == ["en-fr"]


def test_a_run_of_ours_is_listed_once(trained: Path, tmp_path: Path) -> None:
    shelf = Shelf.of([], usual=[tmp_path])
    shutil.copytree(trained, tmp_path / "mine")
    assert shelf.add("mine <b>", tmp_path / "mine") == "mine <b>"
    shelf._looked -= shelves.EVERY
    assert [entry["name"] for entry in shelf.entries()] == ["en-fr", "mine <b>"]
    shelf.reserve(tmp_path / "starting")
    shutil.copytree(trained, tmp_path / "starting")
    shelf._looked -= shelves.EVERY
    assert len(shelf.entries()) == 2  # who has started it will say so
    shutil.copytree(trained, tmp_path / "deep" / "one")
    twice = Shelf.of([tmp_path / "mine", tmp_path, tmp_path / "deep"])
    assert len(twice.names) == 4
    assert len({twice.folder(name).path for name in twice.names}) == len(twice.names)
    assert twice.names[0] == "mine"


def retrained(run: Path, of: int, as_of: int) -> None:
    """The checkpoint of an update gets other weights, as where a run was made anew in its folder."""
    shutil.rmtree(run / "checkpoints" / f"step-{as_of}")
    shutil.copytree(run / "checkpoints" / f"step-{of}", run / "checkpoints" / f"step-{as_of}")
    os.utime(run / "checkpoints" / f"step-{as_of}" / "model.safetensors")  # a copy has the time of the original


def test_new_weights_are_loaded(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    shelf = Shelf.of([run], device="cpu")

    def weight(update: int | None) -> torch.Tensor:
        return torch.cat([one.flatten() for one in shelf.load("run", update).model.state_dict().values()])

    (run / "best.json").unlink()
    newest, fourth = weight(None), weight(4)
    assert shelf.load("run") is shelf.load("run")
    retrained(run, 2, 4)
    assert torch.equal(weight(4), weight(2))
    assert not torch.equal(weight(4), fourth)
    shutil.rmtree(run / "checkpoints" / "step-6")  # the newest is another one now
    assert torch.equal(weight(None), weight(4))
    assert not torch.equal(weight(None), newest)
    RunFolder(run).point("best", 2)
    stamp = shelf.stamp("run")
    assert stamp == shelf.stamp("run", 2)
    retrained(run, 4, 2)
    assert shelf.stamp("run") != stamp


def test_every_page_follows_new_weights(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    RunFolder(run).point("best", 6)
    app = create_app(Shelf.of([run], device="cpu"))
    search = {"run": "run", "text": SENTENCE, "beam": 2, "length_penalty": 1.0}
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:

        def said() -> list[bytes]:
            look = {"run": "run", "text": SENTENCE, "target": "Le chat."}
            pages = {
                "translate/search": search,
                "translate/attention": {"run": "run", "text": SENTENCE, "ids": [5, 6], "finished": True},
                "attention/look": look,
                "attention/map": {**look, "kind": "cross"},
                "compare/look": {"a": {"run": "run"}, "b": {"run": "run", "update": 2}, "text": SENTENCE},
            }
            answers = [client.post(f"/api/{path}", json=body) for path, body in pages.items()]
            assert [answer.status_code for answer in answers] == [200] * len(pages)
            return [answer.content for answer in answers]

        before = said()
        assert said() == before
        retrained(run, 2, 6)
        assert all(one != two for one, two in zip(before, said(), strict=True))


def test_gates_follow_new_weights(tmp_path: Path) -> None:
    """What is kept of the last question is kept with the model that answered it."""
    run = tmp_path / "run"
    shutil.copytree(api.packaged_run(), run)
    shelf = Shelf.of([run], device="cpu")
    before = routes_recurrent._states(shelf, routes_recurrent.AskStates(run="run", text=SENTENCE))
    (folder,) = (run / "checkpoints").glob("step-*")
    scaled = {name: tensor * 0.5 for name, tensor in load_file(folder / MODEL).items()}
    save_file(scaled, folder / MODEL)
    sums = json.loads((folder / CHECKSUMS).read_text())
    (folder / CHECKSUMS).write_text(json.dumps({**sums, MODEL: sha256(folder / MODEL)}))
    after = routes_recurrent._states(shelf, routes_recurrent.AskStates(run="run", text=SENTENCE))
    assert before.shape == after.shape
    assert (before != after).any()
