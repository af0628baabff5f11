"""Times of a series: which can be told, and how they go on."""

from __future__ import annotations

import pytest

from jumok.data.series_time import continued, is_date, moments


@pytest.mark.parametrize(
    ("times", "after"),
    [
        (["1", "2", "3"], ["4", "5"]),
        (["0.1", "0.2", "0.30"], ["0.4", "0.5"]),
        (["1958", "1959", "1960"], ["1961", "1962"]),
        (["2024-02-27", "2024-02-28"], ["2024-02-29", "2024-03-01"]),
        (["2024-01", "2024-02", "2024-03"], ["2024-04", "2024-05"]),
        (["2023-10-01", "2023-11-01", "2023-12-01"], ["2024-01-01", "2024-02-01"]),
        (["2023-11-30", "2023-12-31", "2024-01-31"], ["2024-02-29", "2024-03-31"]),  # ends of months
        (["2024-01-01", "2024-04-01", "2024-07-01"], ["2024-10-01", "2025-01-01"]),  # quarters
        (["2023-12-31 22:00", "2023-12-31 23:00"], ["2024-01-01 00:00", "2024-01-01 01:00"]),
        (["2023-12-31T23:59:58", "2023-12-31T23:59:59"], ["2024-01-01T00:00:00", "2024-01-01T00:00:01"]),
        (["2024-01-01T00:00:00Z", "2024-01-01T12:00:00Z"], ["2024-01-02T00:00:00Z", "2024-01-02T12:00:00Z"]),
        (["Monday", "Tuesday"], None),
        (["2024-01-01", "2024-01-02", "2024-01-05"], None),  # no step that nearly all have
        (["9999-12-30", "9999-12-31"], None),  # the calendar ends
        (["2024-01-01"], None),
        ([], None),
    ],
)
def test_times_go_on_as_they_are_written(times: list[str], after: list[str] | None) -> None:
    assert continued(times, 2) == after


def test_one_gap_in_many_does_not_matter() -> None:
    times = [f"2024-03-{day:02d}" for day in range(1, 29) if day != 13]
    assert continued(times, 1) == ["2024-03-29"]


def test_mixed_times_cannot_be_compared() -> None:
    assert moments(["1", "2024-01-01"]) is None
    assert moments(["2024-01-01T00:00:00", "2024-01-01T00:00:00Z"]) is None
    assert is_date("2024-01")
    assert not is_date("20240101")
    assert not is_date("12.5")
