"""The section `augment` of a recipe: its keys, what they may be, and what is said where they may not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from jumok.recipe.vision import Augmentation


def test_nothing_happens_by_itself() -> None:
    section = Augmentation()
    assert section.model_dump() == {
        "crop": 0,
        "resized_crop": 0.0,
        "beyond": "black",
        "flip": False,
        "rand_augment": 0,
        "magnitude": 9.0,
        "spread": 0.0,
        "colour": 0.0,
        "erase": 0.0,
        "mixup": 0.0,
        "cutmix": 0.0,
        "mix": 1.0,
    }
    assert not section.changes
    assert not section.mixes


def test_every_key_is_described() -> None:
    for name, field in Augmentation.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


@pytest.mark.parametrize(
    ("keys", "changes", "mixes"),
    [
        ({"crop": 4}, True, False),
        ({"flip": True}, True, False),
        ({"resized_crop": 0.1}, True, False),
        ({"rand_augment": 2}, True, False),
        ({"colour": 0.2}, True, False),
        ({"erase": 1}, True, False),
        ({"magnitude": 3}, False, False),
        ({"mixup": 0.2}, False, True),
        ({"cutmix": 1}, False, True),
        ({"cutmix": 1, "mix": 0}, False, False),
    ],
    ids=str,
)
def test_what_is_on(keys: dict[str, Any], changes: bool, mixes: bool) -> None:
    section = Augmentation(**keys)
    assert (section.changes, section.mixes) == (changes, mixes)


@pytest.mark.parametrize(
    "keys",
    [
        {"crop": -1},
        {"crop": 1.5},
        {"resized_crop": 1.0},
        {"resized_crop": -0.1},
        {"rand_augment": 11},
        {"magnitude": 10.5},
        {"magnitude": float("nan")},
        {"colour": 1.1},
        {"erase": 1.01},
        {"mixup": -0.2},
        {"cutmix": float("inf")},
        {"mix": 2},
        {"color": 0.4},
    ],
    ids=str,
)
def test_what_may_not_be(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        Augmentation(**keys)
    assert next(iter(keys)) in str(caught.value)


def test_one_crop() -> None:
    with pytest.raises(ValidationError, match=r"crop 4 and resized_crop 0\.3 both cut"):
        Augmentation(crop=4, resized_crop=0.3)


def test_the_size_of_the_pictures() -> None:
    Augmentation(crop=4).must_fit(32, 5)
    Augmentation(rand_augment=2).must_fit(1, 1)
    with pytest.raises(ValueError, match=r"augment\.crop 32: pictures of 40×32 .* \(4\)"):
        Augmentation(crop=32).must_fit(40, 32)
