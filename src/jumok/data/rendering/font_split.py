"""Families of fonts that are never trained with, so that a reader is tested on letters of a shape it has not seen.

Which ones follows from a hash of the family's name. Families that are likely to have the same letters go to the same
side: one's name begins with the other's (`Noto Sans` and `Noto Sans KR`, `UnPilgi` and `UnPilgia`), both are in one
file, or their letters are drawn alike (font_likeness.py). Of those held out, some are validated and others tested with,
or the checkpoint that is best in validation would have been chosen by the fonts of the test. What a side can write must
not hang on that chance: training keeps at least one family of each script that there is, and so does the other side
where there are two.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumok.data.rendering.face import Face, codes_of
from jumok.text.charset import SETS

SOME_SYLLABLES = 2000  # from here on a face counts as one for Hangul; the smallest such set in use has 2,350
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")  # also of names in one word: Nanum Gothic
NO_LETTER = re.compile(r"[\W_]")
BEGINNING = 5  # letters: a name that begins with so many of another one, all of it, is its relative
Alike = Iterable[tuple[str, str]]


class KeptBack(NamedTuple):
    """Those held out: to validate with, to test with, and which families are in both, for want of others."""

    valid: list[Face]
    test: list[Face]
    shared: list[str]


def split_faces(faces: Sequence[Face], held_out: float, alike: Alike | None = None) -> tuple[list[Face], list[Face]]:
    """Those to train with and those held out, each in the order given. `alike`: pairs of families with letters alike;
    None: relatives are told by whole words of their names alone, as runs did that were begun before letters were looked
    at."""
    if held_out <= 0:
        return list(faces), []
    groups = _groups(faces, alike)
    if len(set(groups.values())) < 2:  # they are all alike: better to hold out one that is alike than none
        groups = {face.family: face.family for face in faces}
    scripts = _scripts_of(faces, groups)
    without_hangul = [own for own in scripts.values() if "some hangul" not in own]
    for own in without_hangul if len(without_hangul) > 1 else ():  # held out too; the only one training can spare
        own.add("no hangul")
    return _parted(faces, groups, _choose(scripts, held_out))


def split_kept(kept: Sequence[Face], alike: Alike, characters: Iterable[str]) -> KeptBack:
    """What was held out, for validation and for the test. What one of both could not write without a group of the
    other's, of these characters, is in both; so is all of it where there is but one group."""
    groups = _groups(kept, alike)
    if len(set(groups.values())) < 2:
        return KeptBack(list(kept), list(kept), sorted(groups))
    tested = _halved(_scripts_of(kept, groups))
    valid, test = _parted(kept, groups, tested)
    wanted = codes_of(characters)
    lent = _lent(valid, test, groups, wanted) | _lent(test, valid, groups, wanted)
    shared = sorted(family for family, group in groups.items() if group in lent)
    return KeptBack(
        [face for face in kept if groups[face.family] not in tested or groups[face.family] in lent],
        [face for face in kept if groups[face.family] in tested or groups[face.family] in lent],
        shared,
    )


def _parted(faces: Sequence[Face], groups: Mapping[str, str], chosen: set[str]) -> tuple[list[Face], list[Face]]:
    """The faces of the other groups, and those of the chosen ones."""
    is_chosen = [groups[face.family] in chosen for face in faces]
    return (
        [face for face, out in zip(faces, is_chosen, strict=True) if not out],
        [face for face, out in zip(faces, is_chosen, strict=True) if out],
    )


def _scripts_of(faces: Sequence[Face], groups: Mapping[str, str]) -> dict[str, set[str]]:
    scripts: dict[str, set[str]] = {}
    for face in faces:
        scripts.setdefault(groups[face.family], {"any"}).update(_scripts(face))
    return scripts


def _choose(scripts: dict[str, set[str]], share: float) -> set[str]:
    """Groups to hold out: those whose hash is below the share, then as few others as the scripts ask for."""
    order = sorted(scripts, key=lambda group: (_chance(group), group))
    chosen = {group for group in order if _chance(group) < share}
    kinds = sorted(set().union(*scripts.values()))
    for kind in kinds:
        owners = [group for group in order if kind in scripts[group]]
        if chosen.issuperset(owners):
            chosen.remove(owners[-1])
    for kind in kinds:
        owners = [group for group in order if kind in scripts[group]]
        if not chosen.intersection(owners):
            chosen.update([group for group in owners if _is_spare(group, scripts, scripts.keys() - chosen)][:1])
    return chosen


