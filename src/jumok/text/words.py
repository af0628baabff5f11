"""Which whitespace-separated word a stretch of text belongs to: what attention pictures are labelled with."""

from __future__ import annotations

from collections.abc import Sequence


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without blanks at its ends; a span of blanks only stays as it is."""
    inner = text[start:end]
    if not inner.strip():
        return start, end
    return start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())


def close_gaps(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Let each span reach to the next one where no blank lies between them.

    The library aligns a composed character with the first of the characters it was composed from; the rest of them
    (the vowel and the final consonant of a syllable typed as jamo) would belong to no piece.
    """
    closed: list[tuple[int, int]] = []
    limit, following = len(text), len(text)
    for start, end in reversed(spans):
        if following >= end:
            limit = following
        following = start
        while end < limit and not text[end].isspace():
            end += 1
        closed.append((start, end))
    return closed[::-1]


def words_of_spans(text: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    """The index in `text.split()` of the word each span starts in; blanks belong to the word that follows them."""
    word_of_character: list[int] = []
    word, inside = -1, False
    for character in text:
        if character.isspace():
            inside = False
            word_of_character.append(word + 1)
        else:
            word += not inside
            inside = True
            word_of_character.append(word)
    last = max(word, 0)  # blanks after the last word belong to it
    return [min(word_of_character[start], last) if start < len(text) else last for start, _ in spans]
