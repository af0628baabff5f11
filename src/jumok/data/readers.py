"""Sentence pairs from what people bring: two parallel files, TSV, JSONL (each also compressed), or the grammar.

Everything streams, so a corpus larger than memory is read with flat memory. Readers leave nothing out: pair number i
is line i + 1 of the files, blank sides included, so that a message can always name the line. Text is strict UTF-8; a
byte order mark at the start of a file and the `\\r` of a Windows line end are dropped, all other characters (NUL too)
are passed on as they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from jumok.data.compression import byte_lines, compression, open_file, without_compression
from jumok.errors import BadInput, did_you_mean
from jumok.recipe import Corpus

GRAMMAR_SEED = 1  # the corpus a recipe names must be the same for every seed of its training
JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
DEFAULT_KEYS = ("source", "target")
_MISSING = object()

Pairs = Iterator[tuple[str, str]]


def read_pairs(corpus: Corpus, split: str = "train") -> Pairs:
    """All pairs of a corpus in order, blank ones too. `split` is for the grammar, unless the corpus says its own."""
    if corpus.grammar is not None:
        yield from grammar_pairs(corpus, split)
    for number, files in enumerate(files_of(corpus)):
        yield from _with_text(file_pairs(corpus, number), files[0], files[-1])


def files_of(corpus: Corpus) -> list[tuple[str, ...]]:
    """The files that pairs come from: those that are read side by side together."""
    return [*zip(corpus.source, corpus.target, strict=True), *((file,) for file in corpus.file)]


def file_pairs(corpus: Corpus, number: int, before: int = 0, at: Sequence[int] = ()) -> Pairs:
    """The pairs of one of `files_of`, without its first `before`; `at` which byte (of each file) the rest begins, where
    that is known."""
    files = files_of(corpus)[number]
    if len(files) == 2:
        yield from _parallel_pairs(files[0], files[1], before, at)
    else:
        reader = _json_pairs if is_json(files[0]) else _tab_pairs
        yield from reader(files[0], corpus.columns, before, at)


def read_lines(path: str | Path, before: int = 0, at: int | None = None) -> Generator[str, None, None]:
    """The lines of a text file without their ends; `-` is standard input. An empty file has no lines.

    The first `before` lines are left out; `at` is the byte where they end, where that is known.
    """
    raw_lines = byte_lines(path, at) if at is not None else islice(byte_lines(path), before, None)
    yield from text_lines(raw_lines, path, before)


def text_lines(raw_lines: Iterable[bytes], path: str | Path, before: int = 0) -> Generator[str, None, None]:
    """Lines of bytes as text without their ends; the first of them is line `before` + 1 of what is called `path`."""
    for number, raw in enumerate(raw_lines, before + 1):
        if number == 1:
            _refuse_utf16(path, raw)
        skipped = 3 if number == 1 and raw.startswith(b"\xef\xbb\xbf") else 0
        end = len(raw) - raw.endswith(b"\n")
        end -= raw.endswith(b"\r", skipped, end)
        try:
            yield str(raw[skipped:end], "utf-8")
        except UnicodeDecodeError as error:
            place = "standard input" if str(path) == "-" else path
            raise BadInput(
                f"{place}, line {number}, byte {skipped + error.start + 1}: not valid UTF-8 "
                f"(byte 0x{raw[skipped + error.start]:02X}). Convert the file first, for example: "
                f"iconv -f CP1252 -t UTF-8 (Western European; CP949 for Korean)"
            ) from None


def content_hash(corpus: Corpus, split: str = "train", hash_of: Callable[[str], tuple[str, str]] | None = None) -> str:
    """SHA-256 of what `read_pairs` depends on: the files' bytes and how they are read, not what they are called.

    `hash_of` may be a `file_hash` with a memory.
    """
    hash_of = hash_of or file_hash
    parts: list[Any] = ["jumok pairs 1"]
    if corpus.grammar is not None:
        from jumok.data import grammar

        parts += ["grammar", grammar.fingerprint(), corpus.grammar, corpus.split or split, corpus.pairs, GRAMMAR_SEED]
    for role, files in (("source", corpus.source), ("target", corpus.target)):
        parts += [[role, *hash_of(file)] for file in files]
    for file in corpus.file:
        parts.append(["jsonl" if is_json(file) else "tsv", list(corpus.columns), *hash_of(file)])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def first_line(corpus: Corpus) -> int:
    """The line that pair 0 is on: 2 under a header, 1 without."""
    return 1 + header_lines(corpus, corpus.file[0]) if corpus.file else 1


def header_lines(corpus: Corpus, file: str) -> int:
    """How many lines of a file with both sides come before its first pair."""
    named = any(not str(column).isdecimal() for column in corpus.columns)
    return int(named and not is_json(file))


def is_json(file: str | Path) -> bool:
    """JSONL or TSV, by the name."""
    suffix = without_compression(file).suffix.lower()
    if suffix == ".csv":
        raise BadInput(f"{file}: CSV is not read, its quoting has too many dialects. Save it as TSV or JSONL")
    return suffix in JSON_SUFFIXES


# ---------------------------------------------------------------- kinds of files


def _parallel_pairs(source: str, target: str, before: int, at: Sequence[int]) -> Pairs:
    for file in (source, target):
        if Path(without_compression(file)).suffix.lower() in (".tsv", ".jsonl", ".csv"):
            raise BadInput(
                f"{file}: this looks like a file with both sides, but it is given as one side. "
                f"Name it as such: data.train.file={file}"
            )
    places = at or (None, None)
    with (
        contextlib.closing(read_lines(source, before, places[0])) as sources,
        contextlib.closing(read_lines(target, before, places[1])) as targets,
    ):
        lines = before
        while True:
            left, right = next(sources, None), next(targets, None)
            if left is None or right is None:
                break
            yield left, right
            lines += 1
        if left is None and right is None:
            return
        # Count the longer file to its end: the exact difference is what tells people what went wrong.
        counts = [lines + (side is not None) for side in (left, right)]
        counts[0] += sum(1 for _ in sources)
        counts[1] += sum(1 for _ in targets)
        for path, count in zip((source, target), counts, strict=True):
            if not count:
                raise BadInput(f"{path}: the file is empty")
        raise BadInput(
            f"{source} has {counts[0]} lines and {target} has {counts[1]}: they must pair up line by line. "
            "Look for the first line where they go out of step; nothing was cut off by itself."
        )


def _tab_pairs(file: str, columns: tuple[int | str, int | str], before: int, at: Sequence[int]) -> Pairs:
    """Tab-separated, no quoting. Columns by name mean that the first line is a header."""
    lines = read_lines(file)
    wanted = [int(column) if str(column).isdecimal() else column for column in columns]
    first = 1
    if any(isinstance(column, str) for column in wanted):
        header = next(lines, "").split("\t")
        first = 2
        for name in wanted:
            if isinstance(name, str) and name not in header:
                raise BadInput(f'{file}, line 1: the header has no column "{name}".{did_you_mean(name, header)}')
        wanted = [header.index(column) if isinstance(column, str) else column for column in wanted]
    left, right = (int(column) for column in wanted)
    if min(left, right) < 0:
        raise BadInput(f"{file}: columns count from 0, {min(left, right)} is none")
    needed = max(left, right) + 1
    if before:
        first += before
        lines = read_lines(file, first - 1, at[0] if at else None)
    for number, line in enumerate(lines, first):
        cells = line.split("\t")
        if len(cells) >= needed:
            yield cells[left], cells[right]
        elif not line.strip():
            yield "", ""
        else:
            raise BadInput(
                f"{file}, line {number}: {len(cells)} column(s) where {needed} are needed (columns {left} and {right}, "
                "separated by tabs)"
            )


def _json_pairs(file: str, columns: tuple[int | str, int | str], before: int, at: Sequence[int]) -> Pairs:
    """One JSON object (or array) a line."""
    for number, line in enumerate(read_lines(file, before, at[0] if at else None), before + 1):
        where = f"{file}, line {number}"
        if not line.strip():
            yield "", ""
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", None) or error
            raise BadInput(f"{where}: not JSON ({reason}). JSONL has one whole object on each line") from None
        yield _text_at(row, columns[0], where), _text_at(row, columns[1], where)


def _text_at(row: Any, column: int | str, where: str) -> str:
    """The string under a key, a dotted path (`translation.de`), or, in an array, a number."""
    if isinstance(column, int) and isinstance(row, dict) and 0 <= column < len(DEFAULT_KEYS):
        column = DEFAULT_KEYS[column]
    if isinstance(row, list):
        if not str(column).isdecimal() or int(column) >= len(row):
            raise BadInput(f'{where}: an array of {len(row)} has no place "{column}"; places are numbers from 0')
        value = row[int(column)]
    elif isinstance(row, dict):
        value = row.get(str(column), _MISSING)
        if value is _MISSING:
            leaves = dict(_leaves(row))
            value = leaves.get(str(column), _MISSING)
        if value is _MISSING:
            raise BadInput(
                f'{where}: no key "{column}".{did_you_mean(str(column), leaves)} '
                "Say where the two sides are with columns, for example columns: [translation.de, translation.en]"
            )
    else:
        raise BadInput(f"{where}: an object is needed, this is {json.dumps(row)[:40]}")
    if not isinstance(value, str):
        raise BadInput(f'{where}: "{column}" is {json_kind(value)}, not text')
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput(f'{where}: "{column}" has half of a surrogate pair (\\uD800 to \\uDFFF alone)') from None
    return value


def _leaves(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def json_kind(value: Any) -> str:
    """What a JSON value is, in words."""
    names: dict[type, str] = {
        type(None): "null", bool: "true or false", int: "a number", float: "a number", str: "text", list: "an array",
    }  # fmt: skip
    return names.get(type(value), "an object")


def grammar_pairs(corpus: Corpus, split: str) -> Pairs:
    from jumok.data import grammar

    source, target = grammar_languages(str(corpus.grammar))
    for pair in grammar.pairs(source, target, corpus.split or split, corpus.pairs, GRAMMAR_SEED):
        yield pair.source, pair.target


def grammar_languages(name: str) -> tuple[str, str]:
    """ "en-fr" as ("en", "fr"), when the grammar has it."""
    known = ["en-fr", "en-ko", "fr-en", "ko-en"]
    if name not in known:
        raise BadInput(f'the grammar has no "{name}".{did_you_mean(name, known)}')
    source, _, target = name.partition("-")
    return source, target


# ---------------------------------------------------------------- checks


def _with_text(pairs: Pairs, source: str, target: str) -> Pairs:
    """The same pairs; complains at the end when there was nothing to learn from."""
    lines = 0
    seen_source = seen_target = seen_both = False
    for left, right in pairs:
        lines += 1
        if not seen_both:
            has_source, has_target = not _blank(left), not _blank(right)
            seen_source |= has_source
            seen_target |= has_target
            seen_both = has_source and has_target
        yield left, right
    if not lines:
        raise BadInput(f"{source}: the file is empty" + (f", and {target} too" if source != target else ""))
    if not seen_both:
        for path, seen, side in ((source, seen_source, "source"), (target, seen_target, "target")):
            if not seen:
                only = "only blank lines" if source != target else f"no text on the {side} side"
                raise BadInput(f"{path}: {only} ({lines} lines)")
        raise BadInput(f"{source}, {target}: no line has text on both sides ({lines} lines)")


def _blank(text: str) -> bool:
    return not text or text.isspace()


def _refuse_utf16(path: str | Path, first: bytes) -> None:
    """UTF-16 is the one wrong encoding that can pass for UTF-8: plain letters with a NUL beside each."""
    marked = first.startswith((b"\xff\xfe", b"\xfe\xff"))
    if marked or (len(first) >= 8 and first.count(0) * 5 > len(first) * 2):
        raise BadInput(
            f"{path}, line 1, byte 1: not valid UTF-8, this looks like UTF-16. "
            f"Convert the file first, for example: iconv -f UTF-16 -t UTF-8 {path} > {path}.utf8"
        )


def file_hash(file: str) -> tuple[str, str]:
    if Path(file).exists() and not Path(file).is_file() and not Path(file).is_dir():
        raise BadInput(f"{file}: a pipe can be read only once, and training reads its data again. Save it as a file")
    with open_file(file) as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return compression(file), digest
