"""Commands in this process, as a user types them: what the fixture `ask` of tests/cli gives, and what a refusal is."""

from __future__ import annotations

from collections.abc import Callable

Asked = tuple[int, str, str]
Ask = Callable[..., Asked]


def refused(asked: Asked, *words: str, code: int = 2) -> None:
    assert asked[0] == code, asked
    for word in words:
        assert word in asked[2], asked[2]
