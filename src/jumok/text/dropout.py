"""BPE dropout (Provilkov et al. 2020): in training, words are cut anew each time they are met.

    repeat: of all merges that are possible in the word, drop each with probability p;
            apply the one of highest priority that is left; stop when none is left

That is a walk over the ways to cut a word: from a cut with candidates m₁ … m_k (by priority) the walk applies m_i with
probability p^(i−1) (1 − p) and ends with p^k. Nothing but the number of dropped candidates is random at a step, so a
batch walks all its words at once with array operations, on a graph that grows where walks go first. Each random number
is a hash of (seed, update, …, word, step): the result is a pure function of them, whatever was cut before.

A word here is what the tokenizer itself never merges across (its pre-tokens), found again in the stored ids.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, pre_tokenizers

from jumok.errors import BadInput
from jumok.text.pipeline import SPACE, byte_of_character
from jumok.text.random_numbers import hashes
from jumok.text.special import SPECIAL_TOKENS
from jumok.text.tokenizer import Tokenizer

IntArray = npt.NDArray[np.int64]
KINDS = ("bpe", "byte")
MOST_CUTS = 500_000  # in the graph, about 150 MB; then it is begun anew
