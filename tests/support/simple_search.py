"""Beam search as one would explain it: lists, loops over the whole vocabulary, no stopping rule that needs a proof.

What every fast search of the toolkit must give, for every option.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from jumok.data.batch import END
from jumok.search import Hypothesis, SearchOptions
from jumok.search.phrases import together
from jumok.search.sampling import uniform

Tokens = tuple[int, ...]
Candidate = tuple[float, int, int]  # (minus the log-probability, parent, token): the smallest is the best


def search(
    log_probs: Callable[[Tokens], Sequence[float]],
    options: SearchOptions,
    limit: int,
    attention: Callable[[Tokens], Sequence[float]] | None = None,
) -> list[Hypothesis]:
    live: list[tuple[Tokens, float]] = [((), 0.0)]
    finished: list[Hypothesis] = []
    phrases = without_parts(options.required)
    if options.no_repeat_ngram and (found := together(options.required, options.prefix, options.no_repeat_ngram)):
        opening = [found.opening] if found.opening != options.prefix else []
        phrases = without_parts([*opening, *found.phrases])

    def output(tokens: Tokens, total: float, length: int, willing: bool) -> Hypothesis:
        score = total / max(1, length) ** options.length_penalty
        if options.coverage_penalty:
            assert attention is not None
            looks = [attention(tokens[:count]) for count in range(len(tokens) + 1)]
            sums = [sum(look[s] for look in looks) for s in range(len(looks[0]))]
            score += options.coverage_penalty * sum(math.log(min(1.0, max(1e-10, seen))) for seen in sums)
        return Hypothesis(list(tokens), score, total, willing)

    for length in range(1, limit + 1):
        candidates: list[Candidate] = []
        for parent, (tokens, total) in enumerate(live):
            row = log_probs(tokens)
            possible = [token for token in allowed(tokens, options, limit, len(row)) if row[token] > -math.inf]
            if END in possible and any(not has(tokens, phrase) for phrase in phrases):
                possible.remove(END)
            if options.sample and length > len(options.prefix) and possible:
                possible = [drawn(row, possible, options, len(tokens))]
            candidates += [(-(total + row[token]), parent, token) for token in possible]
        if not candidates:
            if not finished:
                whole = [(tokens, total) for tokens, total in live if all(has(tokens, phrase) for phrase in phrases)]
                finished = [output(tokens, total, length - 1, False) for tokens, total in whole]
            break
        best = shared_out(candidates, live, phrases, options.beam)
        for negative, parent, token in sorted(best):
            if token == END:
                tokens = live[parent][0]
                row = log_probs(tokens)
                other = [t for t in allowed(tokens, options, limit + 1, len(row), free=True) if t != END]
                willing = length < limit or all(row[END] >= row[t] for t in other)
                finished.append(output(tokens, -negative, length, willing))
        going_on = shared_out([c for c in candidates if c[2] != END], live, phrases, options.beam)
        live = [((*live[parent][0], token), -negative) for negative, parent, token in sorted(going_on)]
        enough = 1 if options.beam == 1 else math.inf if options.patience is None else options.patience * options.beam
        if len(finished) >= enough:
            break
    return sorted(finished, key=lambda hypothesis: -hypothesis.score)[: options.nbest]


def allowed(tokens: Tokens, options: SearchOptions, limit: int, vocabulary: int, free: bool = False) -> list[int]:
    """What may come after these tokens."""
    length = len(tokens) + 1
    if not free:
        if length <= len(options.prefix):
            return [options.prefix[length - 1]]
        if length == limit:
            return [END]
    found = []
    for token in range(vocabulary):
        after = (*tokens, token)
        if token in options.forbidden or (token == END and length < options.min_length):
            continue
        if any(after[-len(phrase) :] == phrase for phrase in options.forbidden_phrases):
            continue
        size = options.no_repeat_ngram
        if size and len(after) > size and after[-size:] in [after[i : i + size] for i in range(len(after) - size)]:
            continue
        found.append(token)
    return found


def shared_out(
    candidates: list[Candidate], live: list[tuple[Tokens, float]], phrases: list[Tokens], beam: int
) -> list[Candidate]:
    """The best; with required phrases, the best of those with all their tokens, then of those with one less, and so on,
    then the second best of each …"""
    banks: dict[int, list[Candidate]] = {}
    for candidate in sorted(candidates):
        _, parent, token = candidate
        tokens = live[parent][0] if token == END else (*live[parent][0], token)
        banks.setdefault(placed(tokens, phrases), []).append(candidate)
    chosen: list[Candidate] = []
    while len(chosen) < beam and any(banks.values()):
        for bank in sorted(banks, reverse=True):
            if banks[bank] and len(chosen) < beam:
                chosen.append(banks[bank].pop(0))
    return chosen


def placed(tokens: Tokens, phrases: list[Tokens]) -> int:
    """How many tokens of the phrases are there: of those found, and of the one that the tokens end with most of."""
    found = sum(len(phrase) for phrase in phrases if has(tokens, phrase))
    begun = [
        max(size for size in range(len(phrase)) if tokens[len(tokens) - size :] == phrase[:size])
        for phrase in phrases
        if not has(tokens, phrase)
    ]
    return found + max(begun, default=0)


def has(tokens: Tokens, phrase: Tokens) -> bool:
    return any(tokens[start : start + len(phrase)] == phrase for start in range(len(tokens)))


def without_parts(phrases: Sequence[Tokens]) -> list[Tokens]:
    """Without duplicates and phrases within others."""
    different = list(dict.fromkeys(phrases))
    return [phrase for phrase in different if not any(has(other, phrase) for other in different if other != phrase)]


def drawn(row: Sequence[float], possible: list[int], options: SearchOptions, position: int) -> int:
    """One token by temperature, top-k, top-p and the number that belongs to this place."""
    heaviest = max(row[token] for token in possible)
    weight = {token: math.exp((row[token] - heaviest) / options.temperature) for token in possible}
    by_weight = sorted(weight.values(), reverse=True)
    if options.top_k and options.top_k < len(by_weight):
        weight = {token: w for token, w in weight.items() if w >= by_weight[options.top_k - 1]}
    by_weight, total, sum_before, edge = sorted(weight.values(), reverse=True), sum(weight.values()), 0.0, 0.0
    for value in by_weight:
        if sum_before / total < options.top_p:
            edge = value
        sum_before += value
    weight = {token: w for token, w in weight.items() if w >= edge}
    aim, reached = uniform(options.seed, options.stream, position) * sum(weight.values()), 0.0
    for token in sorted(weight):
        reached += weight[token]
        if reached > aim:
            return token
    return max(weight)
