"""Sentences that are translated twice: by the run itself, and by the engine that it was written for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice

from jumok.data import grammar
from jumok.errors import BadInput
from jumok.recipe import Recipe
from jumok.text.special import SPECIAL_TOKENS
from jumok.text.tokenizer import Tokenizer

LONGEST = 20  # tokens of a drawn one


def probe_rows(recipe: Recipe, source: Tokenizer, sentences: Sequence[str], count: int) -> list[list[int]]:
    """Those given; else `count` of the grammar that the run learned from; else as many drawn ones. Token ids."""
    languages = next((corpus.grammar for corpus in recipe.data.train if corpus.grammar), None)
    if not sentences and languages is not None and not source.tags:
        first, _, second = languages.partition("-")
        sentences = [pair.source for pair in islice(grammar.pairs(first, second, "test", count), count)]
    if sentences:
        rows = source.encode([sentence.strip() for sentence in sentences])
        found = [row for row in rows if 0 < len(row) <= recipe.data.max_length]
        if not found:
            raise BadInput("--probe: none of its sentences can be read by this model. Give others")
        return found
    drawn, longest = random.Random(1), min(LONGEST, recipe.data.max_length)
    ids = range(len(SPECIAL_TOKENS), source.size)
    return [[drawn.choice(ids) for _ in range(drawn.randint(1, longest))] for _ in range(count)]
