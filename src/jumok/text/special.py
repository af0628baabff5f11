"""The ids every vocabulary begins with, whatever its kind."""

from __future__ import annotations

PAD, UNKNOWN, START, END = 0, 1, 2, 3
SPECIAL_TOKENS = ("<pad>", "<unk>", "<sos>", "<eos>")
