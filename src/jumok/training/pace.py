"""`--minutes`: how many updates fit into a time, decided once from the speed of the first updates.

Afterwards the run depends on that number alone and no longer on the clock, so that a resumed run stays exact.
"""

from __future__ import annotations

from statistics import median

from jumok.recipe import Training
from jumok.training.state import TrainState

WARM = 3  # first updates are slower: memory is being claimed
MOST_UPDATES, LEAST_UPDATES = 100, 10
SHARE = 0.06  # of the whole time may go into measuring
STALL = 10  # times the median: an update that took longer was kept waiting, and says nothing of those to come


class Pace:
    def __init__(self, state: TrainState) -> None:
        self.state = state
        self.seen = 0
        self.seconds: list[float] = []
        self.reason = ""

    def measured(self, seconds: float) -> bool:
        """Note how long an update took; True at the moment when enough is known."""
        if self.state.total is not None or self.state.minutes is None:
            return False
        self.seen += 1
        if self.seen > WARM:
            self.seconds.append(seconds)
        enough_time = sum(self._usual()) >= SHARE * 60 * self.state.minutes
        return len(self.seconds) >= MOST_UPDATES or (enough_time and len(self.seconds) >= LEAST_UPDATES)

    def fix(self, elapsed: float, validation: float, training: Training) -> None:
        """Solve  updates · t + validations · v  =  time left  for the number of updates."""
        assert self.state.minutes is not None
        update = sum(self._usual()) / len(self.seconds)
        left = max(0.0, 60 * self.state.minutes - elapsed - validation)
        per_update = update + validation / training.validate_every
        self.state.total = self.state.update + max(1, int(left / per_update))
        self.reason = f"{self.state.minutes:g} minutes at {1 / update:.1f} updates/s"

    def _usual(self) -> list[float]:
        """What updates take, also where a machine slept, swapped or was stopped in one of them."""
        most = STALL * median(self.seconds) if self.seconds else 0.0
        return [min(each, most) for each in self.seconds]
