"""What there is room for."""

from __future__ import annotations

from typing import Any

import pytest

from jumok.errors import BadInput
from jumok.serve.waiting import Room


@pytest.mark.parametrize(
    "given",
    [{"waiting": 0}, {"tokens": 0}, {"sentences": -1}, {"wait": -1.0}, {"wait": float("nan")}, {"seconds": 0.0},
     {"seconds": float("inf")}],
)  # fmt: skip
def test_what_is_no_room_is_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(BadInput, match=name):
        Room(**given)
