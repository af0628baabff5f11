"""What a user may ask of a translation, in text and numbers, and the search options that it comes to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product

from jumok.data.batch import PAD, START
from jumok.errors import BadInput
from jumok.recipe import Search
from jumok.recipe.sections import LONGEST_OUTPUT, WIDEST_BEAM
from jumok.search import SearchOptions, max_length_for
from jumok.search.constraints import Required
from jumok.search.phrases import Phrase, together
from jumok.tasks.phrases import Phrases, pattern


class BadSentence(BadInput):
    """What is asked cannot be done for one sentence. `index` is its place in the input of the call."""

    def __init__(self, index: int, first: int, message: str) -> None:
        super().__init__(f"sentence {first + index + 1}{message}")
        self.index = index


FORMS = 8  # ways of writing the required phrases together that are tried, at most


@dataclass(frozen=True)
class Sentence:
    """A sentence to translate, with what is asked of its translation alone."""

    text: str
    prefix: str | None = None  # how it begins; None: as all others
    require: tuple[str, ...] = ()  # what it holds, besides what all must hold


@dataclass(frozen=True)
class Wishes:
    """How to translate. None: as the recipe says. Lengths are in tokens, the closing `<eos>` included."""

    nbest: int = 1  # translations of each sentence
    beam: int | None = None
    length_penalty: float | None = None
    coverage_penalty: float | None = None
    min_length: int = 1
    max_length: int | None = None
    no_repeat_ngram: int | None = None
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    prefix: str = ""  # how every translation begins
    require: Sequence[str] = ()  # phrases that every translation holds
    forbid: Sequence[str] = ()  # phrases that none holds
    batch: int | None = None  # sentences translated at once
    too_long: str = "error"  # sentences over the model's limit: "error", "truncate" or "skip" (an empty translation)
    first: int = 0  # how many sentences came before: for messages, and for what is random

    def __post_init__(self) -> None:
        for name in ("beam", "nbest", "batch", "max_length"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadInput(f"{name} {value}: give 1 or more")
        most = {"beam": WIDEST_BEAM, "nbest": WIDEST_BEAM, "min_length": LONGEST_OUTPUT, "max_length": LONGEST_OUTPUT}
        for name, limit in most.items():
            value = getattr(self, name)
            if value is not None and value > limit:
                raise BadInput(f"{name} {value}: give at most {limit}")
        if self.beam is not None and self.nbest > self.beam and not self.sample:
            raise BadInput(f"nbest {self.nbest} needs a beam at least as wide (the beam is {self.beam})")
        if self.sample and self.beam is not None and self.beam > 1:
            raise BadInput(
                f"beam {self.beam} searches for the best, sample=True draws: give up one (nbest draws several)"
            )
        if self.too_long not in ("error", "truncate", "skip"):
            raise BadInput(f'too_long {self.too_long}: give "error", "truncate" or "skip"')
        for name in ("require", "forbid"):
            if isinstance(getattr(self, name), str):
                raise BadInput(f"{name}: give a list of phrases, as in {name}=[{getattr(self, name)!r}]")
        _agree(self.prefix, self.require, self.forbid)


def _agree(prefix: str, require: Sequence[str], forbid: Sequence[str]) -> None:
    """Contradictions are told in the user's own words, before anything is translated."""
    for what, texts in (("require", require), ("forbid", forbid)):
        if not all(text.strip() for text in texts):
            raise BadInput(f"{what}: an empty phrase says nothing; leave it out")
    for text in forbid:
        if pattern(text).search(prefix):
            raise BadInput(f'prefix "{prefix}" holds "{text}", which is forbidden: no translation can do both')
        for phrase in require:
            if pattern(text).search(phrase):
                raise BadInput(f'require "{phrase}" and forbid "{text}": no translation can do both')


