"""The data of a run before it is learned from: lines to look at, what is in both training and validation, and which
lines are longest."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from jumok.data.check import EXCERPT, CheckReport, Example, check_pairs
from jumok.data.readers import first_line, read_pairs
from jumok.data.suspicion import suspicions, visible
from jumok.data.text_store import read_text
from jumok.recipe import Corpus, Recipe
from jumok.recipe.whole import LABELLED
from jumok.training.doctor.findings import Level, Report
from jumok.training.doctor.labelled import check_examples

MOST_LINES = 500_000  # of a corpus are looked at; `jumok data check` looks at all
SHOWN = 3  # lines named in a finding
SIDES = ("source", "target")
LONGEST = 5

# By kind of trouble (data/check.py): how bad, and what to do. What is left out has a check of its own.
TODO: dict[str, tuple[Level, str]] = {
    "empty": ("note", "nothing: they are left out by themselves"),
    "repeated-pair": ("note", "remove the copies, unless they are meant to count more"),
    "repeated-source": ("note", "nothing, if several translations are meant"),
    "length-ratio": (
        "warning",
        "look at them: a side may be cut off, or the files may have slipped against each other",
    ),
    "identical": ("warning", "remove what is not translated: it teaches the model to copy"),
    "script": ("warning", "look at them: another language may have got into this side"),
    "control": ("warning", "remove these characters"),
    "replacement": ("warning", "convert the file again from where it came from: the text is lost in this one"),
    "mojibake": ("warning", "convert the file again from where it came from, with the right encoding"),
    "not-nfc": ("note", "nothing: text is composed (NFC) before it is cut into tokens"),
    "untrimmed": ("note", "nothing: spaces at the ends are no tokens"),
}

Say = Callable[[str], None]


def place_of(corpus: Corpus) -> str:
    """Where a corpus is, for people."""
    if corpus.grammar is not None:
        return f"the embedded grammar ({corpus.grammar})"
    names = [*corpus.source, *corpus.target, *corpus.file, *corpus.text, *corpus.examples]
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def check_corpora(recipe: Recipe, report: Report, say: Say) -> dict[int, list[tuple[int, str, str]]]:
    """Look at every corpus once. Gives the longest pairs of each training corpus: line and both sides."""
    if recipe.task in LABELLED:
        check_examples(recipe, report, say, TODO, place_of)
        return {}
    if recipe.task in ("language", "pretraining"):
        for corpus in (*recipe.data.train, *recipe.data.valid):
            _check_text(corpus, report, say)
        return {}
    held = {hash(pair) for corpus in recipe.data.valid for pair in _pairs(corpus, "valid")}
    longest: dict[int, list[tuple[int, str, str]]] = {}
    shared: Counter[str] = Counter()
    for number, corpus in enumerate(recipe.data.train):
        watch = _Watch(_pairs(corpus, "train"), held, first_line(corpus))
        if corpus.grammar is None:
            say(f"checking {place_of(corpus)} …")
            _tell(check_pairs(watch, SHOWN, first_line(corpus)), corpus, report)
        else:
            for _ in watch:
                pass
        shared[place_of(corpus)] += watch.shared
        ranked = sorted(watch.longest, key=lambda row: (-row[0], row[1]))
        longest[number] = [(line, source, target) for _, line, source, target in ranked]
    for place, count in shared.items():
        if count:
            report.add(
                "warning" if count > 0.01 * len(held) else "note",
                "data",
                f"{_count(count, 'pair')} of the validation data {_are(count)} in the training data too",
                place,
                "take them out of the one or the other: what was learned by heart says nothing about new text",
            )
    for corpus in recipe.data.valid:
        if corpus.grammar is None:
            _tell(check_pairs(_pairs(corpus, "valid"), SHOWN, first_line(corpus)), corpus, report)
    return longest


def _pairs(corpus: Corpus, split: str) -> Iterator[tuple[str, str]]:
    return islice(read_pairs(corpus, corpus.split or split), MOST_LINES)


class _Watch:
    """The pairs as they go by: which are in the validation data, and which are longest."""

    def __init__(self, pairs: Iterator[tuple[str, str]], held: set[int], first: int) -> None:
        self.pairs, self.held, self.first = pairs, held, first
        self.shared = 0
        self.longest: list[tuple[int, int, str, str]] = []  # a heap by characters

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for line, pair in enumerate(self.pairs, self.first):
            self.shared += bool(self.held) and hash(pair) in self.held
            size = max(map(len, pair))
            if len(self.longest) < LONGEST:
                heapq.heappush(self.longest, (size, line, *pair))
            elif size > self.longest[0][0]:
                heapq.heapreplace(self.longest, (size, line, *pair))
            yield pair


def _tell(found: CheckReport, corpus: Corpus, report: Report) -> None:
    seen = found.pairs
    if seen == MOST_LINES:
        files = " ".join([*corpus.source, *corpus.target, *corpus.file])
        what = f"only the first {MOST_LINES:,} pairs were looked at"
        report.add("note", "data", what, place_of(corpus), f"for all of them: jumok data check {files}")
    for finding in found.findings:
        if finding.kind in TODO:
            level, todo = TODO[finding.kind]
            what = f"{_count(finding.count, 'pair')} ({finding.count / max(1, seen):.2%}): {finding.about}"
            report.add(level, "data", what, f"{place_of(corpus)}, {_lines(finding.examples, finding.count)}", todo)


def _check_text(corpus: Corpus, report: Report, say: Say) -> None:
    """Plain text: what one line can have wrong with it, and lines that come again and again."""
    if corpus.grammar is not None:
        return
    say(f"checking {place_of(corpus)} …")
    counts: Counter[str] = Counter()
    examples: dict[str, list[Example]] = {}
    seen: set[int] = set()
    repeated = lines = 0
    for line, text in enumerate(islice(read_text(corpus), MOST_LINES), 1):
        lines = line
        if not text.strip():
            continue
        repeated += hash(text) in seen
        seen.add(hash(text))
        for kind, note in suspicions(text):
            counts[kind] += 1
            if kind in TODO and len(examples.setdefault(kind, [])) < SHOWN:
                examples[kind].append(Example(line, note, text[:EXCERPT]))
    for kind, found in examples.items():
        level, todo = TODO[kind]
        what = f"{_count(counts[kind], 'line')} ({counts[kind] / lines:.2%}): {visible(found[0].note, 60)}"
        report.add(level, "data", what, f"{place_of(corpus)}, {_lines(found, counts[kind])}", todo)
    if repeated > 0.1 * lines:
        what = f"{_count(repeated, 'line')} ({repeated / lines:.0%}) came before in the same text"
        report.add("warning", "data", what, place_of(corpus), "remove the copies: the model would learn them by heart")


def _lines(examples: list[Example], count: int) -> str:
    shown = ", ".join(str(example.line) for example in examples)
    return f"line{'s' * (count > 1)} {shown}" + (", …" if count > len(examples) else "")


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
