"""Words with what was read in their place, at random, and pictures of the ones that are wrong."""

from __future__ import annotations

import random

import numpy as np

from jumok.inspect.reading_judging import Misread
from jumok.tasks.reading_kinds import mistake_of
from jumok.tasks.reading_scores import ReadingScores, reading_scores

WORDS = ("Oslo", "HOTEL", "24", "주목", "한글날", "it's", "A4", "a longer text", "東京", "", "internationally speaking")


def damaged(text: str) -> str:
    letters = list(text)
    for _ in range(random.choice((0, 1, 1, 2))):
        place = random.randrange(len(letters) + 1)
        letters[place : place + random.randrange(2)] = random.choice(("", random.choice("O0l1가각. ")))
    return "".join(letters) if random.random() < 0.9 else text.swapcase()


def misread(count: int, size: tuple[int, int] = (16, 40)) -> tuple[ReadingScores, list[Misread]]:
    """Scores, and all mistakes in the order of the words."""
    truth = [random.choice(WORDS) for _ in range(count)]
    read = [damaged(text) for text in truth]
    sure = [random.random() for _ in truth]
    mistakes = []
    for number, (one, other) in enumerate(zip(truth, read, strict=True)):
        if kind := mistake_of(one, other):
            pixels = np.random.default_rng().integers(0, 256, (*size, 3), dtype=np.uint8)
            mistakes.append(Misread(number + 1, f"test/{number}.png", one, other, sure[number], kind, pixels))
    return reading_scores(truth, read, sure), mistakes
