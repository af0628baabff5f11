"""Ground and ink: far enough apart to be read, and each picture with its own."""

from __future__ import annotations

import torch

from jumok.data.rendering.painting import LEAST_CONTRAST, colours, edges, gradient, strokes, texture, uniform

CPU = torch.device("cpu")
SIZE = (16, 48)


def test_uniform_is_within_its_bounds() -> None:
    drawn = uniform(2000, -3, 5, CPU)
    assert -3 <= float(drawn.min()) < -2.5
    assert 4.5 < float(drawn.max()) <= 5
    assert abs(float(drawn.mean()) - 1) < 0.4


def test_ink_and_ground_differ_enough() -> None:
    ink, ground = colours(5000, CPU)
    assert min(float(ink.min()), float(ground.min())) >= 0
    assert max(float(ink.max()), float(ground.max())) <= 255
    apart = (ink - ground).abs().amax(dim=1)
    assert float(apart.min()) >= LEAST_CONTRAST - 1e-3
    far = (ink.mean(dim=1) - ground.mean(dim=1)).abs()
    assert float(far.median()) > 110  # most are painted to be read
    lighter = float((ink.mean(dim=1) > ground.mean(dim=1)).float().mean())
    assert 0.45 < lighter < 0.55  # light on dark as often as dark on light
    assert float(ground.std(dim=1).max()) > 30  # some are far from grey
    assert float(ground.std(dim=1).median()) < 30  # most are not


def test_a_gradient_has_its_colour_in_the_middle_and_on_the_whole() -> None:
    colour = 255 * torch.rand(40, 3)
    strength = torch.ones(40)
    strength[:10] = 0
    made = gradient(colour, strength, SIZE)
    assert made.shape == (40, 3, *SIZE)
    torch.testing.assert_close(made.mean(dim=(2, 3)), colour, atol=1e-2, rtol=0)
    assert (made[:10] == colour[:10, :, None, None]).all()
    assert (made[10:].flatten(1).std(dim=1) > 0).all()
    # a plane: it rises by the same from each row to the next, and from each column
    for side in (2, 3):
        steps = made.diff(dim=side)
        torch.testing.assert_close(steps, steps.select(side, 0).unsqueeze(side).expand_as(steps), atol=1e-3, rtol=0)


def test_textures_differ_from_picture_to_picture() -> None:
    made = texture(200, SIZE, CPU)
    assert made.shape == (200, 1, *SIZE)
    assert abs(float(made.mean())) < 0.15
    assert 0.3 < float(made.std()) < 1.0
    assert (made[1:] != made[:-1]).flatten(1).any(dim=1).all()
    assert float(made.diff(dim=3).abs().mean()) < 0.5 * float(made.std())  # smooth: neighbours are alike


def test_an_edge_changes_one_side_by_one_colour() -> None:
    plain = torch.full((100, 3, *SIZE), 100.0)
    change = edges(plain) - plain
    most = change.abs().flatten(2).amax(dim=2)
    assert (most > 1).any(dim=1).float().mean() > 0.8  # an edge that lies outside of the picture changes nothing
    share = change / torch.where(change.abs().amax(dim=(2, 3), keepdim=True) < 1, torch.inf, most[..., None, None])
    full = (share.abs() > 0.99).float().mean(dim=(2, 3))
    none = (share.abs() < 0.01).float().mean(dim=(2, 3))
    assert float((full + none)[most > 1].median()) > 0.7  # hardly anything between the two sides
    assert float(none[most > 1].mean()) > 0.4  # the middle of the picture is on the side that stays


def test_strokes_are_thin_lines() -> None:
    made = strokes(SIZE, 500, CPU)
    assert made.shape == (500, 1, *SIZE)
    assert float(made.min()) >= 0
    assert float(made.max()) <= 1
    covered = made.mean(dim=(1, 2, 3))
    assert float(covered.max()) < 0.25
    assert float((covered > 0).float().mean()) > 0.95
    rows, columns = (made.amax(dim=side)[:, 0] > 0 for side in (3, 2))
    across = columns.float().mean(dim=1) > 0.99  # from one side to the other, or from above to below
    down = rows.float().mean(dim=1) > 0.99
    assert float((across | down).float().mean()) > 0.8
    assert across.any()
    assert (down & ~across).any()
