"""The run that is trained on first start: once, in a process of its own, whatever happens to it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from studio_server import until

from jumok.errors import BadInput
from jumok.studio import first as firsts
from jumok.studio.app import create_app
from jumok.studio.first import DONE, KEYS, NAME, First, first_recipe, train
from jumok.studio.shelf import Shelf

SMALL = (
    "data.train.pairs=60", "data.valid.pairs=4", "model.width=16", "model.feed_forward=16", "device=cpu",
    "training.log_every=1", "training.keep=99",
)  # fmt: skip
QUICK = (*SMALL, "training.updates=6", "training.validate_every=3", "training.checkpoint_every=3")
LONG = (*SMALL, "training.updates=100000", "training.validate_every=100000", "training.checkpoint_every=20")


def test_it_is_two_layers_of_four_heads_from_english_to_french() -> None:
    recipe = first_recipe(KEYS)
    assert (recipe.task, recipe.model.kind, recipe.data.train[0].grammar) == ("translation", "transformer", "en-fr")
    model = recipe.model.model_dump()
    assert (model["encoder_layers"], model["decoder_layers"], model["heads"]) == (2, 2, 4)


@pytest.mark.full
def test_it_is_trained_and_then_on_the_shelf(tmp_path: Path) -> None:
    first, shelf = First(QUICK, tmp_path), Shelf(device="cpu")
    with TestClient(create_app(shelf, None, first), base_url="http://localhost") as client:
        assert client.get("/api/first").json() == {"state": "none"}
        first.start()
        shares: list[float] = []

        def ready() -> bool:
            told = client.get("/api/first").json()
            assert told["state"] in ("waiting", "training", "ready"), told
            shares.append(told["share"])
            return bool(told["state"] == "ready")

        until(ready, 90)
        assert shares == sorted(shares)
        (run,) = client.get("/api/runs").json()["runs"]
    assert (run["name"], run["checkpoints"]) == (NAME, [3, 6])
    assert isinstance(shelf.load(NAME).translate(["The cat sees a dog."])[0], str)
    again = First(QUICK, tmp_path)
    again.start()
    assert again.process is None  # kept, never trained twice
    assert again.progress(Shelf())["state"] == "ready"


@pytest.mark.full
def test_it_is_there_at_the_first_list_of_a_later_start(tmp_path: Path) -> None:
    train(First(QUICK, tmp_path))
    first = First(QUICK, tmp_path)
    first.start()
    with TestClient(create_app(Shelf(), None, first), base_url="http://localhost") as client:
        assert [run["name"] for run in client.get("/api/runs").json()["runs"]] == [NAME]


@pytest.mark.full
def test_two_at_once_train_one(tmp_path: Path) -> None:
    firsts_ = [First(QUICK, tmp_path), First(QUICK, tmp_path)]
    for first in firsts_:
        first.start()
    for first in firsts_:
        assert first.process is not None
        assert first.process.wait(120) == 0
    metrics = firsts_[0].run.metrics.read_text(encoding="utf-8").splitlines()
    assert sum('"event": "train"' in line for line in metrics) == 6
    (folder,) = [path for path in (tmp_path / "studio").iterdir() if path.is_dir()]
    assert (folder / DONE).is_file()


@pytest.mark.full
def test_one_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    first, shelf = First(LONG, tmp_path), Shelf()
    first.start()
    until(lambda: first.run.pointed("last") is not None, 90)
    assert 0 < first.progress(shelf)["share"] < 1
    first.stop()
    reached = first.run.pointed("last")
    assert reached is not None
    assert shelf.names == []
    first.start()
    until(lambda: (first.run.pointed("last") or 0) > reached, 90)
    steps = [event["step"] for event in first.run.events() if event["event"] == "train"]
    first.stop()
    assert steps == list(range(1, len(steps) + 1))  # nothing twice, nothing left out


@pytest.mark.full
def test_one_that_cannot_go_on_begins_anew(tmp_path: Path) -> None:
    first = First(QUICK, tmp_path)
    first.run.checkpoints.mkdir(parents=True)
    (first.run.path / "recipe.yaml").write_text("nonsense", encoding="utf-8")
    train(first)
    assert first.is_done
    assert first.progress(Shelf())["state"] == "ready"


@pytest.mark.full
def test_it_ends_with_the_studio_however_that_ends(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom jumok.studio.first import First\n"
        "first = First(tuple(sys.argv[2:]), Path(sys.argv[1]))\nfirst.start()\n"
        "print(first.process.pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), *LONG], stdout=subprocess.PIPE, text=True
    ) as studio:
        assert studio.stdout is not None
        child = int(studio.stdout.readline())
        first = First(LONG, tmp_path)
        until(lambda: bool(first.run.events()), 90)
        studio.kill()
    until(lambda: not _lives(child), 20)


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.full
def test_what_goes_wrong_is_told(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    first = First(QUICK, blocked)  # no folder can be made there
    first.start()
    told: dict[str, object] = {}

    def failed() -> bool:
        told.update(first.progress(Shelf()))
        return told["state"] == "failed"

    until(failed, 60)
    assert told["message"]
    assert "\n" not in str(told["message"])


def test_main_tells_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(first: First) -> None:
        raise BadInput("the disk is full: free some space")

    monkeypatch.setattr(firsts, "train", refuse)
    monkeypatch.setattr(firsts, "_end_with_parent", lambda: time.sleep(0))
    monkeypatch.setattr(firsts.os, "nice", lambda more: 0, raising=False)
    assert firsts.main([str(tmp_path), *QUICK]) == 1
    assert "free some space" in capsys.readouterr().err
