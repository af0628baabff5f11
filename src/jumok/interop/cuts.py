"""Whether another library cuts texts as we do: its ids of texts that are made to be cut otherwise, held against ours.

Every token of the vocabulary stands in one of these texts, and again with its characters taken apart (é is e and an
accent, 한 three letters). Others have what sentences of a training set seldom have and tokenizers disagree about: words
without end, spaces of all kinds, other cases, and characters that are joined, unknown or not to be seen.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from jumok.data.rows import framed
from jumok.data.suspicion import visible
from jumok.text.tokenizer import Tokenizer
from jumok.text.wordpiece import LONGEST_WORD

TEXTS, WORDS = 24, 12  # of each sort; in a text
SHOWN = 60  # characters of a text, in a message
BLANKS = (" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2009", "\u3000", "\x1c", "")
CASES = (str.upper, str.lower, str.title, str.swapcase)
STRANGE = (
    "가", "힣", "\u1112\u1161\u11ab", "ㅎ", "漢字", "かな", "Жж", "Ωσς", "ع", "ก็", "é", "e\u0301", "ö\u0323", "İ", "ß",
    "ﬁ", "Ǆ", "½", "٣", "７", "42", "3.14", "...", "?!", "—", "«x»", "'s", "#", "##", "▁", "<", ">", "[", "]", "\\",
    "😀", "👩\u200d🔬", "🇰🇷", "\u200b", "\u200c", "\u00ad", "\ufeff", "\ufffd", "\x07", "\U0001d400", "\U000e0041",
)  # fmt: skip


def texts_to_cut(tokenizer: Tokenizer, never: Iterable[str], length: int = 0) -> list[str]:
    """Random ones, in which the names `never` are not spelled; some have `length` words, as many tokens at least."""
    dice = random.Random(int(torch.randint(1 << 62, (1,))))
    ids = dice.sample(range(tokenizer.size), tokenizer.size)
    texts = tokenizer.decode([ids[start : start + WORDS] for start in range(0, len(ids), WORDS)])
    words = [word for text in texts for word in text.split()] or ["a"]
    letters = [word for word in words if word.isalpha()] or words  # nothing that a word would end at
    texts += [apart for text in texts if (apart := unicodedata.normalize("NFD", text)) != text]
    texts += ["", " ", " ".join(dice.sample(STRANGE, len(STRANGE)))]
    for _ in range(TEXTS):
        some = dice.choices(words, k=WORDS)
        endless = "".join(dice.choices(letters, k=LONGEST_WORD + 1))
        texts += [
            " ".join(dice.choices(words, k=max(WORDS, length))),
            "".join(some),
            endless[:LONGEST_WORD],  # what WordPiece still knows
            endless[: LONGEST_WORD + 1],
            "".join(word + dice.choice(BLANKS) for word in some),
            dice.choice(CASES)(" ".join(some)),
            " ".join(dice.choices(STRANGE, k=WORDS)),
            "".join(dice.choice(STRANGE) + dice.choice((word, " " + word)) for word in some),
            "".join(dice.sample(" ".join(some), len(" ".join(some)))),
        ]
    names = tuple(never)
    return [text for text in texts if not any(name in text for name in names)]


def cut_otherwise(tokenizer: Tokenizer, theirs: Any, limit: int) -> str | None:
    """A text (alone, before another one, or cut off at the limit) of which their tokenizer makes another row for a BERT
    than we do, in quotation marks; None: there is none."""
    texts = texts_to_cut(tokenizer, theirs.all_special_tokens, limit)
    ids = tokenizer.encode(texts)
    others, other_ids = texts[1:] + texts[:1], ids[1:] + ids[:1]
    room = 2 * max(map(len, ids)) + 3
    found = None
    for paired, most in ((False, room), (True, room), (False, limit)):
        if found is None and most > 2:  # less has no room for a word, and is never read
            said = theirs(texts, others if paired else None, truncation=most == limit, padding=False)
            rows = [
                framed(first, second if paired else None, tokenizer.specials, most)[:2]
                for first, second in zip(ids, other_ids, strict=True)
            ]
            found = differing(texts, rows, list(zip(said["input_ids"], said["token_type_ids"], strict=True)))
    return found


def differing(texts: Sequence[str], ours: Sequence[object], theirs: Sequence[object]) -> str | None:
    """The first text of which not the same was made, in quotation marks."""
    made = zip(texts, ours, theirs, strict=True)
    return next((shown(text) for text, here, there in made if here != there), None)


def shown(text: str) -> str:
    """For a message: not too long, and nothing in it that drives a terminal."""
    return f'"{visible(text, SHOWN)}"'
