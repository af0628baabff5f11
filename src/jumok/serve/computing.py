"""What can be asked of the runs that read texts and pictures, and how many questions are answered together.

Each answer is what `jumok predict`, `embed`, `fill` and `read` tell of the same input. A question that cannot be
answered has its error in the place of the answer; the others of its batch do not notice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jumok.data.examples import Question
from jumok.data.images.picture import BadPicture
from jumok.data.images.raw import RawImage
from jumok.errors import BadInput, Failure
from jumok.layers.packed import Precision
from jumok.tasks.answerer import Answered
from jumok.tasks.classifier import Said
from jumok.tasks.embedder import POOLINGS, Pooling
from jumok.tasks.filler import Guess
from jumok.tasks.text_reader import Read, Way
from jumok.trained import (
    TrainedAnswerer,
    TrainedClassifier,
    TrainedFiller,
    TrainedImageClassifier,
    TrainedReader,
    TrainedTagger,
    TrainedTextReader,
)

LETTERS = 4  # of a token, at least: a guess that costs nothing
PLAIN = Way()
PICTURE = 128  # tokens that a picture counts as


@dataclass(frozen=True)
class Classify:
    """A label with the probabilities of all, or a number, for a text or a pair: `Said`."""

    text: str
    second: str | None = None


@dataclass(frozen=True)
class Tag:
    """A tag for each word: a list of them."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Tag:
        return cls(tuple(text.split()))


@dataclass(frozen=True)
class Ask:
    """The stretches of a context that answer best: `Answered`."""

    question: str
    context: str
    best: int = 1


@dataclass(frozen=True)
class Embed:
    """A vector for a text or a pair: numpy, float32."""

    text: str
    second: str | None = None
    pooling: Pooling = "mean"
    normalise: bool = True


@dataclass(frozen=True)
class Fill:
    """For each [MASK] of a text the likeliest tokens: lists of `Guess`."""

    text: str
    best: int = 5


@dataclass(frozen=True)
class ClassifyImage:
    """The class of a picture, given as the bytes of its file: `Said`."""

    data: bytes
    name: str = "image"


@dataclass(frozen=True)
class ReadImage:
    """The word in a picture, given as the bytes of its file: `Read`."""

    data: bytes
    name: str = "image"
    way: Way = PLAIN


Work = Classify | Tag | Ask | Embed | Fill | ClassifyImage | ReadImage
Told = Said | list[str] | Answered | np.ndarray[Any, np.dtype[np.float32]] | list[list[Guess]] | Read
Answers = list[Told | Exception]


def cost(job: Work) -> int:
    """About how many tokens the model will see, at the least."""
    match job:
        case Classify() | Embed():
            return 2 + (len(job.text) + len(job.second or "")) // LETTERS
        case Tag():
            return 2 + len(job.words)
        case Ask():
            return 3 + (len(job.question) + len(job.context)) // LETTERS
        case Fill():
            return 2 + len(job.text) // LETTERS
    return PICTURE


def computing(model: Any, precision: Precision = "float32") -> Callable[[Sequence[Work]], Answers]:
    """For a `Batcher`: a loaded run's answers to what it can be asked. `precision`: for words in pictures."""
    known = {kind: answer for kind, (task, answer) in KINDS.items() if isinstance(model, task)}

    def compute(jobs: Sequence[Work]) -> Answers:
        groups: dict[Hashable, list[int]] = defaultdict(list)  # what can be computed in one call
        for place, job in enumerate(jobs):
            groups[type(job), _alike(job)].append(place)
        answers: Answers = [BadInput("")] * len(jobs)
        for places in groups.values():
            kind = type(jobs[places[0]])
            if kind in known:
                found = known[kind](model, [_in(precision, jobs[place]) for place in places])
            else:
                found = [BadInput(f"this run has learned {model.recipe.task}, which is not asked for that")] * len(
                    places
                )
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer
        return answers

    return compute


def _in(precision: Precision, job: Work) -> Work:
    return replace(job, way=replace(job.way, precision=precision)) if isinstance(job, ReadImage) else job


def kinds_of(model: Any) -> tuple[type[Work], ...]:
    """What can be asked of a loaded run."""
    return tuple(kind for kind, (task, _) in KINDS.items() if isinstance(model, task))


def _alike(job: Work) -> Hashable:
    match job:
        case Embed():
            return job.pooling, job.normalise
        case Ask():
            return job.best
        case ReadImage():
            return job.way
    return None


# ---------------------------------------------------------------- each kind


