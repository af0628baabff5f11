"""What all labelled data of the grammar share: checked arguments, sentences of a wanted shape, no repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import TypeVar

from jumok.data.grammar.alignment import Word
from jumok.data.grammar.corpus import DEFAULT_SIZE, LANGUAGES, REMEMBERED, SPLITS, speaker, split_of
from jumok.data.grammar.phrases import FIRST_ENTITY
from jumok.data.grammar.sampler import Sampler
from jumok.data.grammar.tree import Clause, Sentence, Unit
from jumok.data.grammar_tasks.walk import concepts_of
from jumok.errors import BadInput, did_you_mean

Thing = TypeVar("Thing")


def checked(language: str, split: str, count: int) -> Callable[[Sentence], list[Word]]:
    """What says trees in `language`, once the arguments are known to be good."""
    if language not in LANGUAGES:
        raise BadInput(f'the embedded grammar has no language "{language}".{did_you_mean(language, LANGUAGES)}')
    if split not in SPLITS:
        raise BadInput(f'the embedded grammar has no split "{split}".{did_you_mean(split, SPLITS)}')
    if count < 0:
        raise BadInput(f"{count} examples were asked for: a number from 0 on is needed")
    return speaker(language)


class Drawer(Sampler):
    """The sampler of the corpus, which also draws sentences of one wanted shape."""

    def __init__(self, seed: int, size: int = DEFAULT_SIZE) -> None:
        super().__init__(seed, size)
        self.budget = size

    def pick(self, choices: Sequence[Thing]) -> Thing:
        return choices[int(self.random() * len(choices))]

    def shuffled(self, things: Sequence[Thing]) -> list[Thing]:
        """Fisher and Yates: what `random.shuffle` does, from the one source of chance that is here."""
        order = list(things)
        for last in range(len(order) - 1, 0, -1):
            other = int(self.random() * (last + 1))
            order[last], order[other] = order[other], order[last]
        return order

    def begin(self) -> Sentence:
        """A sentence of one unit, its clause still to be drawn, with a budget of words like those of the corpus."""
        self.bit = 1
        self.entity = FIRST_ENTITY
        self.concepts = []
        spread = self.random()
        self.left = self.budget * (0.35 + spread * spread)
        sentence, unit = Sentence(), Unit()
        sentence.bit, unit.bit = self.bits(), self.bits()
        sentence.concepts = self.concepts
        sentence.units = [unit]
        return sentence

    def compared(self) -> Clause:
        """ "The dog is bigger than the cat", as a clause of its own."""
        clause = Clause()
        clause.bit = self.bits()
        self.tense_and_polarity(clause, None)
        self.comparison(clause, None)
        return clause


def changed(sentence: Sentence, clause: Clause, side: Clause | None = None, relation: str = "") -> Sentence:
    """A sentence of one unit that says `clause` in the place of what `sentence` says."""
    made, unit = Sentence(), Unit()
    made.bit, unit.bit = sentence.bit, sentence.units[0].bit
    unit.clause, unit.side, unit.relation = clause, side, relation
    made.units = [unit]
    made.concepts = concepts_of(made)
    return made


def belongs(sentence: Sentence, split: str) -> bool:
    """Whether the sentence is one of `split`, by its concepts."""
    return split_of(sentence) == split


class Seen:
    """Tells what came before. Beyond `REMEMBERED` things it forgets none, and learns no more."""

    def __init__(self) -> None:
        self.keys: set[int] = set()

    def before(self, *texts: str) -> bool:
        """Whether these texts came together before; from now on they did."""
        key = int.from_bytes(blake2b("\n".join(texts).encode(), digest_size=8).digest(), "little")
        if key in self.keys:
            return True
        if len(self.keys) < REMEMBERED:
            self.keys.add(key)
        return False


def rounds(drawer: Drawer, things: tuple[Thing, ...]) -> Iterator[Thing]:
    """Each of `things` once in every round, in a new order each time: as balanced as can be, and no pattern."""
    while True:
        yield from drawer.shuffled(things)
