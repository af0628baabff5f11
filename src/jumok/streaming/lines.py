"""Chunk after chunk of sentences, translated and written out as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from jumok.api import TrainedTranslator
from jumok.data.pharaoh import format_pharaoh
from jumok.inspect.forced import word_links
from jumok.streaming.ahead import ahead
from jumok.streaming.sources import Chunk
from jumok.tasks.translator import Translation
from jumok.tasks.wishes import BadSentence, Wishes

BREAKS = str.maketrans({"\n": " ", "\r": " "})  # a model of bytes or characters can write them: a line is a line


@dataclass(frozen=True)
class Columns:
    """What stands on a line behind the translation, after tabs. (In n-best lists the sentence's number is first.)"""

    scores: bool = False
    alignments: bool = False
    layer: int | None = None  # of a Transformer's attention that alignments are read from
    head: int | None = None


@dataclass(frozen=True)
class Written:
    """One sentence's lines (`nbest` of them); at the end of a chunk, how many bytes of the input are done."""

    lines: list[str]
    sentences: int  # done so far
    size: int | None


def chunk_size(model: TrainedTranslator, wishes: Wishes) -> int:
    """Sentences gathered before sorting by length: more gives less padding, fewer gives earlier answers."""
    return model.batch(wishes) * model.engine.gathered


def stream(
    model: TrainedTranslator,
    chunks: Iterable[Chunk],
    wishes: Wishes,
    columns: Columns,
    done: int = 0,
    skipped: Callable[[int, int], None] = lambda sentences, size: None,
    count: int = 1,
) -> Iterator[Written]:
    """Each sentence's lines, in order. The first `done` sentences were written before; `skipped` is told of them.
    `count` chunks are under way at a time: one, where whoever writes the sentences waits for answers.

    A chunk that is begun is always translated as a whole, so that what comes out does not depend on `done`.
    """

    def due() -> Iterator[tuple[Chunk, int]]:
        """Chunks that are not all done, and the bytes of the input up to their end."""
        size = 0
        for chunk in chunks:
            size += chunk.size
            if chunk.first + len(chunk.sentences) > done:
                if chunk.first <= done:
                    skipped(done, size - chunk.size)
                yield chunk, size

    def translated(chunk: tuple[Chunk, int]) -> tuple[list[list[Translation]], BadSentence | None]:
        return _translated(model, chunk[0], replace(wishes, first=chunk[0].first))

    for (chunk, size), (found, problem) in ahead(translated, due(), count):
        good = chunk.sentences[: len(found)]
        lines = _lines(model, [one.text for one in good], found, wishes.nbest, columns, chunk.first)
        for number, written in enumerate(lines, chunk.first + 1):
            if number > done:
                ends = number == chunk.first + len(chunk.sentences)
                yield Written(written, number, size if ends else None)
        if problem is not None:
            raise problem


def _translated(
    model: TrainedTranslator, chunk: Chunk, wishes: Wishes
) -> tuple[list[list[Translation]], BadSentence | None]:
    """The translations; or those before the first sentence that cannot be translated, and why."""
    sentences, problem = list(chunk.sentences), None
    while True:
        try:
            found = model.found(sentences, wishes)
            return (found, None) if problem is None else (found[: problem.index], problem)
        except BadSentence as error:  # what came before it is not lost: go on as if it were empty
            sentences[error.index] = replace(sentences[error.index], text="")
            problem = error if problem is None or error.index < problem.index else problem


def _lines(
    model: TrainedTranslator,
    sentences: list[str],
    found: list[list[Translation]],
    nbest: int,
    columns: Columns,
    first: int,
) -> Iterator[list[str]]:
    links: dict[tuple[int, int], str] = {}
    if columns.alignments:
        wanted = [(row, rank) for row, ranks in enumerate(found) for rank, best in enumerate(ranks) if best.ids]
        texts, ids = [sentences[row] for row, _ in wanted], [found[row][rank].ids for row, rank in wanted]
        pairs = word_links(model, texts, ids, columns.layer, columns.head)
        links = {place: format_pharaoh(link) for place, link in zip(wanted, pairs, strict=True)}
    single = not (columns.scores or columns.alignments or nbest > 1)
    for row, ranks in enumerate(found):
        lines = []
        for rank, best in enumerate(ranks):
            text = best.text.translate(BREAKS)
            cells = [text if single else text.replace("\t", " ")]
            if nbest > 1:
                cells.insert(0, str(first + row + 1))
            if columns.scores:
                cells.append(f"{best.score:.4f}")
            if columns.alignments:
                cells.append(links.get((row, rank), ""))
            lines.append("\t".join(cells))
        yield lines
