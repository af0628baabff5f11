"""A run's curves, from its metrics: for each quantity its points (update, value), in training and on held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jumok.inspect.curve import series_of
from jumok.studio.streams import Tail
from jumok.training.run import RunFolder

KINDS = ("train", "valid")
LEFT_OUT = {"event", "step", "best", "seconds", "tokens", "sentences", "averaged"}


def curves(events: Sequence[dict[str, Any]]) -> dict[str, dict[str, list[list[float | None]]]]:
    """{"train": {"loss": [[update, value], …], …}, "valid": {…}}, thinned where there are more than one can see."""
    known = [event for event in events if isinstance(event.get("step"), int) and event["step"] >= 0]
    found: dict[str, dict[str, list[list[float | None]]]] = {}
    for kind in KINDS:
        told = [event for event in known if event.get("event") == kind and not event.get("averaged")]
        names = dict.fromkeys(name for event in told for name in event if name not in LEFT_OUT)
        series = {name: series_of(name, name, told) for name in names}
        found[kind] = {name: [list(point) for point in one.points] for name, one in series.items() if one.finite}
    return found


def of_run(run: RunFolder) -> dict[str, Any]:
    """… and how many bytes of metrics.jsonl they are from: a tail goes on there."""
    tail, events = Tail(run.metrics), list[dict[str, Any]]()
    while True:
        _, more = tail.more()
        if not more:
            return {"curves": curves(events), "place": tail.place}
        events += more


def point(event: dict[str, Any]) -> dict[str, Any] | None:
    """One line of the metrics as new points of curves; None where there is nothing to draw in it."""
    if event.get("event") not in KINDS or not isinstance(event.get("step"), int) or event.get("averaged"):
        return None
    values = {
        name: value
        for name, value in event.items()
        if name not in LEFT_OUT and isinstance(value, int | float) and not isinstance(value, bool)
    }
    return {"kind": event["event"], "step": event["step"], "values": values, "best": bool(event.get("best"))}
