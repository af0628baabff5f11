"""Continuous batching: a batch that is kept full as sentences finish, over as many rows as there are.

Rows are pulled from an iterable only when there is room for them, so that a file of any size streams. New ones are read
in groups, not one by one: the batch is refilled when a share of it is free. A step over few rows costs a GPU as much as
one over many, so a quarter is a good share there. A CPU is paid by the row, and rows that finish leave the batch
anyhow: it is faster to begin anew when all are done (share 1) than to move those that are not into a new batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import torch

from jumok.data.batch import END, START, source_batch
from jumok.errors import BadInput
from jumok.search.decoding import Decoding
from jumok.search.events import Completed, Hypothesis
from jumok.search.options import SearchOptions
from jumok.search.stepper import Stepper

Source = TypeVar("Source", bound=Sequence[Any])


def refill(
    stepper: Stepper,
    rows: Iterable[tuple[Source, SearchOptions]],
    capacity: int = 32,
    ahead: int = 1,
    share: float = 0.25,
    batch_of: Callable[[list[Source]], Any] = source_batch,
    end: int = END,
    start: int = START,
    device: torch.device | str | None = None,
) -> Iterator[tuple[int, list[Hypothesis]]]:
    """Search every row; give (its place in `rows`, its n-best) as it finishes, in whatever order that is. The n-best
    are as `generate` gives them.

    `rows` are sources (token ids without `<eos>`; `batch_of` makes a batch of some) and what is asked of each. At most
    `capacity` of them are searched at a time; new ones come in when that `share` of the places is free. With `ahead`
    above 1 that many times `capacity` rows are pulled at once and searched the longest first: neighbours of like length
    need less padding, for answers that come later.
    """
    if capacity < 1 or ahead < 1:
        raise BadInput(f"capacity {capacity}, ahead {ahead}: give 1 or more")
    if not 0 < share <= 1:
        raise BadInput(f"share {share}: give a part of the batch, above 0 and at most 1 (all of it)")
    decoding = Decoding(stepper, end, start, device)
    waiting, numbered = deque[tuple[int, tuple[Source, SearchOptions]]](), enumerate(rows)
    places: dict[int, int] = {}  # which row of ours is which of theirs
    while True:
        free = capacity - len(places)
        if free >= share * capacity:
            while len(waiting) < free:
                pulled = list(islice(numbered, ahead * capacity if ahead > 1 else free - len(waiting)))
                if not pulled:
                    break
                waiting.extend(sorted(pulled, key=lambda item: -len(item[1][0])) if ahead > 1 else pulled)
            group = [waiting.popleft() for _ in range(min(free, len(waiting)))]
            if group:
                batch = batch_of([source for _, (source, _) in group])
                names = decoding.add(batch, [options for _, (_, options) in group])
                places.update(zip(names, (place for place, _ in group), strict=True))
        if decoding.done:
            return
        for event in decoding.step():
            if isinstance(event, Completed):
                del decoding.results[event.row]  # nothing of a long file stays
                yield places.pop(event.row), event.hypotheses