def _halved(scripts: dict[str, set[str]]) -> set[str]:
    """Groups to test with, about half of them; each half has one of each script that two have, as far as can be."""
    chances = {group: _chance(f"{group} is tested") for group in scripts}
    order = sorted(scripts, key=lambda group: (chances[group], group))
    tested = {group for group in order if chances[group] < 1 / 2}
    kinds = sorted(set().union(*scripts.values()))
    for kind in ["any", *kinds]:  # first of all none may be without anything
        owners = [group for group in order if kind in scripts[group]]
        side = tested.intersection(owners)
        if len(owners) > 1 and len(side) in (0, len(owners)):
            own = tested if side else scripts.keys() - tested
            spare = [group for group in owners if _is_spare(group, scripts, own)]
            # those of all which are nearest to the other half
            moved = (spare or owners * (kind == "any"))[-1 if side else 0 :][:1]
            tested.symmetric_difference_update(moved)
    return tested


def _is_spare(group: str, scripts: Mapping[str, set[str]], side: Iterable[str]) -> bool:
    """Whether its side could do without it."""
    rest = set(side) - {group}
    return all(any(kind in scripts[other] for other in rest) for kind in scripts[group])


def _lent(
    lenders: Sequence[Face], borrowers: Sequence[Face], groups: Mapping[str, str], wanted: npt.NDArray[np.int32]
) -> set[str]:
    """As few groups as can easily be found that have what the borrowers lack."""
    missing = wanted
    for face in borrowers:
        missing = missing[~np.isin(missing, face.covered)]
    lent: set[str] = set()
    for face in sorted(lenders, key=lambda face: -int(np.isin(missing, face.covered).sum())):
        if np.isin(missing, face.covered).any():
            lent.add(groups[face.family])
            missing = missing[~np.isin(missing, face.covered)]
    return lent


def _chance(group: str) -> float:
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:8], "big") / 2**64


def _scripts(face: Face) -> set[str]:
    """The sets of characters that it has all of; of Hangul, most that is in use is something too."""
    found = {name for name, characters in SETS.items() if face.covers(characters)}
    if face.count(SETS["hangul"]) >= SOME_SYLLABLES:
        found.add("some hangul")
    return found | ({"capitals"} if face.covers(string.ascii_uppercase) else set())


def _groups(faces: Sequence[Face], alike: Alike | None) -> dict[str, str]:
    """For each family the name of its group: of all that are relatives of relatives."""
    words = {face.family: tuple(word.casefold() for word in WORDS.findall(face.family)) for face in faces}
    group = _by_words(faces, words)
    for pair in [] if alike is None else [*_by_beginnings(words), *alike]:
        if group.keys() >= set(pair):
            first, *others = sorted({group[family] for family in pair}, key=lambda name: (len(words[name]), name))
            group = {family: first if own in others else own for family, own in group.items()}
    return group


def _by_words(faces: Sequence[Face], words: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Together are a family and the one that its name begins with, and those that share a file with one of it."""
    group: dict[str, str] = {}
    for family in sorted(words, key=lambda family: (len(words[family]), family)):
        own = words[family]
        kin = next((other for other in group if words[other] and own[: len(words[other])] == words[other]), family)
        group[family] = group.get(kin, family)
    in_file: dict[Path, str] = {}
    for face in sorted(faces, key=lambda face: face.family):
        mine, first = group[face.family], in_file.setdefault(face.path, face.family)
        if mine != group[first]:
            group = {family: group[first] if own == mine else own for family, own in group.items()}
    return group


def _by_beginnings(families: Iterable[str]) -> list[tuple[str, str]]:
    """Families whose names begin with all of another one's, without regard to where words end."""
    plain = {family: name for family in families if (name := NO_LETTER.sub("", family.casefold()))}
    owners: dict[str, str] = {}
    pairs = [(owners.setdefault(plain[family], family), family) for family in sorted(plain)]
    for family, name in sorted(plain.items()):
        begins = (name[:length] for length in range(BEGINNING, len(name)))
        pairs += [(owners[beginning], family) for beginning in begins if beginning in owners]
    return [pair for pair in pairs if pair[0] != pair[1]]
