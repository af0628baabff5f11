"""Words hidden from a model that learns a language by guessing them (Devlin et al. 2019), anew at each reading.

Of the tokens a share must be guessed. Of these most read [MASK], some another word, some what they are: the model
cannot know which of the words it sees are true, and must form an opinion of all. A row has at least one. Special tokens
are neither hidden nor put in the place of others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumok.recipe import Masking

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Hidden:
    ids: Integers  # as the model reads them
    places: Integers  # of the tokens that must be guessed, rising
    wanted: Integers  # what stands there


class Hider:
    """`continues` (V,) is True for tokens that go on with the word before, `words` are the ids that stand for text."""

    def __init__(self, masking: Masking, mask: int, words: Integers, continues: npt.NDArray[np.bool_]) -> None:
        self.masking, self.mask, self.words, self.continues = masking, mask, words, continues
        self.is_word = np.zeros(len(continues), bool)
        self.is_word[words] = True

    def __call__(self, ids: Integers, lengths: Integers, generator: np.random.Generator) -> Hidden:
        """Rows end to end. What is drawn depends on the generator alone."""
        row = np.repeat(np.arange(len(lengths)), lengths)
        unit = self._units(ids, row)  # what is hidden together; −1: nothing that could be
        count = int(unit.max(initial=-1)) + 1
        size = np.bincount(unit[unit >= 0], minlength=count)
        row_of_unit = np.zeros(count, np.int64)
        row_of_unit[unit[unit >= 0]] = row[unit >= 0]
        tokens = np.bincount(row[unit >= 0], minlength=len(lengths))
        # a row's units in random order, as many as make up its share: the one that would be too much comes in with the
        # probability that the share is right on the average
        order = np.lexsort((generator.random(count), row_of_unit))
        taken = np.cumsum(size[order])
        first = np.searchsorted(row_of_unit[order], np.arange(len(lengths)))
        before = taken - size[order] - np.concatenate([[0], taken])[first][row_of_unit[order]]
        missing = tokens[row_of_unit[order]] * self.masking.rate - before
        picked = generator.random(count) * size[order] < missing
        hidden_in = np.bincount(row_of_unit[order][picked], minlength=len(lengths))
        bare = np.flatnonzero((hidden_in == 0) & (tokens > 0))  # a row that would teach nothing
        picked[first[bare]] = True
        chosen_unit = np.zeros(count, bool)
        chosen_unit[order] = picked
        chosen = (unit >= 0) & chosen_unit[np.maximum(unit, 0)] if count else unit >= 0
        places = np.flatnonzero(chosen)
        read = ids.copy()
        fate = generator.random(len(places))
        others = self.words[generator.integers(0, len(self.words), len(places))]
        hidden, other = self.masking.hidden, self.masking.other
        read[places] = np.where(fate < hidden, self.mask, np.where(fate < hidden + other, others, ids[places]))
        return Hidden(read, places, ids[places])

    def _units(self, ids: Integers, row: Integers) -> Integers:
        word = self.is_word[ids]
        if self.masking.whole_words:
            begins = word & ~self.continues[ids]
            # a text may be cut in the middle of a word, and after a special token a new one begins
            begins |= word & np.concatenate([[True], ~word[:-1] | (row[1:] != row[:-1])])
        else:
            begins = word
        return np.where(word, np.cumsum(begins) - 1, -1)
