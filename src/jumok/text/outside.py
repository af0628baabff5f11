"""The charset's doctor: which characters of the texts are not in the set, and which texts are too long.

Asked before training. A reader that silently left such texts out, or erased their characters, would look well in
validation and be wrong in use; so each is counted, the first ones are named, and what to do is said. `each_outside`
names all.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jumok.text.charset import SETS, Charset, named_character

FIRST = 3  # samples that are named for each character
SHOWN = 12  # characters that are told one by one
LONGEST = 200  # that model.max_length may be


@dataclass(frozen=True)
class Found:
    """A character outside the set."""

    character: str
    times: int  # that it stands anywhere
    samples: int  # that have it
    first: tuple[str, ...]  # their names, `FIRST` at most


@dataclass(frozen=True)
class Outside:
    """What `report_outside` found; the counts are complete, names are the first ones only."""

    samples: int
    with_outside: int
    characters: tuple[Found, ...]  # the most frequent first
    too_long: int = 0
    longest: int = 0  # characters of the longest text
    first_too_long: tuple[str, ...] = ()
    max_length: int | None = None
    known_sets: frozenset[str] = frozenset()  # those that the charset has whole

    @property
    def fine(self) -> bool:
        """Whether every text can be learned as it is."""
        return not self.with_outside and not self.too_long

    @property
    def names_all(self) -> bool:
        """Whether every sample that is found is named in `lines`."""
        told = all(found.samples == len(found.first) for found in self.characters)
        return told and len(self.characters) <= SHOWN and self.too_long == len(self.first_too_long)

    def lines(self) -> list[str]:
        """The same in words; nothing where all is fine."""
        lines = []
        if self.with_outside:
            lines.append(
                f"{self.with_outside:,} of {self.samples:,} texts have characters outside the charset "
                f"({len(self.characters):,} different ones):"
            )
            for found in self.characters[:SHOWN]:
                more = " …" if found.samples > len(found.first) else ""
                times = f", {found.times:,} times" * (found.times > found.samples)
                lines.append(
                    f"  {named_character(found.character)}: {_texts(found.samples)}{times}; "
                    f"{', '.join(found.first)}{more}"
                )
            if rest := self.characters[SHOWN:]:
                lines.append(f"  and {len(rest):,} more: {_listed([found.character for found in rest])}")
            lines += [f"  {advice}" for advice in self._advice()]
        if self.too_long:
            more = " …" if self.too_long > len(self.first_too_long) else ""
            lines.append(
                f"{_texts(self.too_long)} of {self.samples:,} longer than {self.max_length} characters (the longest "
                f"has {self.longest}); {', '.join(self.first_too_long)}{more}"
            )
            lines.append(f"  to have them read whole: model.max_length={min(self.longest, LONGEST)}")
            if self.longest > LONGEST:
                lines[-1] += ", which is the most; take longer ones out, or cut them and their pictures into pieces"
        return lines

    def _advice(self) -> list[str]:
        """Which sets have the characters, and what is left for `extra`."""
        missing = [found.character for found in self.characters]
        advice = []
        if " " in missing:
            missing.remove(" ")
            advice.append("the space is a character with charset.space=true")
        for name, members in SETS.items():
            inside = frozenset(members)
            theirs = [character for character in missing if character in inside]
            if name not in self.known_sets and theirs:
                missing = [character for character in missing if character not in inside]
                advice.append(f"{_listed(theirs)}: in the set {name}; add it to charset.sets")
        unseen = [character for character in missing if unicodedata.category(character)[0] in "ZC"]
        visible = [character for character in missing if character not in unseen]
        if visible:
            advice.append(f"{_listed(visible)}: in no set; add them by charset.extra")
        if unseen:
            advice.append(f"{_listed(unseen)}: cannot be seen in a picture; take them out of the texts")
        return advice


def report_outside(charset: Charset, samples: Iterable[tuple[str, str]], max_length: int | None = None) -> Outside:
    """Looks at (name, text) of every sample; what it keeps grows with the characters found, not with the samples."""
    known = charset.ids.keys()
    count = with_outside = too_long = longest = 0
    times: dict[str, int] = {}
    having: dict[str, int] = {}
    first: dict[str, list[str]] = {}
    first_too_long: list[str] = []
    for name, raw in samples:
        count += 1
        text = unicodedata.normalize("NFC", raw)
        if max_length is not None and len(text) > max_length:
            too_long += 1
            longest = max(longest, len(text))
            if len(first_too_long) < FIRST:
                first_too_long.append(name)
        outside = [character for character in dict.fromkeys(text) if character not in known]
        with_outside += bool(outside)
        for character in outside:
            times[character] = times.get(character, 0) + text.count(character)
            having[character] = having.get(character, 0) + 1
            names = first.setdefault(character, [])
            if len(names) < FIRST:
                names.append(name)
    characters = tuple(
        Found(character, times[character], having[character], tuple(first[character]))
        for character in sorted(having, key=lambda character: (-having[character], character))
    )
    whole = frozenset(name for name, members in SETS.items() if known >= set(members))
    return Outside(
        count, with_outside, characters, too_long, longest, tuple(first_too_long), max_length, whole
    )  # fmt: skip


def each_outside(
    charset: Charset, samples: Iterable[tuple[str, str]], max_length: int | None = None
) -> Iterator[tuple[str, str, str]]:
    """Every sample that cannot be learned as it is: its name, its text as it was given, and why."""
    known = charset.ids.keys()
    for name, raw in samples:
        text = unicodedata.normalize("NFC", raw)
        why = []
        if outside := [character for character in dict.fromkeys(text) if character not in known]:
            why.append(f"outside the charset: {_listed(outside)}")
        if max_length is not None and len(text) > max_length:
            why.append(f"{len(text)} characters, more than {max_length}")
        if why:
            yield name, raw, "; ".join(why)


def _texts(count: int) -> str:
    return f"{count:,} text" + "s" * (count != 1)


def _listed(characters: list[str]) -> str:
    """The first ones, side by side, as they would stand in charset.extra; what cannot be seen by its number."""
    shown = [
        character if unicodedata.category(character)[0] in "LNPS" else f"U+{ord(character):04X}"
        for character in characters[: 4 * SHOWN]
    ]
    return " ".join(shown) + " …" * (len(characters) > len(shown))
