"""A file translated by several processes, as torchrun starts them.

Chunks are dealt out like cards: process r takes the chunks r, r + world, … and writes their lines into a file of its
own, `OUTPUT.part-r-of-world`, which is continued after a kill as every output is. When all have done theirs, the first
process joins the parts. A chunk is translated as one process would have done it, so the lines are the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.api import TrainedTranslator
from jumok.data.compression import STANDARD_INPUT
from jumok.errors import BadInput
from jumok.files import disk_errors_named
from jumok.streaming.lines import Columns, chunk_size, stream
from jumok.streaming.output import Complete, note_of, open_output, refuse_sources
from jumok.streaming.progress import Pace
from jumok.streaming.sources import Chunk, Source, Survey
from jumok.streaming.translating import settings
from jumok.tasks.wishes import Wishes
from jumok.training.distributed import Ranks


class Share:
    """What one of `world` processes takes of a file of so many sentences, cut into chunks of equal size."""

    def __init__(self, rank: int, world: int, sentences: int, size: int) -> None:
        self.rank, self.world, self.sentences, self.size = rank, world, sentences, size

    def chunks(self, source: Source) -> Iterator[Chunk]:
        return islice(source.chunks(self.size), self.rank, None, self.world)

    @property
    def own(self) -> int:
        """How many sentences there are in it."""
        firsts = range(self.rank * self.size, self.sentences, self.world * self.size)
        return sum(min(self.size, self.sentences - first) for first in firsts)

    def place(self, own: int) -> int:
        """How many sentences of the whole file come before the one behind the first `own` of the share."""
        chunks, rest = divmod(own, self.size)
        return (self.rank + chunks * self.world) * self.size + rest


def translate_together(
    model: TrainedTranslator,
    source: Source,
    wishes: Wishes,
    columns: Columns,
    output: Path | None,
    resume: bool,
    ranks: Ranks,
) -> None:
    """Translate a file into a file; every process calls this."""
    model.check(wishes)
    if source.path is None or not source.is_file or output is None or not is_ordinary(output):
        raise ranks.told(
            BadInput("several processes (torchrun) translate from a file into a file: give --input and --output")
        )
    seen, size, numbered = Survey.of(source.path), chunk_size(model, wishes), wishes.nbest > 1
    made_of = {"lines": seen.lines, "sha256": seen.sha256}, settings(model, source, wishes, columns)
    ranks.same(input=made_of[0], **{"model or options": made_of[1]})
    if ranks.first(lambda: is_complete(output, source, ranks.world, resume, seen.lines, numbered)):
        return
    share = Share(ranks.rank, ranks.world, seen.lines, size)

    def about() -> dict[str, Any]:
        return {"input": made_of[0], "settings": {**made_of[1], "part": f"{ranks.rank} of {ranks.world}"}}

    def complete(done: int) -> bool:
        return share.own == (done if not numbered else _sentences_before(share, done))

    part = part_of(output, ranks.rank, ranks.world)
    try:
        with open_output(part, about=about, resume=resume, numbered=numbered, complete=complete) as begun:
            done = begun.done if numbered else share.place(begun.done)
            with Pace(seen.size // ranks.world, ranks.rank == 0) as pace:
                ahead = model.engine.ahead
                for written in stream(model, share.chunks(source), wishes, columns, done, pace.skipped, ahead):
                    begun.write(written.lines)
                    if written.size is not None:
                        pace.advance(written.sentences // ranks.world, written.size)
    except Complete:
        pass  # this part was, the others may not be
    except KeyboardInterrupt:
        if ranks.rank == 0:
            print(f"what is done so far lies beside {output}: the same command with --resume goes on", file=sys.stderr)
        raise
    ranks.wait()
    ranks.first(lambda: join(output, ranks.world, seen.lines, size, numbered))


def is_ordinary(output: Path) -> bool:
    """A file, or the name of one that will be: no standard output, pipe or folder."""
    return str(output) != STANDARD_INPUT and (output.is_file() or not output.exists())


def part_of(output: Path, rank: int, world: int) -> Path:
    return output.with_name(f"{output.name}.part-{rank}-of-{world}")


def is_complete(output: Path, source: Source, world: int, resume: bool, sentences: int, numbered: bool) -> bool:
    """Whether nothing is left to do. What must not be touched or cannot be continued is refused."""
    refuse_sources(output, source.path, source.prefixes, source.phrases)
    parts = [part for rank in range(world) for part in [part_of(output, rank, world)] if part.exists()]
    begun = sorted(output.parent.glob(f"{output.name}.part-*-of-*[0-9]"))
    if others := [path.name for path in begun if path not in parts]:
        raise BadInput(
            f"{output} was begun by {others[0].rpartition('-')[2]} processes: go on with as many and --resume, or "
            f"delete {output.name}.part-* to begin anew"
        )
    if note_of(output).exists():
        raise BadInput(f"{output} was begun by one process: go on without torchrun and with --resume, or delete it")
    if parts and not resume:
        raise BadInput(
            f"{output} is a translation that was interrupted: go on with --resume, or delete {output.name}.part-* to "
            "begin anew"
        )
    if parts or not resume or not output.exists():
        return False
    try:
        with open_output(output, about=dict, resume=True, numbered=numbered, complete=lambda found: found == sentences):
            return False  # an empty file
    except Complete as nothing_left:
        print(nothing_left, file=sys.stderr)
        return True


def _sentences_before(share: Share, number: int) -> int:
    """How many sentences of a share the one with this number in the file is the last of."""
    return Share(share.rank, share.world, number, share.size).own


def _number(line: bytes) -> int:
    return int(line.partition(b"\t")[0])


def join(output: Path, world: int, sentences: int, size: int, numbered: bool) -> None:
    """The lines of all parts in the order of the input; then the parts are gone."""
    parts = [part_of(output, rank, world) for rank in range(world)]
    temporary = output.with_name(f".{output.name}.joining-{os.getpid()}")
    with disk_errors_named("joining the translations", output, "Free some space, then go on with --resume."):
        files = [part.open("rb") for part in parts]
        try:
            with temporary.open("wb") as whole:
                if numbered:  # a sentence may have more lines or fewer
                    ordered: Iterator[bytes] = merge(*files, key=_number)
                    whole.writelines(ordered)
                else:
                    for chunk, first in enumerate(range(0, sentences, size)):
                        whole.writelines(islice(files[chunk % world], min(size, sentences - first)))
                whole.flush()
                os.fsync(whole.fileno())
            temporary.replace(output)
        finally:
            temporary.unlink(missing_ok=True)
            for file in files:
                file.close()
        for part in parts:
            part.unlink()
