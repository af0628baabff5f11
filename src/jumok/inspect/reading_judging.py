"""A test set of words in pictures, judged: what the model reads in each, and which of its mistakes are worth a look.

Pictures pass by in batches; of each word there stay its name, both texts and how sure the model was, a few hundred
bytes. Of those that were misread small pictures are kept for a page: of each script and kind of mistake those that the
model was most sure of, taken in turns, so that there is something to see whatever one chooses there. Which ones these
are does not depend on how many are held meanwhile: what has enough better ones before it has as many at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jumok.data.images.picture import BadPicture
from jumok.data.images.raw import Pixels, RawImage
from jumok.data.images.sources import ImageSource
from jumok.errors import BadInput
from jumok.inspect.attention import visible
from jumok.tasks.reading_kinds import Mistaken, composed, mistake_of, script_of
from jumok.tasks.reading_scores import ReadingScores, reading_scores
from jumok.tasks.text_reader import Size, TextReader, Way
from jumok.text.outside import Outside, report_outside

ON_PAGE = 1000  # misread words, at most
THUMBNAIL: Size = (64, 256)  # height and width of what is kept of a picture, at most
SHOWN = 5  # pictures that cannot be opened, named
CHARACTERS = 12  # that the model does not know, named
PRUNED = 2  # times as many as wanted are held before the others are let go


@dataclass(frozen=True, slots=True)
class Misread:
    """A word that was read as another; both in NFC."""

    number: int  # of the picture among all, from 1
    name: str  # where it comes from
    truth: str
    read: str
    confidence: float
    kind: Mistaken
    pixels: Pixels  # (H, W, C)


class Misreadings:
    """Takes mistakes as they come, keeps `most` of them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: list[Misread] = []

    def add(self, mistake: Misread) -> None:
        self._held.append(mistake)
        if len(self._held) > PRUNED * self.most:
            self._held = self.kept()

    def kept(self) -> list[Misread]:
        """The most confident of each script and kind, then the second one of each, as many as there is room for; in
        the order of confidence."""
        turns: dict[tuple[str, str], int] = {}
        ranked = []
        for one in sorted(self._held, key=_most_sure_first):
            key = script_of(one.truth), one.kind
            turns[key] = turns.get(key, -1) + 1
            ranked.append((turns[key], _most_sure_first(one), one))
        chosen = sorted(ranked, key=lambda each: each[:2])[: self.most]
        return sorted((one for *_, one in chosen), key=_most_sure_first)


def _most_sure_first(one: Misread) -> tuple[float, int]:
    return -one.confidence, one.number


@dataclass(frozen=True)
class JudgedReading:
    scores: ReadingScores
    names: tuple[str, ...]  # of the pictures that were judged, in their order
    truth: tuple[str, ...]
    read: tuple[str, ...]  # as the model writes it
    confidences: tuple[float, ...]
    mistakes: Misreadings
    broken: tuple[str, ...]  # why pictures could not be opened
    outside: Outside  # characters of the truth that the model does not know
    said: tuple[str, ...] = ()  # what there was to say about the data

    def notes(self) -> tuple[str, ...]:
        """What was left out and what could not be right, in sentences."""
        notes = [*self.said]
        if count := len(self.broken):
            more = f"; and {count - SHOWN} more" if count > SHOWN else ""
            are = f"picture{'s' * (count > 1)} cannot be read and {'are' if count > 1 else 'is'} left out"
            notes.append(f"{count} {are}: {'; '.join(self.broken[:SHOWN])}{more}")
        if count := self.outside.with_outside:
            unknown = [found.character for found in self.outside.characters]
            more = " …" if len(unknown) > CHARACTERS else ""
            has = "words have characters" if count > 1 else "word has characters"
            named = " ".join(map(visible, unknown[:CHARACTERS]))
            notes.append(f"{count:,} {has} that this run has not learned ({named}{more}), and cannot be right")
        if count := self.outside.too_long:
            are = "words are" if count > 1 else "word is"
            notes.append(
                f"{count:,} {are} longer than the {self.outside.max_length} characters that this run can write"
            )
        return tuple(notes)


def judge_reading(reader: TextReader, source: ImageSource, page: int = 0, way: Way = Way()) -> JudgedReading:
    """All pictures of a source, whose labels are the texts, against what the model reads; of the mistakes `page` are
    kept to be shown."""
    names: list[str] = []
    truth: list[str] = []
    read: list[str] = []
    confidences: list[float] = []
    broken: list[str] = []
    mistakes = Misreadings(page)
    for seen in reader.stream(_labelled(source), way, THUMBNAIL if page else None):
        if isinstance(seen.read, BadPicture):
            broken.append(str(seen.read))
            continue
        names.append(seen.image.name)
        truth.append(composed(str(seen.image.label)))
        read.append(seen.read.text)
        confidences.append(seen.read.confidence)
        said = composed(seen.read.text)
        kind = mistake_of(truth[-1], said)
        if kind is not None and seen.thumbnail is not None:
            mistakes.add(Misread(len(names), names[-1], truth[-1], said, seen.read.confidence, kind, seen.thumbnail))
    if not names:
        first = f", and the first of {len(broken)} that cannot be read is: {broken[0]}" if broken else ""
        raise BadInput(f"there are no pictures to judge{first}")
    scores = reading_scores(truth, read, confidences)
    outside = report_outside(reader.charset, zip(names, truth, strict=True), reader.model.section.max_length)
    notes = getattr(source, "notes", None)  # sources of text images have something to say; others have not
    told = tuple(notes()) if notes is not None else ()
    kept = tuple(names), tuple(truth), tuple(read), tuple(confidences)
    return JudgedReading(scores, *kept, mistakes, tuple(broken), outside, told)


def _labelled(source: ImageSource) -> Iterator[RawImage]:
    for image in source:
        if image.label is None:
            raise BadInput(
                f"{image.name}: it is not said what is written there, so what the model reads cannot be judged. Name a "
                "folder or zip with a labels file (labels.txt: a picture, a tab, its text), an LMDB, or the labels file"
            )
        yield image
