"""A library that tests compare with may be missing on a laptop, but not where all tests must run."""

from __future__ import annotations

import json

import pytest
from required import required


@pytest.mark.parametrize(("where", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_what_is_missing_fails_in_ci_and_is_skipped_elsewhere(
    monkeypatch: pytest.MonkeyPatch, where: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", where)
    assert required("json") is json
    with pytest.raises(outcome, match="no_such_library is not installed"):
        required("no_such_library")
