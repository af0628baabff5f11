"""Families of fonts that are never trained with, so that a reader is tested on letters of a shape it has not seen.

Which ones follows from a hash of the family's name. Families that are likely to have the same letters (`Noto Sans` and
`Noto Sans KR`, or two in one file) go to the same side. What a side can write must not hang on that chance: training
keeps at least one family of each script that there is, and so does the other side where there are two.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Sequence
from pathlib import Path

from jumok.data.rendering.face import Face
from jumok.text.charset import SETS

SOME_SYLLABLES = 2000  # from here on a face counts as one for Hangul; the smallest such set in use has 2,350
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")  # also of names in one word: Nanum Gothic


def split_faces(faces: Sequence[Face], held_out: float) -> tuple[list[Face], list[Face]]:
    """Those to train with and those held out, each in the order given."""
    if held_out <= 0:
        return list(faces), []
    groups = _groups(faces)
    if len(set(groups.values())) < 2:  # they are all alike: better to hold out one that is alike than none
        groups = {face.family: face.family for face in faces}
    scripts: dict[str, set[str]] = {}
    for face in faces:
        scripts.setdefault(groups[face.family], {"any"}).update(_scripts(face))
    without_hangul = [own for own in scripts.values() if "some hangul" not in own]
    for own in without_hangul if len(without_hangul) > 1 else ():  # held out too; the only one training can spare
        own.add("no hangul")
    chosen = _choose(scripts, held_out)
    is_out = [groups[face.family] in chosen for face in faces]
    return (
        [face for face, out in zip(faces, is_out, strict=True) if not out],
        [face for face, out in zip(faces, is_out, strict=True) if out],
    )


def _choose(scripts: dict[str, set[str]], share: float) -> set[str]:
    """Groups to hold out: those whose hash is below the share, then as few others as the scripts ask for."""
    order = sorted(scripts, key=lambda group: (_chance(group), group))
    chosen = {group for group in order if _chance(group) < share}
    kinds = sorted(set().union(*scripts.values()))
    for kind in kinds:
        owners = [group for group in order if kind in scripts[group]]
        if chosen.issuperset(owners):
            chosen.remove(owners[-1])

    def is_spare(group: str) -> bool:
        """Whether training could do without it."""
        rest = scripts.keys() - chosen - {group}
        return all(any(kind in scripts[other] for other in rest) for kind in scripts[group])

    for kind in kinds:
        owners = [group for group in order if kind in scripts[group]]
        if not chosen.intersection(owners):
            chosen.update([group for group in owners if is_spare(group)][:1])
    return chosen


def _chance(group: str) -> float:
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:8], "big") / 2**64


def _scripts(face: Face) -> set[str]:
    """The sets of characters that it has all of; of Hangul, most that is in use is something too."""
    found = {name for name, characters in SETS.items() if face.covers(characters)}
    if face.count(SETS["hangul"]) >= SOME_SYLLABLES:
        found.add("some hangul")
    return found | ({"capitals"} if face.covers(string.ascii_uppercase) else set())


def _groups(faces: Sequence[Face]) -> dict[str, str]:
    """For each family the name of its group: of the family that its name begins with, and of those that share a file
    with one of it."""
    words = {face.family: tuple(word.casefold() for word in WORDS.findall(face.family)) for face in faces}
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
