"""What SentencePiece does to a text before it cuts it, exactly: characters are replaced by rules (the longest that fits
at each place), blanks are made single, and each becomes "▁".

The rules lie in the file as a trie in a double array (Darts): from the node at n the byte c leads to the cell
`n xor c`, if that cell bears the label c. Here they are read out once into a dictionary.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache

import numpy as np

from jumok.errors import BadInput

SPACE = "▁"
LONGEST_KEY = 64  # bytes; a sound table has none of half this length
MOST = 4_000_000  # ways through the trie, whose branches share their ends; the usual table has a tenth of it
ONE = [bytes((byte,)) for byte in range(256)]
_BLANKS = re.compile(" +")


@lru_cache(maxsize=4)  # both sides of a model have the same table
def read_rules(table: bytes, where: str) -> dict[str, str]:
    """Every rule: what is replaced, and by what. No table: no rules."""
    if not table:
        return {}
    try:
        return _read(table)
    except (ValueError, IndexError, struct.error) as error:
        raise BadInput(f"{where}: its table of characters is damaged ({error}); fetch the file again") from None


def _read(table: bytes) -> dict[str, str]:
    (size,) = struct.unpack_from("<I", table)
    if size % 4 or 4 + size > len(table):
        raise ValueError("its size is wrong")
    cells = np.frombuffer(table, "<u4", size // 4, 4).astype(np.int64)
    texts = table[4 + size :]

    jump = (cells >> 10) << ((cells & 512) >> 6)
    label = cells & 0x800000FF  # of a leaf, which bears a value instead, above all bytes
    # every cell says from which node it is reached: so all children of a node lie side by side
    linked = np.flatnonzero((label > 0) & (label < 256))
    linked = linked[np.argsort(linked ^ label[linked], kind="stable")]
    parents = linked ^ label[linked]
    rules: dict[str, str] = {}
    nodes, keys, visited = jump[:1], [b""], 0
    for _ in range(LONGEST_KEY):
        first, last = np.searchsorted(parents, nodes, "left"), np.searchsorted(parents, nodes, "right")
        counts = last - first
        visited += int(counts.sum())
        if not counts.any():
            return rules
        if visited > MOST:
            raise ValueError("its trie is endless")
        origin = np.repeat(np.arange(len(nodes)), counts)
        cell = linked[np.arange(len(origin)) + np.repeat(first - (counts.cumsum() - counts), counts)]
        keys = [keys[row] + ONE[byte] for row, byte in zip(origin.tolist(), label[cell].tolist(), strict=True)]
        nodes = cell ^ jump[cell]
        for number in np.flatnonzero(cells[cell] & 256).tolist():
            leaf = int(cells[nodes[number]]) & 0x7FFFFFFF
            rules[keys[number].decode("utf-8")] = texts[leaf : texts.index(0, leaf)].decode("utf-8")
    raise ValueError(f"a rule is longer than {LONGEST_KEY} bytes")


class Normal:
    """Texts as SentencePiece cuts them."""

    def __init__(self, rules: dict[str, str], opens: bool, single: bool) -> None:
        self.rules, self.opens, self.single = rules, opens, single
        self._longest: dict[str, int] = {}  # of the rules that begin with a character
        for key in rules:
            self._longest[key[0]] = max(len(key), self._longest.get(key[0], 0))
        # a rule of several characters fits only where its second one is
        self._rare = {key[min(len(key), 2) - 1] for key in rules}

    def __call__(self, text: str) -> str:
        if not self.single or not self._rare.isdisjoint(text):
            return self.placed(text)[0]
        text = _BLANKS.sub(SPACE, text.strip(" "))
        if not text:
            return ""
        return (SPACE + text if self.opens else text).rstrip(SPACE)

    def placed(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """The text, and for each of its characters from where to where it was before."""
        place = 0
        if self.single:
            while place < len(text):
                first, after = self._unit(text, place)
                if first != " ":
                    break
                place = after
        if place == len(text):
            return "", []
        found, spans = ([SPACE], [(place, place)]) if self.opens else ([], [])
        blank = self.single
        while place < len(text):
            new, after = self._unit(text, place)
            if blank:
                new = new.lstrip(" ")
            if new:
                found += new.replace(" ", SPACE)
                spans += [(place, after)] * len(new)
                blank = self.single and new.endswith(" ")
            place = after
        normal = "".join(found)
        if self.single:
            normal = normal.rstrip(SPACE)
        return normal, spans[: len(normal)]

    def _unit(self, text: str, place: int) -> tuple[str, int]:
        """What the longest rule at a place gives, and where its text ends."""
        for length in range(self._longest.get(text[place], 0), 0, -1):
            found = self.rules.get(text[place : place + length])
            if found is not None and place + length <= len(text):
                return found, place + length
        return text[place], place + 1
