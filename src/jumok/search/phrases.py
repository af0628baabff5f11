"""Phrases of token ids, and what an output that repeats no n-gram can do with those it must hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

Phrase = tuple[int, ...]


def holds(tokens: Phrase, phrase: Phrase) -> bool:
    """Whether the phrase occurs in the tokens, one after another."""
    size = len(phrase)
    return any(tokens[start : start + size] == phrase for start in range(len(tokens) - size + 1))


def repeats(tokens: Phrase, size: int, given: int = 0) -> bool:
    """Whether some n-gram of this size occurs twice; the first `given` tokens by themselves may repeat theirs."""
    ngrams = [tokens[start : start + size] for start in range(len(tokens) - size + 1)]
    first = max(0, given + 1 - size)  # of those that end after what is given
    return any(ngrams[place] in ngrams[:place] for place in range(first, len(ngrams)))


class Together(NamedTuple):
    opening: Phrase  # the prefix, and what must follow it at once
    phrases: tuple[Phrase, ...]  # what comes anywhere else


def together(required: Sequence[Phrase], prefix: Phrase, size: int) -> Together | None:
    """Required phrases for an output that repeats no n-gram of this size; None: no output can hold them all.

    Phrases that share an n-gram must lie over one another there, as one longer phrase. A phrase has each of its n-grams
    once, so that there is one way to do it. The same goes for the prefix, which is given and may repeat itself: what
    shares an n-gram with it starts within it and goes on after it, so that only the last occurrence counts. A phrase
    that repeats itself can only begin there, where that is forgiven.
    """
    waiting = [phrase for phrase in required if not holds(prefix, phrase)]
    inside = [phrase for phrase in waiting if repeats(phrase, size)]
    outside = [phrase for phrase in waiting if not repeats(phrase, size)]
    possible = (_placed(opening, outside, prefix, size) for opening in _begun(prefix, inside, prefix, size))
    return next((found for found in possible if found is not None), None)


def _begun(opening: Phrase, phrases: Sequence[Phrase], prefix: Phrase, size: int) -> Iterator[Phrase]:
    """The ways to lay all of these over what has been laid."""
    if not phrases:
        yield opening
        return
    first, *others = phrases
    for shift in range(len(opening)):
        laid = _lay(opening, first, shift)
        if laid is not None and not repeats(laid, size, len(prefix)):
            yield from _begun(laid, others, prefix, size)


def _placed(opening: Phrase, phrases: Sequence[Phrase], prefix: Phrase, size: int) -> Together | None:
    waiting, apart = [phrase for phrase in phrases if not holds(opening, phrase)], list[Phrase]()
    while waiting:
        phrase = waiting.pop(0)
        laid: Phrase | None
        if (shift := _shift(opening, phrase, size)) is not None:
            laid = _lay(opening, phrase, shift) if shift >= 0 else None
            if laid is None or repeats(laid, size, len(prefix)):
                return None
            opening, waiting, apart = laid, waiting + apart, []
            continue
        for other in apart:
            if (shift := _shift(other, phrase, size)) is not None:
                laid = _lay(other, phrase, shift)
                if laid is None or repeats(laid, size):
                    return None
                apart.remove(other)
                waiting.append(laid)
                break
        else:
            apart.append(phrase)
    return Together(opening, tuple(apart))


def _shift(first: Phrase, second: Phrase, size: int) -> int | None:
    """Where the second begins, counted from the first, if they lie over one another at an n-gram they share."""
    places = {first[start : start + size]: start for start in range(len(first) - size + 1)}
    for start in range(len(second) - size + 1):
        if (place := places.get(second[start : start + size])) is not None:
            return place - start
    return None


def _lay(first: Phrase, second: Phrase, shift: int) -> Phrase | None:
    """Both as one, overlapping; None: they differ where they overlap."""
    if shift < 0:
        first, second, shift = second, first, -shift
    overlap = min(len(first) - shift, len(second))
    return first + second[overlap:] if first[shift : shift + overlap] == second[:overlap] else None
