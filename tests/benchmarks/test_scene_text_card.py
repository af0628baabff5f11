"""Readers trained on a machine that is lent for half an hour: one after the other, and what there is comes back."""

from __future__ import annotations

import importlib
import os
import random
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
Script = Callable[[str], Any]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    if not FOLDER.exists():
        pytest.skip("the benchmarks are not part of this package")
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__ or "").parent == FOLDER:
            del sys.modules[name]


def learner(card: Any, place: Path, name: str, says: str, seconds: float = 0.0, until: str = "") -> Any:
    """A training that notes when it began and ended, and packs what it has when it is asked to end. It takes `seconds`,
    or as long as nobody has noted `until`."""
    code = (
        "import signal, sys, time\n"
        "def note(what): open(sys.argv[1], 'a').write(f'{sys.argv[2]} {what}\\n')\n"
        "def end(*_): note('packs'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        f"note('begins'); print({says!r}, flush=True); time.sleep({seconds})\n"
        f"while {until!r} not in open(sys.argv[1]).read(): time.sleep(0.05)\n"
        "note('ends')\n"
    )
    command = [sys.executable, "-c", code, str(place / "notes"), name]
    return card.Learner(name, 1.0, command, place / f"{name}.log")


def test_one_after_the_other_and_others_are_compiled_meanwhile(script: Script, tmp_path: Path) -> None:
    card = script("scene_text_card")
    ones = [learner(card, tmp_path, name, "plan: 100 updates", until="tried begins") for name in ("a", "b")]
    tried = [learner(card, tmp_path, "tried", "")]  # at the lowest priority: on a busy machine it may take its time
    card.train(ones, tried, 60.0)
    notes = (tmp_path / "notes").read_text().splitlines()
    assert [note for note in notes if not note.startswith("tried")] == ["a begins", "a ends", "b begins", "b ends"]
    assert notes.index("a begins") < notes.index("tried begins") < notes.index("a ends")
    assert [one.process.returncode for one in ones] == [0, 0]


def test_what_learns_too_long_packs_what_it_has_and_no_other_begins(script: Script, tmp_path: Path) -> None:
    card = script("scene_text_card")
    ones = [learner(card, tmp_path, name, "compiling", 60.0) for name in ("a", "b")]
    began = time.monotonic()
    card.train(ones, [learner(card, tmp_path, "tried", "")], 2.0)
    assert time.monotonic() - began < 30
    assert (tmp_path / "notes").read_text().splitlines() == ["a begins", "a packs"]  # nothing was planned
    assert [one.stands() for one in ones] == ["a: cut with 0; compiling", "b: not begun"]


def test_nobody_who_listens_is_no_reason_to_stop(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = script("scene_text_card")

    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", gone)
    monkeypatch.setattr(card, "TELL", 0.0)
    card.train([learner(card, tmp_path, "a", "", 0.5)], [], 60.0)
    assert (tmp_path / "notes").read_text().splitlines() == ["a begins", "a ends"]


def test_more_than_there_is_time_for_is_refused(script: Script, tmp_path: Path) -> None:
    for name in ("fonts", "words"):
        (tmp_path / name).touch()
    given = ["--latin", "fonts", "--english", "words", "--out", "out", "--work", "work", "--until", "600"]
    made = subprocess.run(
        [sys.executable, str(FOLDER / "scene_text_card.py"), *given, "permuted=8", "crnn=3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 1
    assert "about 12.4 minutes are needed, and --until leaves 10.0" in made.stderr
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("way", ["plain", "up and down again", "link", "another link"])
def test_who_trains_cannot_open_the_test_set(script: Script, tmp_path: Path, way: str) -> None:
    """By whatever name; other files can be opened."""
    place = tmp_path / "shared" / "data" / "scene-text"
    place.mkdir(parents=True)
    (place / "labels.txt").write_text("secret")
    (place.parent / "words.txt").write_text("harmless")
    (tmp_path / "link").symlink_to(place)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "shared").mkdir(parents=True)
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "labels.txt").write_text("secret")
    (elsewhere / "shared" / "data").mkdir()
    (elsewhere / "shared" / "data" / "scene-text").symlink_to(tmp_path / "real")
    file = {
        "plain": place / "labels.txt",
        "up and down again": place.parent / ".." / "data" / "scene-text" / "labels.txt",
        "link": tmp_path / "link" / "labels.txt",
        "another link": elsewhere / "shared" / "data" / "scene-text" / "labels.txt",
    }[way]
    code = (
        "import sys; from scene_text_words import refuse_test_data; refuse_test_data()\n"
        "print(open(sys.argv[1]).read()); print(open(sys.argv[2]).read())"
    )
    given = [sys.executable, "-c", code, str(place.parent / "words.txt"), str(file)]
    made = subprocess.run(given, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(FOLDER)})
    assert made.stdout == "harmless\n"
    assert made.returncode == 1
    assert "labels.txt: the test set, which training must not see" in made.stderr


def test_what_came_of_it_travels_in_parts(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = script("scene_text_pack")
    monkeypatch.setattr(pack, "PART", 1000)
    source, parts, joined = tmp_path / "out", tmp_path / "parts", tmp_path / "joined"
    source.mkdir()
    (source / "reader.tar").write_bytes(random.Random(0).randbytes(11_500))
    (source / "reader.json").write_text('{"updates": 3}')
    pack.back(Namespace(source=source, out=parts))
    assert len(list(parts.iterdir())) == 12  # back.10 comes after back.9
    pack.join(Namespace(source=parts, out=joined))
    for path in source.iterdir():
        assert (joined / path.name).read_bytes() == path.read_bytes()


def test_a_pack_that_was_not_carried_is_told(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = script("scene_text_pack")
    monkeypatch.setattr(pack, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"lacks deps\.tar\.xz, fonts\.tar\.xz, words\.tar\.xz"):
        pack.unpack(Namespace(out=tmp_path / "there"))
