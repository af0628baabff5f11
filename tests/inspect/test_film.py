from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image, ImageSequence

from jumok.errors import BadInput, Failure
from jumok.inspect.attention import Attention
from jumok.inspect.drawing import ink_and_paper
from jumok.inspect.film import END, START, STEP, _Stage, film, write_film

Make = Callable[..., Attention]


def frames(moving: bytes) -> list[np.ndarray]:
    image = Image.open(io.BytesIO(moving))
    return [np.asarray(frame.convert("RGB")).astype(int) for frame in ImageSequence.Iterator(image)]


def area(frame: np.ndarray, weight: float) -> int:
    wanted = np.array(matplotlib.colormaps["cividis"](weight)[:3]) * 255
    return int((np.abs(frame - wanted).max(axis=2) <= 3).sum())


@pytest.mark.parametrize("dark", [False, True])
def test_a_row_appears_with_each_word(dark: bool) -> None:
    weights = np.full((3, 4), 0.25)
    moving = film(Attention(tuple("abcd"), ("u", "v", "w"), weights), dark=dark)
    shown = frames(moving)
    assert len(shown) == 4
    sizes = [area(frame, 0.25) for frame in shown]
    rows = np.diff(sizes)
    assert (rows > 2000).all()
    assert rows.max() / rows.min() < 1.1  # each row as large as the one before
    paper = [int(matplotlib.colors.to_rgb(ink_and_paper(dark)[1])[channel] * 255 + 0.5) for channel in range(3)]
    assert all(frame[1, 1].tolist() == paper for frame in shown)


def test_it_loops_at_a_speed_one_can_read(make_attention: Make) -> None:
    image = Image.open(io.BytesIO(film(make_attention(3, 3))))
    assert image.info["loop"] == 0
    times = []
    for number in range(image.n_frames):
        image.seek(number)
        times.append(image.info["duration"])
    assert times == [START, STEP, STEP, END]


def test_the_same_input_gives_the_same_bytes(make_attention: Make) -> None:
    attention = make_attention(["$x$", "<b>"], ["une", "phrase"])
    first = film(attention, title="$\\frac{$")
    assert first == film(attention, title="$\\frac{$")
    assert first != film(attention, title="$\\frac{$", dark=True)


def test_a_word_that_is_looked_at_stays_dark_and_one_without_a_number_too() -> None:
    weights = np.array([[0.99, 0.01, np.nan]])
    one = _Stage(Attention(("a", "b", "c"), ("x",), weights), "", dark=False)
    one.frame(1)
    assert [label.get_alpha() for label in one.keys] == [1.0, 0.35, 1.0]


def test_what_cannot_be_shown_is_said(make_attention: Make, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="empty"):
        film(make_attention(2, 0))
    with pytest.raises(BadInput, match="html"):
        film(make_attention(61, 2))
    with pytest.raises(Failure, match="nowhere"):
        write_film(tmp_path / "nowhere" / "x.gif", make_attention(2, 2))
