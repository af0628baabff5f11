"""Folders that are being made: whole or not there, also after a kill, a full disk, or beside another maker."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from jumok.errors import BadInput, Failure
from jumok.interop import export_folder
from jumok.interop.export_folder import MARK, new_folder, save_weights
from jumok.interop.growing import growing

MAKER = """
import sys, time
from pathlib import Path
from jumok.interop.export_folder import new_folder
with new_folder(Path(sys.argv[1]), "test") as folder:
    (folder / "half").write_text("x")
    print("begun", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_maker_left_goes_and_a_living_ones_stays(tmp_path: Path) -> None:
    makers = [
        subprocess.Popen([sys.executable, "-c", MAKER, str(tmp_path / "out")], stdout=subprocess.PIPE) for _ in range(2)
    ]
    try:
        for maker in makers:
            assert maker.stdout is not None
            assert maker.stdout.readline() == b"begun\n"
        dead, living = makers
        os.kill(dead.pid, signal.SIGKILL)
        dead.wait()
        assert len(list(tmp_path.glob(".exporting-out-*/half"))) == 2
        with new_folder(tmp_path / "out", "test") as folder:
            (folder / "whole").write_text("x")
        left = list(tmp_path.glob(".exporting-out-*/half"))
        assert [f"-{living.pid}-" in str(one) for one in left] == [True]
    finally:
        for maker in makers:
            maker.kill()
            maker.communicate()
    with new_folder(tmp_path / "out", "test"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def half(out: Path, error: Exception) -> None:
    with new_folder(out, "test") as folder:
        (folder / "x").write_text("half")
        raise error


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b" / "out"
    with pytest.raises(RuntimeError):
        half(out, RuntimeError())
    assert list(tmp_path.iterdir()) == []
    with new_folder(out, "test") as folder:
        (folder / "x").write_text("first")
    with pytest.raises(Failure, match="no space left"):
        half(out, OSError(errno.ENOSPC, "No space left on device"))
    assert (out / "x").read_text() == "first"
    with new_folder(out, "test") as folder:
        (folder / "x").write_text("third")
    assert (out / "x").read_text() == "third"
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_link_stays_and_what_it_leads_to_is_made(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for _ in range(2):
        with new_folder(tmp_path / "link", "test"):
            pass
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real" / MARK).is_file()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_the_folder_that_one_is_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place in (Path(), tmp_path / "here"):
        with pytest.raises(BadInput, match="you are in this folder"), new_folder(place, "test"):
            pass
    with new_folder(Path("model"), "test"):
        pass
    assert Path("model", MARK).is_file()


def test_names_with_signs_of_patterns(tmp_path: Path) -> None:
    place = tmp_path / "a[b]*"
    with growing(place, "testing") as folder:
        folder.mkdir()
        (tmp_path / ".testing-a[b]*-1.lock").touch()
        (tmp_path / ".testing-a[b]*-1").mkdir()
        with growing(place, "testing"):
            assert not (tmp_path / ".testing-a[b]*-1").exists()
            assert folder.is_dir()
        folder.rename(place)
    assert list(tmp_path.iterdir()) == [place]


def test_weights_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object, **_named: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(export_folder, "save_file", full)
    with pytest.raises(Failure, match="no space left on the disk"), new_folder(tmp_path / "out", "test") as folder:
        save_weights({"x": torch.zeros(3)}, folder / "x")
    assert list(tmp_path.iterdir()) == []
