"""The searches of many requests as one running batch: each with its own options, joining and leaving as it must.

Rows of all requests are in one `Decoding`, so a step computes all of them together. What a sentence is searched for is
kept in its `Asking`: a sentence may need several rows (samples, or the ways to write what is required), and some of
them again (a forbidden phrase that came out in another cut).
"""

from __future__ import annotations

from collections.abc import Sequence

from jumok.data.batch import source_batch
from jumok.errors import JumokError
from jumok.search import Completed, Decoding, Hypothesis
from jumok.serve.streaming_text import common, whole_characters
from jumok.tasks.translator import TRIES, Job, Translation, Translator, endless
from jumok.tasks.wishes import Asked, Sentence


class Asking:
    """One sentence: what is asked of it, and how far its searches are."""

    def __init__(self, text: str, number: int) -> None:
        self.sentence, self.number = Sentence(text), number
        self.jobs: list[Job] = []
        self.cost = 0  # tokens that are read for all its hypotheses
        self.found: list[list[Hypothesis] | None] = []  # for each job
        self.tries = 0
        self._with: tuple[Translator, Asked] | None = None  # once it is prepared

    def prepare(self, writer: Translator, asked: Asked, row: list[int]) -> bool:
        """Turn the sentence into searches; False: there is nothing to search for."""
        self._with = writer, asked
        fitting = writer.fitting(self.number, row, asked.wishes.too_long, asked.wishes.first)
        self.jobs = writer.jobs(asked, self.number, self.sentence, fitting)
        self.found = [None] * len(self.jobs)
        self.cost = sum(job.options.beam * (len(job.source) + 1) for job in self.jobs)
        return bool(self.jobs)

    def known(self) -> tuple[Translator, Asked]:
        """Who writes it, and what is asked, once it is prepared."""
        assert self._with is not None
        return self._with

    @property
    def ready(self) -> bool:
        return bool(self.jobs)

    @property
    def length(self) -> int:
        """Of its source, in tokens."""
        return len(self.jobs[0].source)

    @property
    def missing(self) -> list[int]:
        """The jobs that are not done."""
        return [place for place, hypotheses in enumerate(self.found) if hypotheses is None]

    def forget(self) -> None:
        """Begin the searches anew."""
        self.found = [None] * len(self.jobs)

    def finish(self) -> list[Translation] | None:
        """The translations, once all searches are done; None: some have to be done again."""
        writer, asked = self.known()
        hypotheses = [found or [] for found in self.found]
        if asked.wishes.forbid:
            for place, found in enumerate(hypotheses):
                if (job := writer.again(self.jobs[place], found, asked)) is not None:
                    self.jobs[place], self.found[place] = job, None
            if self.missing:
                self.tries += 1
                if self.tries >= TRIES:
                    raise endless(self.jobs[0], asked)
                return None
        together = [one for found in hypotheses for one in found]
        for job in self.jobs:
            writer.refuse_none(job, together, asked)
        (results,) = writer.results(asked, [self.sentence], [together])
        return results

    def certain(self, decoding: Decoding, rows: Sequence[int]) -> str:
        """The text that the translation will begin with; `rows`: those of it that are being searched."""
        writer, asked = self.known()
        if asked.wishes.forbid:
            return ""  # what comes out may be searched again
        outputs: list[Sequence[int]] = [one.tokens for found in self.found if found for one in found]
        best = None if asked.required(self.sentence) else 1  # which counts as best is seen at the end, then
        for row in rows:
            live, finished = decoding.outputs(row)
            outputs += live
            outputs += [one.tokens for one in finished[:best]]
        return whole_characters(writer.target.decode([common(outputs)])[0])


class Running:
    """A `Decoding` that runs, and which of its rows belongs to whom."""

    def __init__(self, translator: Translator) -> None:
        engine = translator.engine
        for model in engine.models:
            model.eval()
        self.decoding = Decoding(engine.stepper, device=engine.device)
        self.places: dict[int, tuple[Asking, int]] = {}  # by row
        self.rows: dict[Asking, list[int]] = {}

    @property
    def live(self) -> int:
        return len(self.places)

    @property
    def cost(self) -> int:
        return sum(asking.cost for asking in self.rows)

    def add(self, group: Sequence[Asking]) -> None:
        """Search for what is missing of these. Where it raises, nothing has changed."""
        wanted = [(asking, place) for asking in group for place in asking.missing]
        jobs = [asking.jobs[place] for asking, place in wanted]
        names = self.decoding.add(source_batch([job.source for job in jobs]), [job.options for job in jobs])
        self.places.update(zip(names, wanted, strict=True))
        for name, (asking, _) in zip(names, wanted, strict=True):
            self.rows.setdefault(asking, []).append(name)

    def step(self) -> list[Asking]:
        """One more token for all of them; those whose searches are all done."""
        done = []
        for event in self.decoding.step():
            if isinstance(event, Completed):
                del self.decoding.results[event.row]
                asking, place = self.places.pop(event.row)
                asking.found[place] = event.hypotheses
                rows = self.rows[asking]
                rows.remove(event.row)
                if not rows:
                    del self.rows[asking]
                    done.append(asking)
        return done

    def cancel(self, asking: Asking) -> None:
        for row in self.rows.pop(asking, ()):
            del self.places[row]
            self.decoding.cancel(row)


def alike(group: Sequence[Asking]) -> list[list[Asking]]:
    """Those of the same wishes together: a GPU searches them in one go."""
    parts: dict[Asked, list[Asking]] = {}
    for asking in group:
        parts.setdefault(asking.known()[1], []).append(asking)
    return list(parts.values())


def search_whole(translator: Translator, group: Sequence[Asking]) -> dict[Asking, list[Translation] | Exception]:
    """For engines that give whole translations alone: all of a group at once. Of those among which one is refused the
    halves are tried, and so on."""
    answers: dict[Asking, list[Translation] | Exception] = {}
    open_ = list(group)
    while open_:
        try:
            wanted = [(asking, place) for asking in open_ for place in asking.missing]
            jobs = [asking.jobs[place] for asking, place in wanted]
            rows = [(job.source, job.options) for job in jobs]
            engine = translator.engine
            for number, hypotheses in engine.search(rows, engine.batch, [job.sentence for job in jobs]):
                asking, place = wanted[number]
                asking.found[place] = hypotheses
        except Exception as error:
            if len(open_) == 1:
                return {**answers, open_[0]: error}
            half = len(open_) // 2
            return answers | search_whole(translator, open_[:half]) | search_whole(translator, open_[half:])
        again = []
        for asking in open_:
            try:
                results = asking.finish()
            except JumokError as error:
                answers[asking] = error
                continue
            if results is None:
                again.append(asking)
            else:
                answers[asking] = results
        open_ = again
    return answers
