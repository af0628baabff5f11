"""The ids every vocabulary of ours begins with, and what other people's vocabularies call the same."""

from __future__ import annotations

from dataclasses import dataclass

PAD, UNKNOWN, START, END = 0, 1, 2, 3
SPECIAL_TOKENS = ("<pad>", "<unk>", "<sos>", "<eos>")


@dataclass(frozen=True)
class Specials:
    """The ids that stand for something else than text. In BERT's words: [PAD], [UNK], [CLS], [SEP], [MASK]."""

    pad: int = PAD
    unknown: int = UNKNOWN
    start: int = START
    end: int = END
    mask: int | None = None  # only vocabularies of kind wordpiece have one
