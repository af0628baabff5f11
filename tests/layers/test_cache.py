"""The cache against a plain list of each row's tokens, through any order of steps, choices and joins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from jumok.layers.cache import KeyValueCache, stacked
from jumok.layers.multihead import KeyValue

LAYERS, GROUPS, WIDTH = 2, 2, 3


def number(token: int, layer: int, part: int) -> Tensor:
    """What a token's key (part 0) or value (part 1) is in a layer: no two alike."""
    return torch.full((GROUPS, WIDTH), 100.0 * token + 10 * layer + part)


@dataclass
class Plain:
    """A cache, and beside it what it should hold: the tokens of each row."""

    cache: KeyValueCache
    rows: list[list[int]] = field(default_factory=list)

    @classmethod
    def start(cls, rows: int, capacity: int) -> Plain:
        return cls(
            KeyValueCache.empty(LAYERS, rows, capacity, GROUPS, WIDTH, torch.zeros(())), [[] for _ in range(rows)]
        )

    def step(self, first: int, tokens: int) -> None:
        """`tokens` more in every row; they are numbered from `first`."""
        fresh = [[first + row * tokens + place for place in range(tokens)] for row in range(len(self.rows))]
        cache = self.cache.with_room(tokens)
        positions = torch.broadcast_to(cache.positions(tokens), (len(self.rows), tokens))
        assert positions.tolist() == [[len(row) + place for place in range(tokens)] for row in self.rows]
        mask = cache.mask(tokens)
        self.rows = [row + new for row, new in zip(self.rows, fresh, strict=True)]
        for layer in range(LAYERS):
            key, value = (
                torch.stack([torch.stack([number(token, layer, part) for token in row]) for row in fresh])
                for part in (0, 1)
            )
            seen = cache.past(layer).extended(KeyValue(key, value))
            for part, tensor in enumerate(seen):
                assert torch.isfinite(tensor).all()  # a masked NaN would still spoil the sum
                for place, row in enumerate(self.rows):
                    length = len(row)
                    expected = torch.stack([number(token, layer, part) for token in row])
                    assert torch.equal(tensor[place, :length], expected)
                    if mask is None:
                        assert tensor.size(1) == length
                    else:  # the last of the new ones sees the row and nothing else, the one before it one less
                        for back in range(tokens):
                            assert mask[place, -1 - back].nonzero().flatten().tolist() == list(range(length - back))
        self.cache = cache.advanced(tokens)

    def select(self, rows: list[int]) -> Plain:
        return Plain(self.cache.select(torch.tensor(rows)), [list(self.rows[row]) for row in rows])


@pytest.fixture
def poison() -> Iterator[None]:
    """Memory that nobody has written holds NaN."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("poison")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_is_done_every_row_sees_its_own_tokens(data: st.DataObject) -> None:
    draw = data.draw
    groups = [Plain.start(draw(st.integers(1, 3)), draw(st.integers(1, 4)))]
    token = 1
    for _ in range(draw(st.integers(4, 12))):
        action = draw(st.sampled_from(["step", "step", "several", "select", "begin", "join"]))
        place = draw(st.integers(0, len(groups) - 1))
        group = groups[place]
        if action in ("step", "several"):
            count = 1 if action == "step" else draw(st.integers(2, 4))
            group.step(token, count)
            token += count * len(group.rows)
        elif action == "select":
            groups[place] = group.select(draw(st.lists(st.integers(0, len(group.rows) - 1), min_size=1, max_size=4)))
        elif action == "begin":
            groups.append(Plain.start(draw(st.integers(1, 2)), draw(st.integers(1, 9))))
        else:
            joined = KeyValueCache.join([part.cache for part in groups])
            groups = [Plain(joined, [row for part in groups for row in part.rows])]
    for group in groups:
        group.step(token, 1)
        token += len(group.rows)


@pytest.mark.usefixtures("poison")
def test_chosen_rows_at_several_positions_see_no_unwritten_memory() -> None:
    first, second = Plain.start(2, 8), Plain.start(1, 8)
    first.step(1, 3)
    joined = Plain(KeyValueCache.join([first.cache, second.cache]), [*first.rows, []])
    chosen = joined.select([2, 0, 2])
    chosen.step(10, 1)
    chosen.step(20, 1)


def test_growing_doubles_and_keeps_what_was_there() -> None:
    plain = Plain.start(2, 3)
    sizes = []
    for step in range(10):
        plain.step(1 + 2 * step, 1)
        sizes.append(plain.cache.store.size(3))
    assert sizes == [3, 3, 3, 6, 6, 6, 12, 12, 12, 12]


def test_rows_that_stand_together_need_no_mask() -> None:
    first, second = Plain.start(1, 4), Plain.start(2, 4)
    first.step(1, 2)
    second.step(5, 2)
    joined = KeyValueCache.join([first.cache, second.cache])
    assert joined.mask(1) is None
    second.step(9, 1)
    assert KeyValueCache.join([first.cache, second.cache]).mask(1) is not None


def test_columns_that_only_the_past_needed_are_dropped() -> None:
    long, short = Plain.start(1, 16), Plain.start(1, 16)
    long.step(1, 9)
    short.step(20, 2)
    both = KeyValueCache.join([long.cache, short.cache])
    assert both.filled == 9
    assert KeyValueCache.join([both.select(torch.tensor([1]))]).filled == 2


def test_stacked_layers() -> None:
    layers = [KeyValue(torch.randn(2, 4, 2, 3), torch.randn(2, 4, 2, 3)) for _ in range(3)]
    store = stacked(layers)
    assert store.shape == (3, 2, 2, 4, 2, 3)
    for number_, layer in enumerate(layers):
        assert torch.equal(store[number_, 0], layer.key)
        assert torch.equal(store[number_, 1], layer.value)
