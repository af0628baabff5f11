"""Words that are asked for: drawn as the recipe renders, the same again, and refused in words where that cannot be."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from word_runs import words_recipe

from jumok.data.rendering.asked import AskedWords
from jumok.errors import BadInput
from jumok.text.charset import Charset


@pytest.fixture(scope="module")
def words() -> AskedWords:
    recipe = words_recipe(render={"noise": 0.5, "colour": 1.0}, max_length=6)
    return AskedWords(recipe, Charset.of(recipe.charset))


def test_a_word_is_drawn_the_same_again(words: AskedWords) -> None:
    text = "".join(random.choices("0123456789", k=random.randint(2, 6)))
    number = random.randrange(2**31)
    state = torch.random.get_rng_state()
    (once, centres), (again, _) = words.draw(text, number), words.draw(text, number)
    assert torch.equal(state, torch.random.get_rng_state())  # nobody else's draws are moved
    assert once.shape == (32, 48, 1)
    assert np.array_equal(once, again)
    assert not np.array_equal(once, words.draw(text, number + 1)[0])
    assert centres.shape == (len(text), 2)
    assert (np.diff(centres[:, 0]) > 0).all()  # from left to right


def test_numbers_draw_other_fonts(words: AskedWords) -> None:
    places = np.array([1, 2, 3])
    found = {tuple(words._glyphs(places, number)) for number in range(40)}
    assert len(found) > 1 or len(words.atlas.index) == 1
    assert found <= {tuple(row[places]) for row in words.atlas.index}  # all letters of a word are of one font


def test_letters_that_no_font_has_together_come_from_several(
    words: AskedWords, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = np.array([[1, 0, 2], [0, 3, 0]])
    monkeypatch.setattr(words.atlas, "index", index)
    assert words._glyphs(np.array([0, 1, 2]), 5).tolist() == [1, 3, 2]
    monkeypatch.setattr(words.atlas, "index", np.array([[1, 0, 2]]))
    with pytest.raises(BadInput, match="no font here draws 1"):
        words._glyphs(np.array([0, 1]), 5)


def test_what_cannot_be_drawn_is_said(words: AskedWords) -> None:
    for text, told in (
        ("", "nothing to draw"),
        ("1" * 7, "at most 6"),
        ("1a", "latin small letter a"),
        ("1\n", "U\\+000A"),
    ):
        with pytest.raises(BadInput, match=told):
            words.draw(text)


def test_examples_are_words_of_testing(words: AskedWords) -> None:
    found = words.examples(5)
    assert len(set(found)) == len(found) == 5
    assert all(words.ids(text).size for text in found)
