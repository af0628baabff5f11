"""The way between a line of letters and its picture."""

from __future__ import annotations

import torch

from jumok.data.rendering.geometry import Camera, View
from jumok.data.rendering.table import Line


def lines(count: int) -> Line:
    left, top = torch.rand(count) * 20, torch.rand(count) * 10
    empty = torch.zeros(count, 1)
    wide, high = 10 + 300 * torch.rand(count), 10 + 30 * torch.rand(count)
    return Line(empty.long(), empty, empty, left, left + wide, top, top + high)


def views(count: int, strength: float = 1.0) -> View:
    def drawn(reach: float) -> torch.Tensor:
        return strength * reach * (2 * torch.rand(count) - 1)

    bend = drawn(2.4)
    bend = torch.where(bend.abs() < 0.01, 0.01, bend)
    return View(bend, drawn(0.3), drawn(0.4), drawn(0.3), drawn(0.25), torch.rand(count, 4) * 0.3)


def inside(line: Line, share_x: torch.Tensor, share_y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x = line.left[:, None] + share_x * (line.right - line.left)[:, None]
    return x, line.top[:, None] + share_y * (line.bottom - line.top)[:, None]


def test_there_and_back(seed: int) -> None:
    torch.manual_seed(seed)
    line = lines(200)
    camera = Camera(line, views(200))
    x, y = inside(line, torch.rand(200, 30), torch.rand(200, 30))
    back_x, back_y = camera.to_line(*camera.to_picture(x, y))
    scale = (line.right - line.left)[:, None]
    assert ((back_x - x).abs() / scale).max() < 1e-3
    assert ((back_y - y).abs() / scale).max() < 1e-3


def test_all_of_the_line_is_in_the_picture(seed: int) -> None:
    torch.manual_seed(seed)
    line = lines(200)
    camera = Camera(line, views(200))
    x, y = camera.to_picture(*inside(line, torch.rand(200, 60), torch.rand(200, 60)))
    # the box is found from nine points along each edge: between two of them an arc may stand out a little
    assert x.min() > -0.02
    assert x.max() < 1.02
    assert y.min() > -0.05
    assert y.max() < 1.05


def test_seen_from_the_front_a_line_fills_its_margins() -> None:
    line = lines(20)
    still = views(20, 0.0)
    margins = torch.tensor([0.1, 0.2, 0.3, 0.4]).expand(20, 4)
    camera = Camera(line, View(torch.full((20,), 1e-2), *(still.angle,) * 4, margins))
    high, wide = line.bottom - line.top, line.right - line.left
    x, y = camera.to_picture(*inside(line, torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 1.0]])))
    total = wide + 0.3 * high
    torch.testing.assert_close(x[:, 0], 0.1 * high / total, atol=0.02, rtol=0.0)
    torch.testing.assert_close(x[:, 1], 1 - 0.2 * high / total, atol=0.02, rtol=0.0)
    assert (y[:, 0] > 0.1).all()  # a margin above, and one below
    assert (y[:, 1] < 0.85).all()


def test_an_arc_bends_down_at_both_ends() -> None:
    line = lines(10)
    camera = Camera(line, View(torch.full((10,), 1.5), *(torch.zeros(10),) * 4, torch.zeros(10, 4)))
    _, y = camera.to_picture(*inside(line, torch.tensor([[0.0, 0.5, 1.0]]), torch.tensor([[0.5]])))
    assert (y[:, 1] < y[:, 0]).all()
    torch.testing.assert_close(y[:, 0], y[:, 2], atol=1e-3, rtol=0.0)
