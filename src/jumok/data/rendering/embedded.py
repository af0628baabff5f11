"""Words for those who bring none: those of the embedded grammar, and invented ones that sound like them.

The grammar knows some thousand words a language. A reader that saw no others would remember them and not look; so many
more are invented by a chain over letters (Markov 1913), of Korean over syllables:

    p(letter | the letters before) = how often it follows them in the words of the grammar

The words are the same on every machine.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Literal

from jumok.data.grammar import pairs, vocabulary
from jumok.data.rendering.words import cut_words, in_turn, small

Language = Literal["en", "fr", "ko"]
SENTENCES = 4000  # that words are counted in
INVENTED = 6_000  # words for each language
MEMORY = {"en": 3, "fr": 3, "ko": 1}  # letters or syllables that the next one depends on
LONGEST = {"en": 14, "fr": 14, "ko": 7}
END = ""


def embedded_words(languages: Sequence[Language]) -> tuple[str, ...]:
    """Words of the grammar, the most frequent first, then invented ones; languages take turns."""
    known = in_turn(known_words(language) for language in languages)
    invented = in_turn(invented_words(language) for language in languages)
    return tuple(dict.fromkeys([*known, *invented]))


@cache
def known_words(language: Language) -> tuple[str, ...]:
    """The words of the grammar's sentences by frequency, then those of its dictionary that were not among them."""
    other: Language = "fr" if language == "en" else "en"
    counts: dict[str, int] = defaultdict(int)
    for pair in pairs(language, other, "train", SENTENCES):
        for word in cut_words(pair.source):
            counts[word] += 1
    said = sorted(counts, key=lambda word: -counts[word])
    listed = [word for entry in vocabulary(language) for word in cut_words(entry.replace("_", " "))]
    return tuple(dict.fromkeys([*said, *map(small, listed)]))


@cache
def invented_words(language: Language) -> tuple[str, ...]:
    """Words that the grammar does not have, but could; some of them exist."""
    memory, longest, known = MEMORY[language], LONGEST[language], known_words(language)
    following: dict[str, list[str]] = defaultdict(list)
    for word in known:
        if word.isalpha():
            for place, letter in enumerate([*word, END]):
                following[word[max(0, place - memory) : place]].append(letter)
    dice = random.Random(f"invented {language}")
    words: dict[str, None] = {}
    seen = set(known)
    for _ in range(20 * INVENTED):
        word = ""
        while len(word) <= longest and (letter := _one(following[word[-memory:]], dice)) != END:
            word += letter
        if 2 <= len(word) <= longest and word not in seen:
            words[word] = None
            if len(words) == INVENTED:
                break
    return tuple(words)


def _one(choices: Sequence[str], dice: random.Random) -> str:
    """By `random()` alone: what else the library draws with may change from one version to the next."""
    return choices[int(dice.random() * len(choices))]
