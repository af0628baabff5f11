"""A trained model that translates: sentences in, n-best translations out, in order."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import torch

from jumok.errors import BadInput, Failure
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.recipe import Search
from jumok.search import Hypothesis, SearchOptions
from jumok.tasks.engine import Engine
from jumok.tasks.phrases import Phrases
from jumok.tasks.scoring import Scored, log_probabilities
from jumok.tasks.wishes import Asked, BadSentence, Sentence, Wishes
from jumok.text.special import UNKNOWN
from jumok.text.tags import find_tag
from jumok.text.tokenizer import Tokenizer

TRIES = 50  # searches again for a sentence whose forbidden phrase keeps coming back in other cuts


@dataclass(frozen=True)
class Translation:
    text: str
    score: float  # log-probability divided by length ** length_penalty, and the coverage penalty if there is one
    log_probability: float
    ids: tuple[int, ...]
    finished: bool = True  # False: cut at the longest length, where the model would have gone on


EMPTY = Translation("", 0.0, 0.0, ())


class TooLong(BadSentence):
    """A sentence over the model's limit."""

    def __init__(self, index: int, first: int, length: int, limit: int) -> None:
        super().__init__(
            index,
            first,
            f" has {length} tokens, the model's limit is {limit}. Split it; or `jumok translate` with --too-long "
            f"truncate (cuts it) or --too-long skip (an empty line)",
        )
        self.length, self.limit = length, limit


class Job(NamedTuple):
    """One search: a source (token ids) and what is asked of it."""

    sentence: int
    source: list[int]
    options: SearchOptions


