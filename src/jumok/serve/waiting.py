"""What a service promises to those who wait: how many may, for how long, and what they are told otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from jumok.errors import BadInput


class Full(Exception):
    """Too many wait already. `seconds`: when there may be room again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many requests wait: try again in {seconds:.0f} s")
        self.seconds = seconds


class Late(Exception):
    """It was accepted, and its time passed before there was an answer."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds


class Closing(Exception):
    """The service answers what it has accepted, and accepts nothing more."""

    def __init__(self) -> None:
        super().__init__("the service is closing")


@dataclass(frozen=True)
class Room:
    """How much is taken in, and how much of it is computed together."""

    waiting: int = 256  # jobs in the queue
    tokens: int = 8192  # of one batch; a job that has more is computed alone
    sentences: int = 64  # jobs of one batch
    wait: float = 0.004  # seconds that a lone job waits for company while nothing else is computed
    seconds: float = 30.0  # from its acceptance until a job is given up

    def __post_init__(self) -> None:
        for name in ("waiting", "tokens", "sentences"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} {getattr(self, name)}: give 1 or more")
        if not 0 <= self.wait <= 60:
            raise BadInput(f"wait {self.wait}: give seconds, from 0 to 60")
        if not 0 < self.seconds <= 86_400:
            raise BadInput(f"seconds {self.seconds}: give a time above 0, and a day at most")


@dataclass(frozen=True)
class Numbers:
    """What was computed together, for those who measure."""

    jobs: int
    cost: int  # in tokens
    waited: float  # seconds until it began, of the job that came first
    computed: float  # seconds
