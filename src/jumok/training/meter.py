"""What a line of progress says of the machine: how much of its speed is of use (MFU), and how much memory is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from jumok.tasks.objective import Objective
from jumok.training.flops import flops_of
from jumok.training.memory import in_use
from jumok.training.peak import matmul_peak

CLOCK = frozenset({"tokens_per_second", "mfu", "memory"})  # of a line of progress: what no two runs have in common


class Meter:
    def __init__(self, objective: Objective, device: torch.device, dtype: torch.dtype, told: bool = True) -> None:
        """Of several processes one tells, so only one measures."""
        self.flops, self.device, self.dtype = flops_of(objective) if told else None, device, dtype
        self.peak = matmul_peak(device, dtype) if self.flops is not None else None  # measured before the clock starts

    def work(self, batches: Sequence[Any]) -> int:
        """Useful operations of an update; 0 where nobody knows them."""
        return sum((self.flops(batch) or 0) for batch in batches) if self.flops is not None else 0

    def values(self, work: float, seconds: float) -> dict[str, float]:
        """`mfu` (0 to 1) and `memory` (bytes), as far as they are known."""
        known: dict[str, float] = {}
        speed = work / max(seconds, 1e-9)
        if self.peak and speed > self.peak:  # the machine was busy with something else when it was measured
            self.peak = matmul_peak(self.device, self.dtype, again=True)
        if self.peak and 0 < speed <= self.peak:
            known["mfu"] = round(speed / self.peak, 4)
        memory = in_use(self.device)
        return known if memory is None else {**known, "memory": memory}
