"""The times of a series: as moments that can be compared, and continued beyond the last one."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

Moment = float | datetime
MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
COMMON = 0.9  # of all steps must be equal for the next ones to be known
LOOKED_AT = 1000  # of the last times, for their step


def is_date(text: str) -> bool:
    """An ISO date (with or without a time of day, or a month alone), not a plain number."""
    return isinstance(_moment(text), datetime)


def moments(times: Sequence[str]) -> list[Any] | None:
    """Numbers or dates; None where some are neither, or both kinds (or dates with and without a zone) are mixed."""
    known = [_moment(text) for text in times]
    numbers = [moment for moment in known if isinstance(moment, float)]
    dates = [moment for moment in known if isinstance(moment, datetime)]
    if known and len(numbers) == len(known):
        return numbers
    one_clock = len({date.tzinfo is None for date in dates}) == 1
    return dates if one_clock and len(dates) == len(known) else None


def _moment(text: str) -> Moment | None:
    if NUMBER.fullmatch(text):
        return float(text)
    try:
        return datetime.fromisoformat(f"{text}-01" if MONTH.fullmatch(text) else text)
    except ValueError:
        return None


def continued(times: Sequence[str], count: int) -> list[str] | None:
    """The next `count` times, written like the last one; None where their step cannot be told."""
    known = moments(times[-LOOKED_AT:])
    if known is None or len(known) < 2:
        return None
    last = known[-1]
    try:
        if isinstance(last, float):
            step = _usual([round(b - a, 9) for a, b in pairwise(known)])
            return None if step is None else [f"{last + step * number:.12g}" for number in range(1, count + 1)]
        months = _months(known)
        if months is not None:
            after = [_add_months(last, months * number) for number in range(1, count + 1)]
        else:
            seconds = _usual([(b - a).total_seconds() for a, b in pairwise(known)])
            if seconds is None:
                return None
            after = [last + timedelta(seconds=seconds * number) for number in range(1, count + 1)]
    except (OverflowError, ValueError):  # beyond the calendar's last year
        return None
    return [_written(moment, times[-1]) for moment in after]


def _usual(steps: Sequence[float]) -> float | None:
    """The step that (nearly) all have."""
    common = max(set(steps), key=steps.count)
    return common if steps.count(common) >= COMMON * len(steps) else None


def _months(dates: Sequence[datetime]) -> int | None:
    """How many months lie between two dates, where all stand on the same day of their months, or on the last."""
    same_day = len({(moment.day, moment.time()) for moment in dates}) == 1
    if not same_day and not all(map(_ends_month, dates)):
        return None
    steps = {(b.year - a.year) * 12 + b.month - a.month for a, b in pairwise(dates)}
    return steps.pop() if len(steps) == 1 and steps != {0} else None


def _ends_month(moment: datetime) -> bool:
    return moment.day == monthrange(moment.year, moment.month)[1]


def _add_months(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=last if _ends_month(moment) else min(moment.day, last))


def _written(moment: datetime, like: str) -> str:
    """With as many parts as the series itself has: 2024-05, 2024-05-31, 2024-05-31 10:00 …"""
    if MONTH.fullmatch(like):
        return f"{moment:%Y-%m}"
    if len(like) <= 10:
        return f"{moment:%Y-%m-%d}" if "-" in like else f"{moment:%Y%m%d}"
    separator = like[10] if not like[10].isdigit() else "T"
    exact = "minutes" if re.fullmatch(r".{11}[0-9]{2}:[0-9]{2}(Z|[+-][0-9:]+)?", like) else "auto"
    text = moment.isoformat(separator, exact)
    return text.removesuffix("+00:00") + "Z" if like.endswith("Z") else text
