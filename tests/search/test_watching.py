"""Whoever watches a search is told of every row, token and choice, in time; and of nothing after the block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from steppers import WORDS, model_of

from jumok.data.batch import END, START, source_batch
from jumok.search import Completed, Decoding, Finished, SearchOptions
from jumok.search.watching import watched


class Notes:
    """The outputs as they follow from what is told alone."""

    def __init__(self) -> None:
        self.written: list[tuple[int, list[int]]] = []  # of each live hypothesis: its row, and what it has read
        self.finished: dict[int, list[list[int]]] = {}  # the outputs of each row, in the order of their ends
        self.ended: dict[int, list[int]] = {}

    def reading(self, search: object, stepper: Any, rows: Sequence[int], batch: Any) -> None:
        assert len(rows) == len(batch)
        self.written += [(row, []) for row in rows]

    def stepping(self, search: object, tokens: Any) -> None:
        pairs = zip(self.written, tokens.tolist(), strict=True)
        self.written = [(row, [*read, token]) for (row, read), token in pairs]

    def chosen(self, search: object, happened: Sequence[Any], parents: Any) -> None:
        for event in happened:
            if isinstance(event, Finished):
                own = [read[1:] for row, read in self.written if row == event.row]
                assert event.output.tokens in own, "what ended is what was read"
                self.finished.setdefault(event.row, []).append(event.output.tokens)
            elif isinstance(event, Completed):
                best = event.hypotheses[0].tokens
                assert best in self.finished[event.row]
                self.ended[event.row] = best
        self.written = [self.written[parent] for parent in parents.tolist()]


def test_what_is_told_is_enough_to_follow_every_row() -> None:
    torch.manual_seed(torch.seed() % 2**31)
    model, notes = model_of(), Notes()
    options = SearchOptions(beam=3, min_length=5, max_length=9, forbidden=(0, START))  # nothing ends in three steps

    def some(count: int) -> Any:
        return source_batch([torch.randint(4, WORDS, (1 + number,)).tolist() for number in range(count)])

    with watched(notes):
        decoding = Decoding(model)
        decoding.add(some(3), options)
        for _ in range(3):
            decoding.step()
        decoding.cancel(1)
        assert all(row != 1 for row, _ in notes.written)
        decoding.add(some(2), options)
        while not decoding.done:
            decoding.step()
            assert len({row for row, _ in notes.written}) == len(decoding.live)
            assert all(read[:1] == [START] and END not in read for _, read in notes.written)
    assert notes.ended == {row: found[0].tokens for row, found in decoding.results.items()}
    assert set(notes.ended) == {0, 2, 3, 4}
    before = len(notes.ended)
    decoding.add(some(1), options)
    decoding.step()
    assert len(notes.ended) == before
    assert not notes.written
