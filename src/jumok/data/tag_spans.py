"""Spans written as a tag for each word: B-egin, I-nside, O-utside, and in the longer schemes E-nd (L-ast) and S-ingle
(U-nit).

    IOB2        B-PER I-PER O B-LOC
    IOB1        I-PER I-PER O I-LOC         B- only where a span of the same type ends just before
    IOBES       B-PER E-PER O S-LOC
    BILOU       B-PER L-PER O U-LOC

One reading serves all of them, that of `conlleval` (Tjong Kim Sang and Buchholz 2000): a span begins at B- or S-, and
at any other tag that does not go on with a span of its own type; it ends after E- or S-, and wherever the next tag does
not go on. So what a model writes is read leniently, I- after O begins a span, and no tag is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Span = tuple[str, int, int]  # its type, its first word, and the one after its last

_TAG = re.compile(r"([BIESLU])(?:-(.*))?", re.DOTALL)
_TYPED = re.compile(r"[BIESLU]-.+", re.DOTALL)


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of a sentence in order. Tags of no scheme are outside, as O is; B, I alone have the type ""."""
    found: list[Span] = []
    begin: int | None = None
    kind = ""
    for place, tag in enumerate(tags):
        match = _TAG.fullmatch(tag)
        letter, own_kind = (match[1], match[2] or "") if match else ("O", "")
        goes_on = begin is not None and letter in "IEL" and own_kind == kind
        if begin is not None and not goes_on:
            found.append((kind, begin, place))
            begin = None
        if letter == "O":
            continue
        if begin is None:
            begin, kind = place, own_kind
        if letter in "ESLU":
            found.append((kind, begin, place + 1))
            begin = None
    if begin is not None:
        found.append((kind, begin, len(tags)))
    return found


def is_scheme(tags: Iterable[str]) -> bool:
    """Whether a set of tags is one for spans: all are O or a letter of a scheme, a hyphen and a type, and some is not O
    (or just B, I and O, without types)."""
    known = set(tags)
    inside = known - {"O"}
    return bool(inside) and (all(map(_TYPED.fullmatch, inside)) or ("I" in inside and inside <= {"B", "I"}))
