"""Files by their endings, numbers that come back, and lines for any terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from looking_words import frames, pointing
from PIL import Image
from rich.console import Console

from jumok.errors import BadInput
from jumok.inspect.reading_drift import drift_of
from jumok.inspect.reading_files import BLOCKS, lines, show, to_json, write_frames


def test_numbers_come_back() -> None:
    shown = [
        frames("3가", name="a.png"),
        frames("1", characters=(), confidences=(), maps=np.zeros((0, 2, 8), np.float32)),
    ]
    told = json.loads(to_json(shown))
    assert told["format"] == 1
    first, empty = told["pictures"]
    assert (first["name"], first["text"], first["grid"], first["size"]) == ("a.png", "3가", [2, 8], [20, 50])
    drift = drift_of(shown[0])
    for number, one in enumerate(first["characters"]):
        np.testing.assert_allclose(one["weights"], shown[0].maps[number], atol=1e-6)
        np.testing.assert_allclose(one["centre"], shown[0].centres[number], atol=1e-5)
        assert one["drift"] == pytest.approx(drift.widths[number], abs=1e-5)
        assert one["drift_share"] == pytest.approx(drift.shares[number], abs=1e-5)
        assert one["probability"] == pytest.approx(shown[0].confidences[number], abs=1e-5)
    assert first["drift"]["mean"] == pytest.approx(drift.mean)
    assert (empty["text"], empty["characters"], empty["drift"]["mean"]) == ("", [], None)


def test_a_strip_points_where_a_character_looked() -> None:
    text = lines([pointing([0, 3, 9], 10, characters=("a", "한", " "))])
    rows = [line for line in text.splitlines() if "|" in line]
    strips = [line.split("|")[1] for line in rows]
    assert [strip.index("█") for strip in strips] == [0, 3, 9]
    assert all(strip.count(" ") == 9 for strip in strips)
    assert rows[0].startswith("  a  ")
    assert rows[1].startswith("  한 ")
    assert rows[2].startswith("  _  ")
    assert "drift  −0.35" in rows[0]
    assert "if they stand evenly" in text


def test_many_columns_share_cells_and_ascii_is_enough() -> None:
    wide = pointing([0, 199], 200, characters=("한", "b"))
    text = lines([wide], "ascii")
    assert text.isascii()
    assert "\\ud55c" in text
    assert "drift  -0.5" not in lines([wide])
    strips = [line.split("|")[1] for line in text.splitlines() if "|" in line]
    assert [len(strip) for strip in strips] == [64, 64]
    assert [strip.index("@") for strip in strips] == [0, 63]
    assert not set(BLOCKS[1:]) & set(text)


def test_what_steers_a_terminal_is_shown() -> None:
    bad = frames("1", characters=("\x1b",), name="a\x1b[31m.png")
    text = lines([bad])
    assert "\x1b" not in text
    written = io.StringIO()
    show([bad], Console(file=written))
    assert written.getvalue() == text


@pytest.mark.parametrize("ending", [".html", ".png", ".svg", ".json"])
def test_the_ending_decides(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"look{ending.upper()}"
    write_frames([frames(), frames()], file)
    content = file.read_bytes()
    if ending == ".png":
        with Image.open(io.BytesIO(content)) as picture:
            picture.verify()
    else:
        begins = {".html": b"<!DOCTYPE html>", ".svg": b"<?xml", ".json": b'{"format": 1'}[ending]
        assert content.startswith(begins)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none of \.html, \.png, \.svg, \.json"):
        write_frames([frames()], tmp_path / "x.gif")
    with pytest.raises(BadInput, match="no folder"):
        write_frames([frames()], tmp_path / "nowhere" / "x.png")
