"""What a search is asked for, and how its hypotheses are scored."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jumok.data.batch import PAD, START
from jumok.errors import BadInput
from jumok.recipe.sections import LARGEST_RATIO, LONGEST_OUTPUT, WIDEST_BEAM
from jumok.search.phrases import Phrase, holds, repeats, together

STOPPING = ("exact", "transformers")


@dataclass(frozen=True)
class SearchOptions:
    """How one row is searched. Every length counts `<eos>`; phrases and prefixes are token ids."""

    beam: int = 1  # hypotheses that live at each step; 1 is greedy
    nbest: int = 1  # hypotheses given back
    length_penalty: float = 1.0  # α in log p / length ** α; 0: no normalisation
    coverage_penalty: float = 0.0  # β: how much a source position that was hardly looked at costs (Wu et al. 2016)
    min_length: int = 1
    max_length: int | None = None  # None: max_ratio × source length + max_extra
    max_ratio: float = 2.0
    max_extra: int = 20
    patience: float | None = None  # stop after patience × beam finished (Kasai et al. 2022); None: when nothing can win
    stopping: str = "exact"  # "transformers": when nothing could win that ended now, as that library guesses

    prefix: Phrase = ()  # tokens that every hypothesis must start with
    forbidden: Phrase = (PAD, START)  # tokens never generated (a prefix may still hold them)
    forbidden_phrases: tuple[Phrase, ...] = ()  # never generated one after another
    required: tuple[Phrase, ...] = ()  # phrases that every output holds (they may overlap)
    no_repeat_ngram: int = 0  # no n tokens occur twice in this order; 0: they may

    sample: bool = False  # draw each token from the model instead of searching for the best
    temperature: float = 1.0  # p ** (1 / temperature): below 1 unlikely words are rarer still
    top_k: int = 0  # draw among the k likeliest; 0: among all
    top_p: float = 1.0  # draw among the likeliest that together have this probability
    seed: int = 0  # the same (seed, stream) draws the same numbers, whatever else is in the batch
    stream: int = 0  # which of a seed's random streams: the number of the sentence, or of the sample

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_sampling()
        self._check_phrases()

    def _check_numbers(self) -> None:
        if self.beam < 1:
            raise BadInput(f"beam: {self.beam} hypotheses is no search; use 1 (greedy) or more")
        if self.beam > WIDEST_BEAM:
            raise BadInput(f"beam {self.beam}: give at most {WIDEST_BEAM}")
        if not 1 <= self.nbest <= self.beam:
            raise BadInput(f"nbest: {self.nbest} does not fit a beam of {self.beam}; use 1 to {self.beam}, or widen it")
        if not 0 <= self.length_penalty <= 10:
            raise BadInput(f"length_penalty: must be a number from 0 to 10, not {self.length_penalty}")
        if not 0 <= self.coverage_penalty <= 100:
            raise BadInput(f"coverage_penalty: must be a number from 0 (off) to 100, not {self.coverage_penalty}")
        if self.max_length is not None and self.max_length < 1:
            raise BadInput(f"max_length: must be at least 1 (it counts <eos>), not {self.max_length}")
        if self.min_length < 1:
            raise BadInput(f"min_length: must be at least 1 (it counts <eos>), not {self.min_length}")
        for name, length in (("min_length", self.min_length), ("max_length", self.max_length)):
            if length is not None and length > LONGEST_OUTPUT:
                raise BadInput(f"{name} {length}: give at most {LONGEST_OUTPUT}")
        if self.max_length is not None and self.min_length > self.max_length:
            raise BadInput(
                f"min_length {self.min_length} exceeds max_length {self.max_length}: lower it, or raise that"
            )
        if not 0 <= self.max_ratio <= LARGEST_RATIO:
            raise BadInput(f"max_ratio: must be a number from 0 to {LARGEST_RATIO:g}, not {self.max_ratio}")
        if not 0 <= self.max_extra <= LONGEST_OUTPUT:
            raise BadInput(f"max_extra: must be from 0 to {LONGEST_OUTPUT}, not {self.max_extra}")
        if self.patience is not None and not self.patience > 0:
            raise BadInput(f"patience: must be above 0, not {self.patience}")
        if self.stopping not in STOPPING:
            raise BadInput(f"stopping: {self.stopping!r} is none of {', '.join(STOPPING)}")
        if self.no_repeat_ngram < 0:
            raise BadInput(f"no_repeat_ngram: must be 0 (off) or the n of the n-grams, not {self.no_repeat_ngram}")

    def _check_sampling(self) -> None:
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise BadInput(
                f"temperature: must be above 0, not {self.temperature}; for the likeliest words do not sample"
            )
        if self.top_k < 0:
            raise BadInput(f"top_k: must be 1 or more (0: among all), not {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise BadInput(f"top_p: must be above 0 and at most 1, not {self.top_p}")
        if not self.sample and (self.temperature != 1.0 or self.top_k or self.top_p != 1.0):
            raise BadInput("temperature, top_k and top_p are for sampling: say sample=True too, or leave them out")
        if self.sample and self.beam > 1:
            raise BadInput(
                f"sampling draws one output, a beam of {self.beam} searches for the best: use beam 1; for several "
                "samples add the row once for each, with another stream"
            )
        if self.sample and self.required:
            raise BadInput("required phrases are placed by beam search: do not sample, or leave them out")

    def _check_phrases(self) -> None:
        if any(token < 0 for token in self.prefix):
            raise BadInput(f"prefix: token ids are not negative: {list(self.prefix)}")
        if any(token < 0 for token in self.forbidden):
            raise BadInput(f"forbidden: token ids are not negative: {list(self.forbidden)}")
        for name, phrases in (("required", self.required), ("forbidden_phrases", self.forbidden_phrases)):
            for phrase in phrases:
                if not isinstance(phrase, tuple):
                    raise BadInput(f"{name}: each phrase is a tuple of token ids, {phrase!r} is not")
                if not phrase or any(token < 0 for token in phrase):
                    raise BadInput(f"{name}: a phrase has at least one token and no negative ones: {list(phrase)}")
        for phrase in self.forbidden_phrases:
            if holds(self.prefix, phrase):
                raise BadInput(f"the prefix {list(self.prefix)} holds the forbidden phrase {list(phrase)}: give up one")
        for phrase in self.required:
            for token in set(phrase) & set(self.forbidden):
                raise BadInput(f"the required phrase {list(phrase)} holds the forbidden token {token}: give up one")
            for other in self.forbidden_phrases:
                if holds(phrase, other):
                    raise BadInput(
                        f"the required phrase {list(phrase)} holds the forbidden phrase {list(other)}: give up one"
                    )
            if self.no_repeat_ngram and repeats(phrase, self.no_repeat_ngram):
                raise BadInput(
                    f"the required phrase {list(phrase)} repeats {self.no_repeat_ngram} tokens, which no_repeat_ngram "
                    "forbids: raise it, or leave the phrase out"
                )
        if self.no_repeat_ngram and together(self.required, self.prefix, self.no_repeat_ngram) is None:
            raise BadInput(
                f"the required phrases {[list(phrase) for phrase in self.required]} and the prefix "
                f"{list(self.prefix)} need {self.no_repeat_ngram} tokens twice, which no_repeat_ngram forbids: "
                "raise it, or require less"
            )

    def limit(self, source_length: int | None) -> int:
        """The longest output of a row."""
        if self.max_length is not None:
            return self.max_length
        if source_length is None:
            raise BadInput("max_length: say it, this batch has no source lengths to derive it from")
        return max_length_for(source_length, self.max_ratio, self.max_extra)


def max_length_for(source_length: int, ratio: float, extra: int) -> int:
    """The longest output (with `<eos>`) for a source: `ratio · source_length + extra`, at least 1, never monstrous."""
    return min(max(1, int(ratio * source_length) + extra), LONGEST_OUTPUT)


def normalised(log_probability: float, length: int, length_penalty: float) -> float:
    """`log p(y | x) / |y|^α` (Wu et al. 2016 without the constant); |y| counts `<eos>`."""
    return float(log_probability / max(1, length) ** length_penalty)
