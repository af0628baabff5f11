"""Positions against their papers' formulas, written out plainly."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import BadInput
from jumok.layers.position import Learned, RelativeBias, Rotary, Sinusoidal, rotate


def paper(position: int, place: int, width: int) -> float:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d))"""
    angle = position / 10000 ** (2 * (place // 2) / width)
    return math.sin(angle) if place % 2 == 0 else math.cos(angle)


@pytest.mark.parametrize("width", [2, 6, 512])
def test_sinusoids_are_the_papers(width: int) -> None:
    positions = torch.tensor([0, 1, 7, 255, 256, 4999])  # beyond what the table begins with, too
    plain, halves = Sinusoidal(width), Sinusoidal(width, halves=True)
    for table in (plain, halves):
        table.reach(5000)
    expected = torch.tensor(
        [[paper(position, place, width) for place in range(width)] for position in positions.tolist()]
    )
    torch.testing.assert_close(plain(positions), expected, atol=1e-6, rtol=0)
    order = [*range(0, width, 2), *range(1, width, 2)]  # all sines, then all cosines
    torch.testing.assert_close(halves(positions), expected[:, order], atol=1e-6, rtol=0)
    assert plain.state_dict() == {}  # follows from the formula: nothing to store


def test_a_table_grows_without_changing_what_was_there() -> None:
    table = Sinusoidal(8)
    before = table(torch.arange(256))
    table.reach(257)
    assert torch.equal(table(torch.arange(256)), before)
    rows = len(table.rows)
    table.reach(rows)
    assert len(table.rows) == rows  # it was long enough


def turned(x: torch.Tensor, rotary: Rotary, position: int) -> torch.Tensor:
    rotary.reach(position + 1)
    return rotate(x[None, None, None], rotary(torch.tensor([position])))[0, 0, 0]


@given(st.integers(0, 600), st.integers(0, 600), st.integers(1, 400), st.sampled_from([2, 8, 64]))
def test_a_product_of_turned_vectors_depends_on_their_distance_alone(a: int, b: int, shift: int, width: int) -> None:
    rotary, query, key = Rotary(width), torch.randn(width), torch.randn(width)
    product = turned(query, rotary, a) @ turned(key, rotary, b)
    moved = turned(query, rotary, a + shift) @ turned(key, rotary, b + shift)
    size = query.norm() * key.norm()
    torch.testing.assert_close(moved / size, product / size, atol=1e-4, rtol=0)
    torch.testing.assert_close(turned(query, rotary, a).norm(), query.norm())  # turned, not stretched


def test_turning_is_multiplication_by_a_unit_complex_number() -> None:
    """(x_i + j x_(i+d/2)) · e^(j pos θ_i), θ_i = 10000^(-2i/d); a different distance gives a different product."""
    width, position = 16, 37
    x, rotary = torch.randn(width), Rotary(width)
    theta = torch.tensor([10000 ** (-2 * i / width) for i in range(width // 2)])
    expected = torch.complex(x[:8], x[8:]) * torch.exp(1j * position * theta)
    found = turned(x, rotary, position)
    torch.testing.assert_close(torch.complex(found[:8], found[8:]), expected, atol=1e-5, rtol=1e-5)
    ones = torch.ones(width)  # of random vectors the pairs that turn quickly may be next to nothing
    products = torch.stack([turned(ones, rotary, 0) @ turned(ones, rotary, distance) for distance in range(20)])
    assert products.std() > 1


def test_rows_that_stand_at_their_own_positions() -> None:
    rotary, x = Rotary(6), torch.randn(3, 1, 2, 6)
    together = rotate(x, rotary(torch.tensor([[4], [0], [9]])))
    for row, position in enumerate((4, 0, 9)):
        torch.testing.assert_close(together[row], rotate(x[[row]], rotary(torch.tensor([position])))[0])


def t5_bucket(distance: int, both_ways: bool, buckets: int, farthest: int) -> int:
    """The T5 definition in whole numbers: the k-th far bucket begins where (n / near)^far ≥ (farthest / near)^k."""
    first = 0
    if both_ways:
        buckets //= 2
        first = buckets if distance > 0 else 0
        steps = abs(distance)
    else:
        steps = max(0, -distance)  # what lies ahead is as near as itself; a causal mask hides it anyway
    near = buckets // 2
    if steps < near:
        return first + steps
    far = buckets - near
    k = max(k for k in range(far) if steps**far * near**k >= farthest**k * near**far)
    return first + near + k


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (16, 64), (32, 1000)])
def test_buckets_are_those_of_t5(both_ways: bool, buckets: int, farthest: int) -> None:
    bias = RelativeBias(3, both_ways, buckets, farthest)
    distances = torch.arange(-3 * farthest, 3 * farthest + 1)
    found = bias.bucket(distances).tolist()
    assert found == [t5_bucket(distance, both_ways, buckets, farthest) for distance in distances.tolist()]


def test_the_bias_is_one_number_for_each_head_and_bucket() -> None:
    bias = RelativeBias(4, both_ways=False)
    torch.nn.init.normal_(bias.weight.weight)
    queries, keys = torch.tensor([[5], [2]]), torch.arange(6)
    found = bias(queries, keys)
    assert found.shape == (2, 4, 1, 6)
    for row, query in enumerate((5, 2)):
        for key in range(6):
            torch.testing.assert_close(
                found[row, :, 0, key], bias.weight.weight[t5_bucket(key - query, False, 32, 128)]
            )
    torch.testing.assert_close(bias(torch.arange(6), keys)[0, :, 5], found[0, :, 0])
    assert not RelativeBias(4, both_ways=True).weight.weight.any()  # starts as no preference at all


def test_learned_positions_say_where_they_end() -> None:
    positions = Learned(8, 12)
    positions.reach(12)
    assert positions(torch.tensor([0, 11])).shape == (2, 8)
    with pytest.raises(BadInput, match=r"end at 12 tokens \(model\.max_positions\), 13 were asked for"):
        positions.reach(13)