def _classified(model: TrainedClassifier, jobs: Sequence[Classify]) -> Answers:
    def wrong(job: Classify) -> Exception | None:
        if model.pairs and job.second is None:
            return BadInput("this run has learned from pairs of texts: give both (text and second)")
        if model.pairs is False and job.second is not None:
            return BadInput("this run has learned from single texts: leave the second one out")
        if model.model.apart and job.second is None:
            return BadInput("this run compares two texts: give both (text and second)")
        return None

    def finite(said: Said) -> bool:
        return bool(np.isfinite(said.probability if said.probabilities else float(said.label)))

    return _each(jobs, wrong, lambda good: model.predict([(job.text, job.second) for job in good]), finite)


def _tagged(model: TrainedTagger, jobs: Sequence[Tag]) -> Answers:
    return list(model.predict([job.words for job in jobs]))


def _answered(model: TrainedAnswerer, jobs: Sequence[Ask]) -> Answers:
    def wrong(job: Ask) -> Exception | None:
        if not job.question.strip() or not job.context.strip():
            return BadInput("a question and a context are needed, and one of them is empty")
        return BadInput(f"{job.best} answers: ask for one at least") if job.best < 1 else None

    def finite(found: Answered) -> bool:
        return bool(np.isfinite([one.probability for one in (found.best, *found.others)]).all())

    def answers(good: Sequence[Ask]) -> Sequence[Answered]:
        return model.answers([Question(job.question, job.context) for job in good], good[0].best)

    return _each(jobs, wrong, answers, finite)


def _embedded(model: TrainedReader, jobs: Sequence[Embed]) -> Answers:
    def wrong(job: Embed) -> Exception | None:
        if job.pooling not in POOLINGS:
            return BadInput(f"pooling {job.pooling}: give {', '.join(POOLINGS)}")
        return None

    def vectors(good: Sequence[Embed]) -> Sequence[Any]:
        return list(model.embed([(job.text, job.second) for job in good], good[0].pooling, good[0].normalise))

    return _each(jobs, wrong, vectors, lambda vector: bool(np.isfinite(vector).all()))


def _filled(model: TrainedFiller, jobs: Sequence[Fill]) -> Answers:
    answers: Answers = []
    for job in jobs:
        try:
            guesses = model.fill(job.text, job.best)
        except BadInput as error:
            answers.append(error)
            continue
        finite = bool(np.isfinite([guess.probability for place in guesses for guess in place]).all())
        answers.append(guesses if finite else _no_number())
    return answers


def _looked_at(model: TrainedImageClassifier, jobs: Sequence[ClassifyImage]) -> Answers:
    made = [pixels for _, pixels in model.prepared(RawImage(job.name, None, job.data) for job in jobs)]
    good = [pixels for pixels in made if not isinstance(pixels, BadPicture)]
    said = iter(model.predict(good) if good else [])
    answers: Answers = []
    for pixels in made:
        if isinstance(pixels, BadPicture):
            answers.append(pixels)
            continue
        one = next(said)
        answers.append(one if np.isfinite(one.probability) else _no_number())
    return answers


def _read(model: TrainedTextReader, jobs: Sequence[ReadImage]) -> Answers:
    way = jobs[0].way
    try:
        model.check(way)
    except BadInput as error:
        return [error] * len(jobs)
    return [seen.read for seen in model.stream((RawImage(job.name, None, job.data) for job in jobs), way)]


KINDS: dict[type[Work], tuple[type, Callable[[Any, Any], Answers]]] = {
    Classify: (TrainedClassifier, _classified),
    Tag: (TrainedTagger, _tagged),
    Ask: (TrainedAnswerer, _answered),
    Embed: (TrainedReader, _embedded),
    Fill: (TrainedFiller, _filled),
    ClassifyImage: (TrainedImageClassifier, _looked_at),
    ReadImage: (TrainedTextReader, _read),
}


def _each(
    jobs: Sequence[Any],
    wrong: Callable[[Any], Exception | None],
    compute: Callable[[Sequence[Any]], Sequence[Any]],
    finite: Callable[[Any], bool],
) -> Answers:
    """Errors where something is `wrong` with a job; the others computed in one call."""
    answers: list[Any] = [wrong(job) for job in jobs]
    good = [place for place, error in enumerate(answers) if error is None]
    if good:
        found = compute([jobs[place] for place in good])
        for place, answer in zip(good, found, strict=True):
            answers[place] = answer if finite(answer) else _no_number()
    return answers


def _no_number() -> Failure:
    return Failure("what the model computes is not a number. Its weights may have diverged")
