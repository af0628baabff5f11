"""What an output must hold and may not hold, beyond single tokens. Only rows that ask for it come here.

Required phrases follow Post & Vilar (2018), "dynamic beam allocation": hypotheses are told apart by how many required
tokens they hold (their bank), and the beam is shared out among the banks, so that those which have placed a phrase are
never crowded out by those that have not and are likelier for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from jumok.search.options import SearchOptions
from jumok.search.phrases import Phrase, holds, together

Integers = NDArray[np.int64]
Tokens = NDArray[np.int32]
Progress = tuple[int, ...]  # of each phrase, how many of its tokens the output ends with; its length for ever once met


class Blocked:
    """Tokens that may not come next because of those before them: forbidden phrases and repeated n-grams."""

    def __init__(self, phrases: Iterable[Phrase], ngram: int) -> None:
        self.ngram = ngram
        self.by_last: dict[int, list[Phrase]] = defaultdict(list)  # phrases by the token before their last
        for phrase in phrases:
            self.by_last[phrase[-2]].append(phrase)

    @classmethod
    def of(cls, options: SearchOptions) -> Blocked | None:
        phrases = [phrase for phrase in options.forbidden_phrases if len(phrase) > 1]
        return cls(phrases, options.no_repeat_ngram) if phrases or options.no_repeat_ngram else None

    def after(self, tokens_KL: Tokens) -> tuple[Integers, Integers]:
        """Hypotheses (by their place among these K) and the tokens that may not follow them."""
        hypotheses: list[int] = []
        tokens: list[int] = []
        length = tokens_KL.shape[1]
        if self.by_last and length:
            for place, last in enumerate(tokens_KL[:, -1].tolist()):
                for phrase in self.by_last.get(last, ()):
                    if tuple(tokens_KL[place, max(0, length + 1 - len(phrase)) :].tolist()) == phrase[:-1]:
                        hypotheses.append(place)
                        tokens.append(phrase[-1])
        size = self.ngram
        if size and length >= size:
            windows_KWn = sliding_window_view(tokens_KL, size, axis=1)
            tail_K1n = tokens_KL[:, None, length + 1 - size :]
            again_KW = (windows_KWn[:, :, :-1] == tail_K1n).all(2)
            again = np.nonzero(again_KW)
            hypotheses += again[0].tolist()
            tokens += windows_KWn[:, :, -1][again].tolist()
        return np.array(hypotheses, np.int64), np.array(tokens, np.int64)


class Required:
    """The required phrases of one row, and how far any output has come with them.

    Each phrase is followed by its own automaton (Knuth, Morris & Pratt), so that phrases which share a beginning, or
    overlap, are all found, and a false start falls back to the longest part that still fits.
    """

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        # a phrase within another one comes with it
        self.phrases = [
            phrase
            for index, phrase in enumerate(phrases)
            if phrase not in phrases[:index] and not any(len(o) > len(phrase) and holds(o, phrase) for o in phrases)
        ]
        self.total = sum(len(phrase) for phrase in self.phrases)
        self.tokens = np.array(sorted({token for phrase in self.phrases for token in phrase}), np.int64)
        self._known: dict[Phrase, Progress] = {(): (0,) * len(self.phrases)}
        self._moves: dict[tuple[Progress, int], Progress] = {}

    @classmethod
    def of(cls, options: SearchOptions) -> Required | None:
        if not options.required or not options.no_repeat_ngram:
            return cls(options.required) if options.required else None
        # Phrases that must overlap are searched for as one: placed one by one they would bar each other.
        found = together(options.required, options.prefix, options.no_repeat_ngram)
        assert found is not None, "the options were checked"
        opening = [found.opening] if len(found.opening) > len(options.prefix) else []
        return cls([*opening, *found.phrases])

    def progress(self, output: Phrase) -> Progress:
        """How far an output has come. What it was one token ago is remembered."""
        known = len(output)
        while output[:known] not in self._known:
            known -= 1
        for size in range(known, len(output)):
            self._known[output[: size + 1]] = self.move(self._known[output[:size]], output[size])
        return self._known[output]

    def move(self, progress: Progress, token: int) -> Progress:
        if (progress, token) not in self._moves:
            self._moves[progress, token] = tuple(
                _follow(phrase, matched, token) for phrase, matched in zip(self.phrases, progress, strict=True)
            )
        return self._moves[progress, token]

    def bank(self, progress: Progress) -> int:
        """How many required tokens are placed: those of the phrases that are met, and of the one furthest begun."""
        pairs = list(zip(progress, self.phrases, strict=True))
        met = sum(matched for matched, phrase in pairs if matched == len(phrase))
        return met + max((matched for matched, phrase in pairs if matched < len(phrase)), default=0)

    def missing(self, output: Phrase) -> int:
        """How many tokens are enough to place the rest."""
        return self.total - self.bank(self.progress(output))

    def place(
        self, outputs: Sequence[Phrase], candidates: Sequence[tuple[float, int, int]], end: int, beam: int
    ) -> tuple[list[tuple[float, int, int]], list[int]]:
        """Share a beam out. `candidates` are (log-probability of the whole, hypothesis, token), `<eos>` among them.

        Returns those that live on, and the hypotheses that end.
        """
        states = [self.progress(output) for output in outputs]
        banks: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        for total, hypothesis, token in candidates:
            after = states[hypothesis] if token == end else self.move(states[hypothesis], token)
            bank = self.bank(after)
            if token != end or bank == self.total:
                banks[bank].append((-total, hypothesis, token))
        for members in banks.values():
            members.sort()
        ending = [hypothesis for _, hypothesis, token in _deal(banks, beam) if token == end]
        following = {bank: [item for item in members if item[2] != end] for bank, members in banks.items()}
        return [(-total, hypothesis, token) for total, hypothesis, token in _deal(following, beam)], ending


def _deal(banks: dict[int, list[tuple[float, int, int]]], beam: int) -> list[tuple[float, int, int]]:
    """One place to each bank in turn, from the fullest down, as long as there are places and candidates."""
    dealt: list[tuple[float, int, int]] = []
    deepest = max((len(members) for members in banks.values()), default=0)
    for turn in range(deepest):
        for number in sorted(banks, reverse=True):
            if turn < len(banks[number]):
                dealt.append(banks[number][turn])
        if len(dealt) >= beam:
            break
    return dealt[:beam]


def _follow(phrase: Phrase, matched: int, token: int) -> int:
    """How many tokens of the phrase an output ends with after one more."""
    if matched == len(phrase):
        return matched
    while matched and phrase[matched] != token:
        # the longest proper part of what matched that is both its beginning and its end
        matched = next(size for size in range(matched - 1, -1, -1) if phrase[:size] == phrase[matched - size : matched])
    return matched + 1 if phrase[matched] == token else 0
