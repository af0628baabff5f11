"""Two models' alignments made into one.

A model of one direction links every word it writes to one word it reads: source → target gives many-to-one links,
target → source one-to-many. Where both agree they are nearly always right (the intersection); what only one of them
says is right often enough to be worth looking at (the union). Koehn, Och and Marcu 2003, "Statistical Phrase-Based
Translation", begin with the intersection and grow it towards the union:

    grow-diag         as long as there are any: links of the union that are neighbours (diagonal ones, too) of a link
                      that is there, if their source word or their target word has no link yet
    …-final           then those links of either direction of which one word has no link yet
    …-final-and       then only those of which both words have none
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from jumok.data.pharaoh import Link
from jumok.errors import BadInput, did_you_mean

BESIDE = ((-1, 0), (0, -1), (1, 0), (0, 1))
DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrize(forward: Set[Link], backward: Set[Link], method: str = "grow-diag-final-and") -> set[Link]:
    """One alignment from two, both as (source word, target word): `backward` is the reverse model's, turned round."""
    return method_named(method)(forward, backward)


def turned(links: Iterable[Link]) -> set[Link]:
    """The links of the other direction."""
    return {(target, source) for source, target in links}


class _Growing:
    """Links so far, and the words that have one."""

    def __init__(self, links: Set[Link]) -> None:
        self.links = set(links)
        self.sources = {source for source, _ in links}
        self.targets = {target for _, target in links}

    def add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])

    def lacks(self, link: Link) -> list[bool]:
        """Whether its source word, and whether its target word, has no link yet."""
        return [link[0] not in self.sources, link[1] not in self.targets]


def _grown(forward: Set[Link], backward: Set[Link], steps: Iterable[tuple[int, int]]) -> _Growing:
    union, growing, grew = forward | backward, _Growing(forward & backward), True
    order = sorted(union, key=lambda link: (link[1], link[0]))  # as the paper's loops: target words, then source words
    while grew:
        grew = False
        for source, target in order:
            if (source, target) not in growing.links:
                continue
            for down, right in steps:
                near = source + right, target + down
                if near in union and any(growing.lacks(near)):
                    growing.add(near)
                    grew = True
    return growing


def _finished(
    growing: _Growing, forward: Set[Link], backward: Set[Link], enough: Callable[[list[bool]], bool]
) -> set[Link]:
    for direction in (forward, backward):
        for link in sorted(direction, key=lambda link: (link[1], link[0])):
            if enough(growing.lacks(link)):
                growing.add(link)
    return growing.links


def _intersection(forward: Set[Link], backward: Set[Link]) -> set[Link]:
    return set(forward & backward)


def _union(forward: Set[Link], backward: Set[Link]) -> set[Link]:
    return set(forward | backward)


def _grow_diag(forward: Set[Link], backward: Set[Link]) -> set[Link]:
    return _grown(forward, backward, (*BESIDE, *DIAGONAL)).links


def _grow_diag_final(forward: Set[Link], backward: Set[Link]) -> set[Link]:
    return _finished(_grown(forward, backward, (*BESIDE, *DIAGONAL)), forward, backward, any)


def _grow_diag_final_and(forward: Set[Link], backward: Set[Link]) -> set[Link]:
    return _finished(_grown(forward, backward, (*BESIDE, *DIAGONAL)), forward, backward, all)


Join = Callable[[Set[Link], Set[Link]], set[Link]]  # the links of either direction, both from source to target
METHODS: dict[str, Join] = {
    "intersection": _intersection,
    "union": _union,
    "grow-diag": _grow_diag,
    "grow-diag-final": _grow_diag_final,
    "grow-diag-final-and": _grow_diag_final_and,
}


def method_named(name: str) -> Join:
    if name not in METHODS:
        raise BadInput(f"--symmetrize {name}: there is no such way.{did_you_mean(name, METHODS)}")
    return METHODS[name]
