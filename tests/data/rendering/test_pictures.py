"""Rendered words as pictures with their texts: the same ones every time, however many are asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from word_runs import words_recipe

from jumok.data.rendering.pictures import ROWS, rendered, with_texts
from jumok.data.rendering.rendered import RenderedWords
from jumok.recipe import Recipe
from jumok.text.charset import Charset


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return words_recipe({"colour": 1.0, "blur": 1.0, "noise": 1.0})


def made(recipe: Recipe, count: int, seed: int, split: str = "train") -> list[tuple[np.ndarray, str]]:
    charset = Charset.of(recipe.charset)
    return list(with_texts(rendered(recipe, charset, split, count, seed), charset))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, ROWS, ROWS + 3])
def test_as_many_as_asked_for_in_batches(recipe: Recipe, count: int, seed: int) -> None:
    batches = list(rendered(recipe, Charset.of(recipe.charset), "valid", count, seed))
    assert [len(one) for one in batches] == [ROWS] * (count // ROWS) + [count % ROWS] * bool(count % ROWS)
    assert [index for one in batches for index in one.indices] == list(range(count))
    assert all(one.images.dtype == torch.uint8 and one.images.shape[1:] == (1, 32, 48) for one in batches)
    assert all(len(one.ids) == len(one.lengths) == len(one.images) for one in batches)


def test_fewer_of_a_seed_are_the_first_of_more(recipe: Recipe, seed: int) -> None:
    few, many, others = made(recipe, 5, seed), made(recipe, ROWS + 5, seed), made(recipe, 5, seed + 1)
    assert [text for _, text in many[:5]] == [text for _, text in few]
    assert all((one == other).all() for (one, _), (other, _) in zip(few, many[:5], strict=True))
    assert any((one != other).any() for (one, _), (other, _) in zip(few, others, strict=True))
    # the second batch has draws of its own
    assert any((one != other).any() for (one, _), (other, _) in zip(many[:5], many[ROWS:], strict=True))


def test_a_picture_comes_with_what_it_says(recipe: Recipe, seed: int) -> None:
    charset = Charset.of(recipe.charset)
    words = RenderedWords(recipe.render, charset, 3, "test")
    pairs = made(recipe, 20, seed, "test")
    assert [text for _, text in pairs] == [words.text(number, seed) for number in range(20)]
    assert all(pixels.shape == (32, 48, 1) and pixels.flags["C_CONTIGUOUS"] for pixels, _ in pairs)


def test_the_draws_of_training_are_left_alone(recipe: Recipe, seed: int) -> None:
    before = torch.get_rng_state()
    made(recipe, 3, seed)
    assert torch.equal(torch.get_rng_state(), before)
