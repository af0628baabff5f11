"""Texts as a reader of texts gets them: `[CLS] words [SEP]`, or `[CLS] words [SEP] words [SEP]` for two, and for each
token which of the two it belongs to. Rows lie end to end in memory; a batch is some of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.text.special import Specials

Integers = npt.NDArray[np.int64]


def framed(
    first: Sequence[int], second: Sequence[int] | None, specials: Specials, limit: int
) -> tuple[list[int], list[int], bool]:
    """Ids and segments of a row of at most `limit` tokens, and whether something was cut off to that end.

    Of two texts the longer one gives way (Devlin et al. 2019), from its end.
    """
    room = limit - (2 if second is None else 3)
    if room < 1:
        raise BadInput(f"data.max_length {limit} leaves no room for words")
    kept, other = len(first), 0 if second is None else len(second)
    if second is None:
        kept = min(kept, room)
    elif kept + other > room:
        small = min(kept, other)
        if small > room // 2:
            kept, other = room - room // 2, room // 2
        else:
            kept, other = (kept, room - kept) if kept <= other else (room - other, other)
    ids = [specials.start, *first[:kept], specials.end]
    segments = [0] * len(ids)
    if second is not None:
        ids += [*second[:other], specials.end]
        segments += [1] * (other + 1)
    return ids, segments, kept < len(first) or (second is not None and other < len(second))


def about_cut(cut: int, count: int, limit: int, key: str = "data.max_length", texts: str = "texts") -> str:
    """Texts over the limit lose their ends, which must be known."""
    return f"{cut:,} of {count:,} {texts} are longer than {key} ({limit} tokens) and are cut there"


@dataclass(frozen=True)
class Rows:
    """Rows of ids end to end. `segments` is None where all belong to the first text."""

    ids: Integers
    starts: Integers  # one more than there are rows
    segments: npt.NDArray[np.int8] | None = None

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None) -> Rows:
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
        ids = np.fromiter((id for row in rows for id in row), np.int64, int(starts[-1]))
        parts = None
        if segments is not None and any(1 in row for row in segments):
            parts = np.fromiter((part for row in segments for part in row), np.int8, int(starts[-1]))
        return cls(ids, starts, parts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Integers:
        return np.diff(self.starts)

    def places(self, indices: npt.ArrayLike) -> tuple[Integers, Integers]:
        """Where the tokens of some rows stand, end to end, and the lengths of the rows."""
        chosen = np.asarray(indices, np.int64)
        begin, lengths = self.starts[chosen], self.starts[chosen + 1] - self.starts[chosen]
        ends = np.cumsum(lengths)
        return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(begin - (ends - lengths), lengths), lengths

    def batch(self, indices: npt.ArrayLike) -> tuple[Sequences, Tensor | None]:
        """Some rows side by side, and their segments."""
        places, lengths = self.places(indices)
        words = Sequences.of_flat(self.ids[places], lengths)
        if self.segments is None:
            return words, None
        return words, Sequences.of_flat(self.segments[places].astype(np.int64), lengths).ids


@dataclass(frozen=True)
class PairRows:
    """Two texts for each example, each in a row of its own."""

    first: Rows
    second: Rows

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lengths(self) -> Integers:
        """Of both, as they are padded to the longer one."""
        return 2 * np.maximum(self.first.lengths, self.second.lengths)

    def batch(self, indices: npt.ArrayLike) -> tuple[Sequences, None]:
        """All first texts, then all second ones: twice as many rows as examples."""
        parts = [rows.places(indices) for rows in (self.first, self.second)]
        flat = np.concatenate(
            [rows.ids[places] for rows, (places, _) in zip((self.first, self.second), parts, strict=True)]
        )
        return Sequences.of_flat(flat, np.concatenate([lengths for _, lengths in parts])), None


def spread(values: npt.NDArray[np.int64], lengths: Integers, filler: int) -> Tensor:
    """A value for each token, end to end, as rows side by side; what is no token gets `filler`."""
    width = max(1, int(lengths.max())) if len(lengths) else 1
    laid = np.full((len(lengths), width), filler, np.int64)
    laid[np.arange(width) < lengths[:, None]] = values
    return torch.from_numpy(laid)
