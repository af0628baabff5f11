"""A store as the batch plan sees it: lengths, and a place for what is derived from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from jumok.data.stored import Column


class Lengths:
    def __init__(self, source: npt.ArrayLike, target: npt.ArrayLike) -> None:
        self.source_lengths, self.target_lengths = np.asarray(source, np.int32), np.asarray(target, np.int32)

    def __len__(self) -> int:
        return len(self.source_lengths)

    def kept(self, name: str, make: Callable[[], Sequence[Column]]) -> list[np.ndarray]:
        arrays = []
        for count, write in make():
            arrays.append(np.full(count, -1))
            write(arrays[-1])
        return arrays