class Translator:
    def __init__(
        self,
        model: EncoderDecoder,
        source: Tokenizer,
        target: Tokenizer,
        search: Search,
        max_length: int,
        device: torch.device,
        others: Sequence[EncoderDecoder] = (),
    ) -> None:
        """`others` translate together with the model, as one (an ensemble)."""
        self.model, self.source, self.target = model, source, target
        self.search, self.max_length, self.device = search, max_length, device
        self.models = (model, *others)
        self.engine = Engine(self.models, device)
        self.phrases = Phrases(target)
        self.tag: str | None = None

    def tagged(self, tag: str | None) -> Self:
        """The same model, which writes the language that a tag (2de, or just de) stands for."""
        chosen = copy(self)
        chosen.tag = tag
        return chosen

    @property
    def before(self) -> tuple[int, ...]:
        """What opens every source: the id of the chosen language's tag, where the model has tags."""
        return find_tag(self.source, self.tag)

    def translate(self, sentences: Sequence[str | Sentence], tag: str | None = None, **wishes: Any) -> list[str]:
        """The best translation of each sentence, in order. `Wishes` says what can be asked for (beam=5, …)."""
        writer = self if tag is None else self.tagged(tag)
        return [found[0].text for found in writer.nbest(sentences, **wishes)]

    def nbest(self, sentences: Sequence[str | Sentence], nbest: int = 1, **wishes: Any) -> list[list[Translation]]:
        """For each sentence its `nbest` translations, best first. An empty sentence translates to an empty one."""
        return self.found(sentences, Wishes(nbest=nbest, **wishes))

    @torch.inference_mode()
    def found(self, sentences: Sequence[str | Sentence], wishes: Wishes) -> list[list[Translation]]:
        """As `nbest`, with all wishes in one."""
        if isinstance(sentences, str):
            raise BadInput("translate() takes a list of sentences: write translate([sentence])")
        wrong = [type(one).__name__ for one in sentences if not isinstance(one, str | Sentence)]
        if wrong:
            raise BadInput(f"translate() takes sentences as text, not {wrong[0]}")
        given = [one if isinstance(one, Sentence) else Sentence(one) for one in sentences]
        asked = self.asked(wishes)
        rows = self._encode([one.text for one in given], wishes.too_long, wishes.first)
        self.engine.asked([one.text.strip() for one in given])
        numbered = enumerate(zip(given, rows, strict=True))
        jobs = [job for number, (one, row) in numbered for job in self.jobs(asked, number, one, row)]
        outputs: list[list[Hypothesis]] = [[] for _ in given]
        for job, hypotheses in zip(jobs, self._allowed(jobs, asked), strict=True):
            outputs[job.sentence] += hypotheses
        for job in jobs:
            self.refuse_none(job, outputs[job.sentence], asked)
        results = self.results(asked, given, outputs)
        self.engine.answered([[one.ids for one in chosen] for chosen in results])
        return results

    # What `found` is made of, for those who search by themselves: cut, jobs, (search, again) …, refuse_none, results.

    def asked(self, wishes: Wishes) -> Asked:
        """What these wishes come to with this model."""
        return Asked(wishes, self.search, self.phrases, min(model.longest for model in self.models))

    def jobs(self, asked: Asked, number: int, sentence: Sentence, row: list[int]) -> list[Job]:
        """The searches for one sentence, cut into tokens; none for an empty one."""
        if not row:
            return []
        return [Job(number, row, options) for options in asked.options(number, sentence, len(row))]

    def again(self, job: Job, hypotheses: Sequence[Hypothesis], asked: Asked) -> Job | None:
        """Where a forbidden phrase came out after all, in another cut: the same search with that forbidden too."""
        spelled = (self.phrases.found(h.tokens, text) for h in hypotheses for text in asked.wishes.forbid)
        cuts = {cut for cut in spelled if cut is not None}
        if not cuts:
            return None
        forbidden = (*job.options.forbidden_phrases, *cuts)
        return job._replace(options=replace(job.options, forbidden_phrases=forbidden))

    def refuse_none(self, job: Job, hypotheses: Sequence[Hypothesis], asked: Asked) -> None:
        """Refuse a sentence for which no output was found that holds all that is required."""
        if job.options.required and not hypotheses:
            raise BadSentence(
                job.sentence,
                asked.wishes.first,
                ": no translation was found that holds all that is required. Widen the beam, raise or drop "
                "no_repeat_ngram, or require less",
            )

    def results(
        self, asked: Asked, given: Sequence[Sentence], outputs: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Translation]]:
        """For each sentence the best of what its searches have found, as text."""
        texts = self.target.decode([one.tokens for hypotheses in outputs for one in hypotheses])
        nbest, results, end = asked.wishes.nbest, [], 0
        for one, hypotheses in zip(given, outputs, strict=True):
            start, end = end, end + len(hypotheses)
            pairs = zip(texts[start:end], hypotheses, strict=True)
            written = [Translation(text, h.score, h.log_probability, tuple(h.tokens), h.finished) for text, h in pairs]
            results.append(self._best(written, asked.required(one))[:nbest] or [EMPTY] * nbest)
        return results

    def check(self, wishes: Wishes) -> None:
        """Refuse what no sentence can be given: numbers out of range, words outside the vocabulary, an unknown tag."""
        _ = self.before
        self.asked(wishes).options(0, Sentence(""), self.max_length)

    def batch(self, wishes: Wishes) -> int:
        """How many sentences are translated at once."""
        return wishes.batch or self.search.batch or self.engine.batch

    def _best(self, found: list[Translation], required: tuple[str, ...]) -> list[Translation]:
        """Best first. What is required counts most: as whole words before parts of longer ones."""
        if not required:
            return sorted(found, key=lambda one: -one.score)
        distinct = {one.text: one for one in sorted(found, key=lambda one: one.score)}
        patterns = [self.phrases.pattern(phrase) for phrase in required]
        lacking = {text: sum(not each.search(text) for each in patterns) for text in distinct}
        return sorted(distinct.values(), key=lambda one: (lacking[one.text], -one.score))

    def _allowed(self, jobs: list[Job], asked: Asked) -> list[list[Hypothesis]]:
        """Search; where a forbidden phrase comes out after all, in another cut, forbid that too and search again."""
        batch = self.batch(asked.wishes)
        found = self._search(jobs, batch)
        unclear = list(range(len(jobs))) if asked.wishes.forbid else []
        for _ in range(TRIES):
            again = []
            for place in unclear:
                if (job := self.again(jobs[place], found[place], asked)) is not None:
                    jobs[place] = job
                    again.append(place)
            if not again:
                return found
            for place, hypotheses in zip(again, self._search([jobs[p] for p in again], batch), strict=True):
                found[place] = hypotheses
            unclear = again
        raise endless(jobs[unclear[0]], asked)

    def _search(self, jobs: list[Job], size: int) -> list[list[Hypothesis]]:
        results: list[list[Hypothesis]] = [[] for _ in jobs]
        rows, sentences = [(job.source, job.options) for job in jobs], [job.sentence for job in jobs]
        for place, hypotheses in self.engine.search(rows, size, sentences):
            results[place] = hypotheses
        return results

    def score(self, sentences: Sequence[str], targets: Sequence[str] | Sequence[Sequence[int]]) -> list[Scored]:
        """The log-probability of given translations (texts, or token ids), token by token."""
        if isinstance(sentences, str) or isinstance(targets, str):
            raise BadInput("score() takes lists: write score([sentence], [translation])")
        if len(sentences) != len(targets):
            raise BadInput(f"score(): {len(sentences)} sentences and {len(targets)} translations: they must pair up")
        sources = self._encode(sentences, "error")
        rows = [self.target.encode([one])[0] if isinstance(one, str) else list(one) for one in targets]
        for model in self.models:
            model.eval()
        found = log_probabilities(self.models, sources, rows, self.device)
        pieces = [(*self.target.pieces(row), "<eos>") for row in rows]
        return [Scored(tokens, tuple(values)) for tokens, values in zip(pieces, found, strict=True)]

    def refuse_long(self, sentences: Sequence[str]) -> None:
        """Refuse a sentence over the model's limit, where none can be cut or left out."""
        try:
            self._encode(sentences, "error")
        except TooLong as error:
            raise BadInput(
                f"the sentence has {error.length} tokens, the model's limit is {error.limit}: take a part of it"
            ) from None

    def unknown_words(self, sentence: str) -> list[str]:
        """The words of which the model's vocabulary does not know some part."""
        cut, words = self.source.encode_with_offsets(sentence.strip()), sentence.split()
        places = dict.fromkeys(word for id, word in zip(cut.ids, cut.words, strict=True) if id == UNKNOWN)
        return [words[place] for place in places if place < len(words)]

    def _encode(self, sentences: Sequence[str], too_long: str, first: int = 0) -> list[list[int]]:
        return [self.fitting(index, row, too_long, first) for index, row in enumerate(self.cut(sentences))]

    def cut(self, sentences: Sequence[str]) -> list[list[int]]:
        """The token ids of each sentence, the tag before them; of an empty one, none."""
        before = self.before
        rows = self.source.encode([sentence.strip() for sentence in sentences])
        return [[*before, *row] if row else row for row in rows]

    def fitting(self, index: int, row: list[int], too_long: str, first: int = 0) -> list[int]:
        """What is read of a sentence: one over the model's limit is refused, cut off or left out."""
        if len(row) <= self.max_length:
            return row
        if too_long == "error":
            raise TooLong(index, first, len(row), self.max_length)
        return row[: self.max_length] if too_long == "truncate" else []


def endless(job: Job, asked: Asked) -> Failure:
    return Failure(
        f"sentence {asked.wishes.first + job.sentence + 1}: the model found ever new ways to write a forbidden phrase. "
        "Forbid a longer one, or widen the beam"
    )
