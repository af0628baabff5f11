"""Which column of a table is the text, which the second text, which the label, where nobody says it.

By the names in its header (or the keys of JSON), first known pairs of names, then known single names; by the cells
where there is no header, and only where they leave no doubt:

- A column *looks like labels* when none of its cells is empty or longer than 30 characters, and all are numbers or
  they repeat: in the first rows there are at most 3 different ones, or at most half as many as rows.
- Two columns: the label is the one that looks like labels, in either place; where both do, the one with fewer different
  cells, then the one without a space in any.
- Three columns: text, second text, label, when the third is the one that looks like labels and the first two do not
  look like numbers or identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Choice = tuple[int | None, int | None, int | None]  # the places of text, second text and label

PAIRS = (
    ("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("premise", "hypothesis"), ("question1", "question2"),
    ("#1 string", "#2 string"), ("text1", "text2"), ("text_1", "text_2"), ("text_a", "text_b"),
    ("sentence_a", "sentence_b"), ("question", "sentence"), ("question", "passage"), ("question", "answer"),
    ("query", "passage"), ("query", "document"), ("문장1", "문장2"), ("전제", "가설"), ("질문", "답변"),
    ("text", "second"),
)  # fmt: skip
# Names in one row are as good as each other; a later row counts where no earlier one is there.
TEXTS = (
    ("sentence", "text", "document", "review", "comment", "content", "utterance", "tweet", "문장", "텍스트", "본문",
     "내용", "리뷰", "댓글"),
    ("title", "question", "query", "headline", "제목", "질문"),
    ("description", "body", "message"),
    tuple(dict.fromkeys(first for first, _ in PAIRS)),
)  # fmt: skip
LABELS = (
    ("gold_label",),
    ("label", "라벨", "레이블"),
    ("labels", "score", "similarity", "quality", "class", "category", "sentiment", "target", "is_duplicate", "rating",
     "polarity", "intent", "topic", "emotion", "stars", "감정", "감성", "평점", "분류", "점수"),
    ("class index", "label_id", "y"),
)  # fmt: skip
OTHERS = {
    "id", "idx", "index", "guid", "uid", "pairid", "pair_id", "promptid", "qid", "qid1", "qid2", "#1 id", "#2 id", "no",
    "genre", "filename", "file", "year", "date", "time", "url", "user", "author", "split", "fold", "lang", "language",
    "source1", "source2", "old_index", "번호", "",
}  # fmt: skip
# Names that hardly stand in a row of data as a cell of their own, so that one of them makes a header. Others do:
# "question" is a class of utterances, "title" may be a text.
SURE = {
    "label",
    "labels",
    "gold_label",
    "is_duplicate",
    "라벨",
    "레이블",
    *(name for pair in PAIRS[:9] for name in pair),
}
KNOWN = {name for row in (*PAIRS, *TEXTS, *LABELS) for name in row} | (OTHERS - {"", "no"})

LONGEST_LABEL = 30
LONGEST_NUMBER = 100
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
IDENTITY = re.compile(r"[\x21-\x7e]{1,40}")


def is_header(first: Sequence[str], below: Sequence[Sequence[str]], asked: Sequence[str]) -> bool:
    """Whether the first row names the columns: it has a name that was asked for, or two known names, or one that
    hardly is anything else, or one over a column that beside it has only numbers; one column: a known name for texts.
    """
    names = [plain(cell) for cell in first]
    if any(plain(name) in names for name in asked):
        return True
    if len(names) == 1:
        return any(names[0] in row for row in (*TEXTS, *PAIRS))
    known = {name for name in names if name in KNOWN}
    if len(known) >= 2 or known & SURE:
        return True
    over_numbers = any(
        not _is_number(name) and below and all(_is_number(row[place]) for row in below)
        for place, name in enumerate(names)
    )
    return bool(known) and over_numbers


def choose_by_names(names: Sequence[str], sample: Sequence[Sequence[str]], labelled: bool) -> Choice:
    """Places by the names of the columns; None where there is none, or more than one that is as good."""
    known = [plain(name) for name in names]
    text, second = _pair(known)
    if text is None:
        text = _first_of(TEXTS, known)
    label = _first_of(LABELS, known)
    if len(names) == 2 and (text is None) != (label is None):  # the one that is left
        left = 1 - (text if text is not None else label or 0)
        if known[left] not in KNOWN | OTHERS and (text is None or looks_like_labels([row[left] for row in sample])):
            text, label = (left, label) if text is None else (text, left)
    return text, second, label if labelled else None


def choose_by_cells(sample: Sequence[Sequence[str]], labelled: bool) -> Choice:
    """Places by what is in the columns; None where it leaves a doubt."""
    width = len(sample[0])
    columns = [[row[place].strip() for row in sample] for place in range(width)]
    label = _label_column(columns)
    if width == 1:
        return (0, None, None) if not labelled else (None, None, None)
    if width == 2 and label is not None:
        return 1 - label, None, label if labelled else None
    if width == 2 and not labelled:
        return 0, 1, None
    if width == 3 and label == 2 and not any(_identities(column) for column in columns[:2]):
        return 0, 1, 2 if labelled else None
    return None, None, None


def looks_like_labels(cells: Sequence[str]) -> bool:
    """Short cells that are numbers or repeat."""
    if not all(cell.strip() and len(cell) <= LONGEST_LABEL for cell in cells):
        return False
    return all(map(_is_number, cells)) or len(set(cells)) <= max(3, len(cells) // 2)


def plain(name: str) -> str:
    """A name without what people write differently."""
    return name.strip().casefold()


def _label_column(columns: Sequence[Sequence[str]]) -> int | None:
    ranks = sorted(
        (len(set(column)), any(" " in cell for cell in column), place)
        for place, column in enumerate(columns)
        if looks_like_labels(column)
    )
    if not ranks or (len(ranks) > 1 and ranks[0][:2] == ranks[1][:2]):
        return None
    return ranks[0][2]


def _pair(known: Sequence[str]) -> tuple[int | None, int | None]:
    for first, second in PAIRS:
        if known.count(first) == 1 and known.count(second) == 1:
            return known.index(first), known.index(second)
    return None, None


def _first_of(rows: Sequence[Sequence[str]], known: Sequence[str]) -> int | None:
    for row in rows:
        places = [place for place, name in enumerate(known) if name in row]
        if places:
            return places[0] if len(places) == 1 else None
    return None


def _is_number(cell: str) -> bool:
    return len(cell) <= LONGEST_NUMBER and NUMBER.fullmatch(cell.strip()) is not None


def _identities(column: Sequence[str]) -> bool:
    return all(IDENTITY.fullmatch(cell) for cell in column)
