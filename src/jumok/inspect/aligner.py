"""Word alignments of any number of sentence pairs, from one model's attention or from two models' of either direction.

Pairs stream through in chunks, sorted by length within a chunk, and come out in the order they came.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import IO

from jumok.data.pharaoh import Link
from jumok.errors import BadInput
from jumok.files import check_file_place, disk_errors_named
from jumok.inspect.alignment import AlignmentScore, Gold, reading_named, sentence_score
from jumok.inspect.forced import links_of_views
from jumok.inspect.heads import best_of_readings, best_view
from jumok.inspect.symmetric import Join, method_named, turned
from jumok.inspect.view import View
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import Tokenizer

CHUNK = 1024  # pairs sorted by length together: less padding


@dataclass(frozen=True)
class Reader:
    """One model, and where in it the links are read."""

    translator: Translator
    view: View

    def __post_init__(self) -> None:
        self.view.tap(self.translator.model)  # what does not exist is refused before any work
        reading_named(self.view.reading)

    @property
    def name(self) -> str:
        return self.view.name(self.translator.model) or self.view.tap(self.translator.model).name

    @property
    def limit(self) -> int:
        """Most tokens of a sentence, on either side."""
        return min(self.translator.max_length - len(self.translator.before), self.translator.model.longest - 1)

    def links(self, sources: Sequence[str], targets: Sequence[str]) -> list[set[Link]]:
        order = sorted(range(len(sources)), key=lambda place: len(targets[place]))
        sorted_sides = [sources[place] for place in order], [targets[place] for place in order]
        found: list[set[Link]] = [set()] * len(order)
        for place, (links,) in zip(order, links_of_views(self.translator, *sorted_sides, [self.view]), strict=True):
            found[place] = links
        return found


class Aligner:
    """`reverse` is a model of the other direction: its links and the first one's are made into one by `method`."""

    def __init__(
        self,
        translator: Translator,
        view: View | None = None,
        reverse: Translator | None = None,
        reverse_view: View | None = None,
        method: str = "grow-diag-final-and",
    ) -> None:
        self.forward = Reader(translator, view or View())
        self.backward = None if reverse is None else Reader(reverse, reverse_view or View())
        self.method, self._join = method, method_named(method)
        self.cut = 0  # pairs so far of which a side was longer than the models can read: its last words have no links

    @classmethod
    def best(
        cls,
        translator: Translator,
        sources: Sequence[str],
        targets: Sequence[str],
        gold: Sequence[Gold],
        reverse: Translator | None = None,
        method: str = "grow-diag-final-and",
    ) -> Aligner:
        """Read where it comes nearest to these gold alignments."""
        if reverse is None:
            method_named(method)
            return cls(translator, best_view(translator, sources, targets, gold).view)
        return cls.best_together(translator, reverse, sources, targets, gold, [method])[method]

    @classmethod
    def best_together(
        cls,
        translator: Translator,
        reverse: Translator,
        sources: Sequence[str],
        targets: Sequence[str],
        gold: Sequence[Gold],
        methods: Sequence[str],
    ) -> dict[str, Aligner]:
        """For each way to make two models one: of each reading of either the best view alone, then the two readings
        that are best together."""
        joins = {method: method_named(method) for method in methods}
        other_gold = [(turned(sure), turned(possible)) for sure, possible in gold]
        views = best_of_readings(translator, sources, targets, gold)
        other_views = best_of_readings(reverse, targets, sources, other_gold)
        forward = list(links_of_views(translator, sources, targets, views))
        backward = list(links_of_views(reverse, targets, sources, other_views))
        chosen = {}
        for method, join in joins.items():

            def error(choice: tuple[int, int], join: Join = join) -> float:
                one, other = choice
                rows = zip(forward, backward, gold, strict=True)
                each = (
                    sentence_score(join(f[one], turned(b[other])), sure, possible) for f, b, (sure, possible) in rows
                )
                return sum(each, AlignmentScore()).error_rate

            one, other = min(product(range(len(views)), range(len(other_views))), key=error)
            chosen[method] = cls(translator, views[one], reverse, other_views[other], method)
        return chosen

    @property
    def name(self) -> str:
        """Where the links come from, in words."""
        if self.backward is None:
            return self.forward.name
        return f"{self.forward.name} and, reverse, {self.backward.name}; {self.method}"

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[set[Link]]:
        """For each pair its links: (source word, target word), counted from 0."""
        if isinstance(sources, str) or isinstance(targets, str):
            raise BadInput("align() takes lists: write align([sentence], [translation])")
        if len(sources) != len(targets):
            raise BadInput(f"align(): {len(sources)} sentences and {len(targets)} translations: they must pair up")
        return list(self.stream(zip(sources, targets, strict=True)))

    def stream(self, pairs: Iterable[tuple[str, str]]) -> Iterator[set[Link]]:
        """As `align`, however many pairs there are."""
        coming = iter(pairs)
        while chunk := list(islice(coming, CHUNK)):
            fitting = [self._fitting(pair) for pair in chunk]
            self.cut += sum(short != pair for short, pair in zip(fitting, chunk, strict=True))
            sources, targets = [source for source, _ in fitting], [target for _, target in fitting]
            found = self.forward.links(sources, targets)
            if self.backward is not None:
                others = map(turned, self.backward.links(targets, sources))
                found = [self._join(*both) for both in zip(found, others, strict=True)]
            yield from found

    def _fitting(self, pair: tuple[str, str]) -> tuple[str, str]:
        """The words that all models can read."""
        source, target = pair
        for reader in (self.forward, self.backward):
            if reader is not None:
                tokenizers = reader.translator.source, reader.translator.target
                own, other = tokenizers if reader is self.forward else tokenizers[::-1]
                source, target = shortened(source, own, reader.limit), shortened(target, other, reader.limit)
        return source, target


def shortened(text: str, tokenizer: Tokenizer, limit: int) -> str:
    """As many whole words from the start as have at most `limit` tokens."""
    if 2 * len(text.encode("utf-8", "replace")) <= limit:  # a token is a byte at least, or the mark of a word's start
        return text
    cut = tokenizer.encode_with_offsets(text)
    return text if len(cut.ids) <= limit else " ".join(text.split()[: cut.words[limit]])


class Scoring:
    """Counts of alignments against gold ones, as they pass by."""

    def __init__(self, gold: Sequence[Gold]) -> None:
        self.gold, self.total = gold, AlignmentScore()

    def passed(self, aligned: Iterable[set[Link]]) -> Iterator[set[Link]]:
        for links, (sure, possible) in zip(aligned, self.gold, strict=True):
            self.total += sentence_score(links, sure, possible)
            yield links


@contextmanager
def whole_lines(path: Path) -> Iterator[Callable[[str], object]]:
    """A text file that is there when all its lines are: until then it has another name. A pipe gets them at once."""
    check_file_place(path)
    ordinary = path.is_file() or not path.exists()
    place = path.with_name(f".{path.name}.{os.getpid()}.tmp") if ordinary else path
    try:
        with disk_errors_named("writing lines", path, "Choose another --out."):
            file: IO[str] = place.open("w", encoding="utf-8", newline="\n")
        with file:

            def write(line: str) -> None:
                with disk_errors_named("writing lines", path, "Free some space, or choose another --out."):
                    file.write(f"{line}\n")

            yield write
            with disk_errors_named("writing lines", path, "Free some space, or choose another --out."):
                file.flush()
        if ordinary:
            with disk_errors_named("writing lines", path, "Choose another --out."):
                place.replace(path)
    finally:
        if ordinary:
            with suppress(OSError):
                place.unlink(missing_ok=True)
