"""A run that ends in the middle, as a kill would end it."""

from __future__ import annotations


class StopAt:
    """A sink that stops the training when it is told of this update."""

    def __init__(self, update: int) -> None:
        self.update = update

    def event(self, event: str, update: int, values: dict[str, object]) -> None:
        if event == "train" and update == self.update:
            raise KeyboardInterrupt

    def close(self) -> None:
        pass
