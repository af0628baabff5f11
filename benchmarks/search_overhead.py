"""What the search itself costs at every step, apart from the model: CPU time of one thread, with a model that does
nothing but give back log-probabilities made before.

    OMP_NUM_THREADS=1 python benchmarks/search_overhead.py
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from jumok.data.batch import END, Sequences
from jumok.search import Decoding, SearchOptions

STEPS, REPEATS = 50, 7


class Ready:
    """Log-probabilities from a store of random ones; `<eos>` is unlikely, so that nothing ends."""

    def __init__(self, rows: int, vocabulary: int) -> None:
        torch.manual_seed(0)
        self.store = torch.randn(8, rows, vocabulary).mul(2).log_softmax(-1)
        self.store[:, :, END] = -30.0
        self.turn, self.seconds = 0, 0.0

    def encode(self, batch: Any) -> None:
        return None

    def start(self, memory: Any, rows: int, capacity: int, coverage: bool = False) -> None:
        return None

    def step(self, tokens: Tensor, positions: Tensor, memory: Any, cache: Any) -> tuple[Tensor, None]:
        began = time.process_time()
        self.turn = (self.turn + 1) % len(self.store)
        log_probs = self.store[self.turn, : len(tokens)].clone()
        self.seconds += time.process_time() - began
        return log_probs, None

    def select(self, memory: Any, cache: Any, rows: Tensor) -> tuple[None, None]:
        return None, None


def overhead(batch: int, beam: int, vocabulary: int) -> float:
    """Microseconds a step, the least of several runs."""
    stepper, best = Ready(batch * beam, vocabulary), float("inf")
    for _ in range(REPEATS):
        decoding = Decoding(stepper)
        decoding.add(Sequences.pad([[5, 6]] * batch), SearchOptions(beam=beam, max_length=STEPS + 20))
        decoding.step()
        decoding.step()
        stepper.seconds, began = 0.0, time.process_time()
        for _ in range(STEPS):
            decoding.step()
        best = min(best, (time.process_time() - began - stepper.seconds) / STEPS)
    return best * 1e6


def main() -> None:
    torch.set_num_threads(1)
    print("vocabulary  batch  beam  µs a step")
    for vocabulary in (100, 8000, 32000):
        for batch in (1, 32):
            for beam in (1, 5):
                print(f"{vocabulary:10} {batch:6} {beam:5} {overhead(batch, beam, vocabulary):10.0f}")


if __name__ == "__main__":
    main()
