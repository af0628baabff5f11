"""The characters that a reader of pictures knows, each with its id.

Ids 0 … 3 are those of every vocabulary of ours (special.py). Then come all characters that are not Hangul syllables, by
code point. Where the set `hangul` is in, the whole block 가 … 힣 follows in the order of Unicode, so that a syllable's
letters follow from its id (jamo.py). Without it, single syllables (`extra`, for number plates) are among the others.

Text is NFC on both sides: a syllable typed as jamo, or an é typed as e and an accent, is one character.
"""

from __future__ import annotations

import json
import string
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from jumok.errors import BadInput
from jumok.recipe.recognition import CharsetSection
from jumok.text.jamo import FIRST_SYLLABLE, SYLLABLES
from jumok.text.special import SPECIAL_TOKENS

FORMAT = 1
BLOCK = tuple(chr(FIRST_SYLLABLE + place) for place in range(SYLLABLES))
# latin-1 without what cannot be seen: the no-break space and the soft hyphen
SETS: dict[str, tuple[str, ...]] = {
    "digits": tuple(string.digits),
    "latin": tuple(string.ascii_letters),
    "punctuation": tuple(string.punctuation),
    "latin-1": tuple(chr(code) for code in range(0xA1, 0x100) if code != 0xAD),
    "hangul": BLOCK,
}


class OutsideCharset(ValueError):
    """A text has characters that the set does not have."""

    def __init__(self, text: str, characters: tuple[str, ...]) -> None:
        self.text, self.characters = text, characters
        named = ", ".join(map(named_character, characters))
        super().__init__(f"{text!r} has characters outside the charset: {named}")


@dataclass(frozen=True)
class Charset:
    """`plain` are the characters without an id by arithmetic, by code point; `hangul`: the block follows them."""

    plain: tuple[str, ...]
    hangul: bool = False
    jamo: bool = False  # whether syllables are read letter by letter

    @staticmethod
    def of(section: CharsetSection) -> Charset:
        """The set that a recipe asks for."""
        hangul = "hangul" in section.sets
        extra = unicodedata.normalize("NFC", section.extra)
        for character in extra:
            if reason := _unreadable(character):
                raise BadInput(f"charset.extra: {named_character(character)} {reason}")
        characters = set(extra).union(*(SETS[name] for name in section.sets if name != "hangul"))
        characters |= {" "} if section.space else set()
        plain = tuple(sorted(characters.difference(BLOCK) if hangul else characters))
        return Charset(plain, hangul, hangul and section.hangul == "jamo")

    @cached_property
    def characters(self) -> tuple[str, ...]:
        """All of them; the first has the id after the special ones."""
        return self.plain + BLOCK if self.hangul else self.plain

    @property
    def size(self) -> int:
        """Ids that there are, special ones included."""
        return len(SPECIAL_TOKENS) + len(self.plain) + self.hangul * SYLLABLES

    @property
    def first_syllable(self) -> int | None:
        """The id of 가, where the block is in."""
        return len(SPECIAL_TOKENS) + len(self.plain) if self.hangul else None

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each character."""
        return {character: id for id, character in enumerate(self.characters, len(SPECIAL_TOKENS))}

    def encode(self, text: str) -> list[int]:
        """The ids of a text; no <sos>, no <eos>."""
        text = unicodedata.normalize("NFC", text)
        try:
            return [self.ids[character] for character in text]
        except KeyError:
            raise OutsideCharset(text, self.outside(text)) from None

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special ones are skipped."""
        first = len(SPECIAL_TOKENS)
        numbers = [int(id) for id in ids]
        if numbers and not 0 <= min(numbers) <= max(numbers) < self.size:
            wrong = next(id for id in numbers if not 0 <= id < self.size)
            raise ValueError(f"no character has the id {wrong}: there are {self.size}")
        return "".join([self.characters[id - first] for id in numbers if id >= first])

    def outside(self, text: str) -> tuple[str, ...]:
        """The characters of a text that are not in the set, each once, in the order they come."""
        return tuple(
            character for character in dict.fromkeys(unicodedata.normalize("NFC", text)) if character not in self.ids
        )

    def to_json(self) -> str:
        """What `from_json` makes the same set from."""
        content = {"format": FORMAT, "characters": "".join(self.plain), "hangul": self.hangul, "jamo": self.jamo}
        return json.dumps(content, ensure_ascii=False, indent=2) + "\n"

    @staticmethod
    def from_json(content: str, where: str = "charset.json") -> Charset:
        try:
            values = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{where}: not JSON ({error}). Copy the run folder again") from None
        kinds = {"format": int, "characters": str, "hangul": bool, "jamo": bool}
        if not isinstance(values, dict) or any(type(values.get(key)) is not kind for key, kind in kinds.items()):
            raise BadInput(f"{where}: not a charset of ours: it needs {', '.join(kinds)}. Copy the run folder again")
        if values["format"] != FORMAT:
            raise BadInput(f"{where}: format {values['format']}, this version knows {FORMAT}: update jumok")
        plain = tuple(values["characters"])
        ordered = all(before < after for before, after in pairwise(plain))
        if not ordered or (values["hangul"] and set(plain) & set(BLOCK)):
            raise BadInput(f"{where}: the characters are not in their order, so ids would be wrong. Copy it again")
        for character in plain:
            if character != " " and (reason := _unreadable(character)):
                raise BadInput(f"{where}: {named_character(character)} {reason}")
        return Charset(plain, values["hangul"], values["jamo"] and values["hangul"])


def named_character(character: str) -> str:
    """`’ (U+2019, right single quotation mark)`: characters that look alike have different names."""
    name = unicodedata.name(character, "").lower()
    code = f"U+{ord(character):04X}" + f", {name}" * bool(name)
    visible = unicodedata.category(character)[0] in "LNPS"
    return f"{character} ({code})" if visible else code


def _unreadable(character: str) -> str | None:
    """Why a character cannot be one that is read, where that is so."""
    category = unicodedata.category(character)
    if character == " ":
        return "is a space: write charset.space: true instead"
    if category[0] == "Z" or category in ("Cc", "Cs"):
        return "cannot be seen in a picture: take it out"
    if not unicodedata.is_normalized("NFC", character):
        return "is written as another character in NFC"
    return None
