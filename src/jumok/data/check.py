"""`jumok data check`: what is in a parallel corpus, and which lines to look at before training on it.

One pass, with flat memory but for 20 bytes a pair: 8 each to find repeated pairs and repeated sources, 4 for the
length ratio, whose usual value is known only at the end.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from jumok.data.suspicion import expected, scripts, suspicions

LONG = 1000  # characters; such lines are left out of training by most recipes
EXCERPT = 200  # characters of a line kept as an example, whatever its length
BARS = 12
SMOOTHING = 5  # added to both lengths: "Yes." against "Oui, oui." is no outlier

KINDS = {
    "empty": "one side or both are blank (left out of training)",
    "repeated-pair": "the same pair again",
    "repeated-source": "the same source again, other translation",
    "length-ratio": "one side is far longer than usual for the other",
    "identical": "both sides are the same",
    "script": "not in the script of the rest of its side",
    "control": "control or private characters",
    "replacement": "replacement character U+FFFD: text was lost in a conversion",
    "mojibake": "decoded with the wrong encoding",
    "not-nfc": "not in Unicode's composed form (NFC)",
    "untrimmed": "spaces at the start or end",
    "long": f"longer than {LONG} characters",
}


_Scripts = dict[tuple[str, ...], "Finding"]


@dataclass(frozen=True)
class Example:
    """A line to look at."""

    line: int
    note: str
    source: str = ""
    target: str = ""


@dataclass
class Finding:
    """One kind of trouble: how often, and the first few lines."""

    kind: str
    about: str
    count: int = 0
    examples: list[Example] = field(default_factory=list)


@dataclass
class Side:
    """What one language amounts to."""

    lines: int = 0
    words: int = 0
    characters: int = 0
    blank: int = 0
    longest: int = 0
    longest_line: int = 0
    script: str | None = None


@dataclass(frozen=True)
class Histogram:
    """How many lines have a length from `starts[i]` up to the next start; the last bar is open."""

    unit: str
    starts: list[int]
    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class CheckReport:
    pairs: int
    source: Side
    target: Side
    histogram: Histogram
    findings: list[Finding]  # only what was found, in the order of KINDS

    def finding(self, kind: str) -> Finding:
        """One kind, with count 0 when there was none."""
        return next((found for found in self.findings if found.kind == kind), Finding(kind, KINDS[kind]))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def check_pairs(pairs: Iterable[tuple[str, str]], limit: int = 5, first_line: int = 1) -> CheckReport:
    """Look at every pair once. `limit`: examples kept of each kind. `first_line`: where the first pair is."""
    check = _Check(limit)
    for line, (source, target) in enumerate(pairs, first_line):
        check.add(line, source, target)
    return check.report(first_line)


class _Check:
    """The counts of a pass that is under way."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.found = {kind: Finding(kind, about) for kind, about in KINDS.items()}
        self.sides = (Side(), Side())
        self.words: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        self.characters: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        # The usual script is known only at the end: until then examples are kept for each mixture.
        self.scripts: tuple[_Scripts, _Scripts] = ({}, {})
        self.pair_hashes, self.source_hashes = array("q"), array("q")
        self.ratios = array("f")
        self.short: list[tuple[float, int, Example]] = []  # heaps of the most extreme ratios of either kind
        self.tall: list[tuple[float, int, Example]] = []

    def note(self, kind: str, line: int, note: str, source: str, target: str) -> None:
        self._count(self.found[kind], line, note, source, target)

    def _count(self, finding: Finding, line: int, note: str, source: str, target: str) -> None:
        finding.count += 1
        if len(finding.examples) < self.limit:
            finding.examples.append(Example(line, note, source[:EXCERPT], target[:EXCERPT]))

    def add(self, line: int, source: str, target: str) -> None:
        notes: dict[str, list[str]] = {}
        blank = [self._side(index, line, source, target, notes) for index in (0, 1)]
        for kind, both in notes.items():
            self.note(kind, line, "; ".join(both), source, target)  # one line, one count, whichever the side
        if any(blank):
            which = "both sides" if all(blank) else "source" if blank[0] else "target"
            self.note("empty", line, f"{which} blank", source, target)
            # Blank lines repeat and have no ratio, but the arrays stay in step with the lines.
            self.pair_hashes.append(_unique(2 * line))
            self.source_hashes.append(_unique(2 * line + 1))
            self.ratios.append(math.nan)
            return
        self.pair_hashes.append(hash((source, target)))
        self.source_hashes.append(hash(source))
        if source == target:
            self.note("identical", line, "", source, target)
        self._ratio(line, source, target)

    def _side(self, index: int, line: int, source: str, target: str, notes: dict[str, list[str]]) -> bool:
        """Count one side of a line and note its trouble; whether it is blank."""
        text, name, side = (source, target)[index], ("source", "target")[index], self.sides[index]
        words = len(text.split())
        side.lines += 1
        side.words += words
        side.characters += len(text)
        self.words[index][min(words, 10_000)] += 1
        self.characters[index][min(len(text), 100_000)] += 1
        if not words:
            side.blank += 1
            return True
        if len(text) > side.longest:
            side.longest, side.longest_line = len(text), line
        if len(text) > LONG:
            notes.setdefault("long", []).append(f"{name}: {len(text):,} characters")
        for kind, note in suspicions(text):
            notes.setdefault(kind, []).append(f"{name}: {note}")
        found = scripts(text)
        if found:
            finding = self.scripts[index].setdefault(found, Finding("script", ""))
            self._count(finding, line, f"{name}: {found[0]}", source, target)
        return False

    def _ratio(self, line: int, source: str, target: str) -> None:
        ratio = math.log((len(target) + SMOOTHING) / (len(source) + SMOOTHING))
        self.ratios.append(ratio)
        for heap, key in ((self.tall, ratio), (self.short, -ratio)):
            if len(heap) < self.limit or (heap and key > heap[0][0]):
                note = f"{len(source):,} against {len(target):,} characters"
                # Of equal ratios the earliest line is kept, hence -line.
                heapq.heappush(heap, (key, -line, Example(line, note, source[:EXCERPT], target[:EXCERPT])))
                if len(heap) > self.limit:
                    heapq.heappop(heap)

    def report(self, first_line: int) -> CheckReport:
        self._close_scripts()
        self._close_ratios()
        self._close_repeats(first_line)
        source, target = self.sides
        return CheckReport(
            pairs=source.lines,
            source=source,
            target=target,
            histogram=self._histogram(),
            findings=[finding for finding in self.found.values() if finding.count],
        )

    def _close_scripts(self) -> None:
        wrong: list[Example] = []
        for side, mixtures in zip(self.sides, self.scripts, strict=True):
            lines: Counter[str] = Counter()
            for mixture, finding in mixtures.items():
                lines.update(dict.fromkeys(mixture, finding.count))
            if not lines:
                continue
            side.script = lines.most_common(1)[0][0]
            for mixture, finding in mixtures.items():
                if not expected(mixture, side.script):
                    self.found["script"].count += finding.count
                    usual = f" where {side.script} is usual"
                    wrong += [Example(e.line, e.note + usual, e.source, e.target) for e in finding.examples]
        self.found["script"].examples = sorted(wrong, key=lambda example: example.line)[: self.limit]

    def _close_ratios(self) -> None:
        """Outliers: further from the median than 6 robust deviations, and than a factor of 2."""
        ratios = np.frombuffer(self.ratios, dtype=np.float32) if self.ratios else np.zeros(0, dtype=np.float32)
        ratios = ratios[~np.isnan(ratios)]
        if not len(ratios):
            return
        median = float(np.median(ratios))
        deviation = 1.4826 * float(np.median(np.abs(ratios - median)))
        allowed = max(math.log(2), 6 * deviation)
        finding = self.found["length-ratio"]
        finding.count = int((np.abs(ratios - median) > allowed).sum())
        candidates = {
            example.line: (abs(sign * key - median), example)
            for heap, sign in ((self.tall, 1), (self.short, -1))
            for key, _, example in heap
        }
        worst = sorted(candidates.values(), key=lambda item: (-item[0], item[1].line))
        finding.examples = [example for far, example in worst if far > allowed][: min(self.limit, finding.count)]

    def _close_repeats(self, first_line: int) -> None:
        pair_of = _first_of(self.pair_hashes)
        source_of = _first_of(self.source_hashes)
        places = np.arange(len(pair_of))
        again = pair_of != places
        self._repeats("repeated-pair", np.flatnonzero(again), pair_of, first_line)
        self._repeats("repeated-source", np.flatnonzero((source_of != places) & ~again), source_of, first_line)

    def _repeats(self, kind: str, places: Any, first_of: Any, first_line: int) -> None:
        finding = self.found[kind]
        finding.count = len(places)
        finding.examples = [
            Example(int(place) + first_line, f"as line {int(first_of[place]) + first_line}")
            for place in places[: self.limit]
        ]

    def _histogram(self) -> Histogram:
        """Words, or characters where a side does not put spaces between words."""
        spaced = all(side.characters <= 15 * max(1, side.words) for side in self.sides)
        counts = self.words if spaced else self.characters
        ordered = sorted((counts[0] + counts[1]).items())
        total, seen, nearly_all = sum(count for _, count in ordered), 0, 1
        for length, count in ordered:
            seen += count
            nearly_all = max(1, length)
            if seen >= 0.99 * total:
                break
        width = -(-nearly_all // (BARS - 1))
        starts = [index * width for index in range(nearly_all // width + 2)]
        bars = [[0] * len(starts) for _ in counts]
        for bar, lengths in zip(bars, counts, strict=True):
            for length, count in lengths.items():
                bar[min(length // width, len(starts) - 1)] += count
        return Histogram("words" if spaced else "characters", starts, bars[0], bars[1])


def _unique(number: int) -> int:
    """A stand-in hash for a blank line, different for each."""
    return hash(("blank line", number))


def _first_of(hashes: array[int]) -> Any:
    """For each place the first place with the same hash."""
    values = np.frombuffer(hashes, dtype=np.int64) if hashes else np.zeros(0, dtype=np.int64)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.ones(len(values), dtype=bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    group = np.cumsum(starts) - 1
    first = np.empty(len(values), dtype=np.int64)
    first[order] = order[starts][group]
    return first