class Asked:
    """Wishes for one model: its recipe fills in what they leave open, its vocabulary turns text into tokens."""

    def __init__(self, wishes: Wishes, search: Search, phrases: Phrases, longest: int = sys.maxsize) -> None:
        """`longest`: the most tokens that the model can write at all."""
        self.wishes, self.search, self.phrases, self.longest = wishes, search, phrases, longest
        self.forbidden = (PAD, START, *phrases.tokenizer.tags.values())
        self.forbidden_phrases = tuple(form for text in wishes.forbid for form in phrases.forbidden(text))
        self._of_length: dict[int, list[SearchOptions]] = {}  # by tokens of the source

    def options(self, number: int, sentence: Sentence, source_length: int) -> list[SearchOptions]:
        """One search or several for a sentence: samples, or the ways of writing what is required.

        Sentences of a length that ask for nothing of their own have them in common: checking them costs more than a
        fast engine takes for a word.
        """
        if self.wishes.sample or sentence.prefix is not None or sentence.require:
            return self._options(number, sentence, source_length)
        if source_length not in self._of_length:
            self._of_length[source_length] = self._options(number, sentence, source_length)
        return self._of_length[source_length]

    def _options(self, number: int, sentence: Sentence, source_length: int) -> list[SearchOptions]:
        wishes, search = self.wishes, self.search
        start, forms = self._tokens(number, sentence)
        longest = min(max_length_for(source_length, search.max_ratio, search.max_extra), self.longest)
        limit = max(longest, wishes.min_length) if wishes.max_length is None else wishes.max_length
        if len(start) >= limit:
            raise BadSentence(
                number,
                wishes.first,
                f": its prefix has {len(start)} tokens and does not fit the limit of {limit} (with <eos>). "
                "Shorten it, or raise the limit with max_length",
            )
        # a beam of the recipe's is widened for what was asked; one that was asked for stays as it is
        beam = wishes.beam or (1 if wishes.sample else max(search.beam, wishes.nbest))
        ngram = int(_or(wishes.no_repeat_ngram, search.no_repeat_ngram))
        if ngram > 0:
            forms = [form for form in forms if together(form, start, ngram) is not None]
        if not forms:
            raise BadSentence(
                number,
                wishes.first,
                f": with this prefix the required phrases cannot be written without the same {ngram} tokens twice. "
                "Raise no_repeat_ngram (0: off), or require less",
            )
        fitting = [form for form in forms if _room(form, start) < limit]
        if not fitting:
            needed = min(_room(form, start) for form in forms) + 1
            raise BadSentence(
                number,
                wishes.first,
                f": prefix, required phrases and <eos> need {needed} tokens, the limit is {limit}. "
                "Raise it with max_length, or require less",
            )
        count = wishes.nbest if wishes.sample else 1
        return [
            SearchOptions(
                beam=beam,
                # whether an output holds what is required as whole words is seen afterwards: among all there are
                nbest=1 if wishes.sample else beam if form else wishes.nbest,
                length_penalty=_or(wishes.length_penalty, search.length_penalty),
                coverage_penalty=_or(wishes.coverage_penalty, search.coverage_penalty),
                min_length=wishes.min_length,
                max_length=limit,
                patience=search.patience,
                stopping=search.stopping,
                prefix=start,
                forbidden=self.forbidden,
                forbidden_phrases=self.forbidden_phrases,
                required=form,
                no_repeat_ngram=ngram,
                sample=wishes.sample,
                temperature=wishes.temperature,
                top_k=wishes.top_k,
                top_p=wishes.top_p,
                seed=wishes.seed,
                stream=(wishes.first + number) * count + draw if wishes.sample else 0,
            )
            for form in fitting
            for draw in range(count)
        ]

    def _tokens(self, number: int, sentence: Sentence) -> tuple[Phrase, list[tuple[Phrase, ...]]]:
        """How the output begins, and the ways of writing what it must hold."""
        prefix = self.wishes.prefix if sentence.prefix is None else sentence.prefix
        own = sentence.prefix is not None or bool(sentence.require)
        try:
            if own:
                _agree(prefix, self.required(sentence), self.wishes.forbid)
            start = self.phrases.known(prefix, "prefix") if prefix.strip() else ()
            each = [self.phrases.required(text) for text in self.required(sentence)]
        except BadInput as error:
            raise BadSentence(number, self.wishes.first, f": {error}") if own else error from None
        return start, list(islice(product(*each), FORMS))

    def required(self, sentence: Sentence) -> tuple[str, ...]:
        return (*self.wishes.require, *sentence.require)


def _room(required: tuple[tuple[int, ...], ...], prefix: tuple[int, ...]) -> int:
    return len(prefix) + (Required(required).missing(prefix) if required else 0)


def _or(asked: float | None, default: float) -> float:
    return default if asked is None else asked
