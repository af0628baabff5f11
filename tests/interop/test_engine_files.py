"""Where the files of other engines lie."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import pytest

from jumok.interop import engine_files
from jumok.interop.engine_files import place_of
from jumok.training.run import RunFolder


def test_in_the_run_where_it_can_be_written_to(tmp_path: Path) -> None:
    assert place_of(RunFolder(tmp_path), "onnx", "int8") == tmp_path / "engines" / "onnx-int8"


def test_of_the_run_in_the_package_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))
    packaged = Path(str(resources.files("jumok"))) / "pretrained" / "en-fr"
    place = place_of(RunFolder(packaged), "onnx", "float32")
    assert tmp_path in place.parents
    assert place.name == "onnx-float32"


def test_of_runs_that_cannot_be_written_to_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the same name do not share a place."""
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(engine_files.os, "access", lambda path, mode: mode != os.W_OK)
    runs = [tmp_path / one / "small" for one in ("a", "b")]
    places = {place_of(RunFolder(run), "ct2", "float32") for run in runs}
    assert len(places) == 2
    assert all(tmp_path / "cache" in place.parents for place in places)
