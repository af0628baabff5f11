"""Attention drift over many rendered words, whose characters' places the renderer knows: by position, by length, and
whether it grows along the word.

    |d_wt| = a_w + b t        by least squares, with a level a_w for every word

Letters of long words are narrow, which alone makes their drift large in character widths, and only long words have late
positions: with one level for all, that would look like growth. Intervals are drawn over words (tasks/intervals.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jumok.data.rendering.rendered import RenderedWords, Split
from jumok.data.rendering.renderer import Renderer
from jumok.errors import BadInput
from jumok.inspect.reading_attention import about, check, looked_given
from jumok.inspect.reading_drift import WordDrift, slope_sums
from jumok.inspect.reading_overlay import Numbers, middles
from jumok.models.recognizer import Recognizer
from jumok.recipe import Recipe
from jumok.tasks.intervals import Estimate, drawn_sums, estimate, finite, ratio, signed, wilson
from jumok.tasks.recognition import same

ROWS = 128  # words rendered and looked at together
OWN = 0.5  # character widths: nearer than that, a map's centre is nearer to its own character than to a neighbour


@dataclass(frozen=True)
class Group:
    """Characters at one position of their words, or of words of one length."""

    number: int
    words: int
    mean: float  # of |d|, in character widths
    signed: float  # of d: above 0, the maps lie to the right

    def to_json(self, name: str) -> dict[str, Any]:
        return {name: self.number, "words": self.words, "mean": self.mean, "signed": self.signed}


@dataclass(frozen=True)
class Drift:
    """Over many words whose characters' places are known; in character widths where nothing else is said."""

    about: str
    words: int  # with a character at least
    characters: int
    mean: Estimate
    mean_share: float  # of the picture's width
    slope: Estimate  # more with each character of a word
    own: float  # share of characters whose map's centre is within half a character of them
    uniform: float  # mean, of a map that is the same everywhere
    right: Estimate  # share of the words that the model reads right
    mean_right: float  # of these words; nan where there are none
    mean_wrong: float  # of the others
    positions: tuple[Group, ...]
    lengths: tuple[Group, ...]

    @property
    def verdict(self) -> str:
        if self.mean.low <= self.uniform <= self.mean.high:
            return "it is as large as that of maps which are the same everywhere"
        if math.isfinite(self.slope.low) and self.slope.low > 0:
            return "it grows along the word"
        if math.isfinite(self.slope.high) and self.slope.high < 0:
            return "it shrinks along the word"
        return "it does not grow along the word, as far as so many words can tell"

    def to_json(self) -> dict[str, Any]:
        return {
            "format": 1, "about": self.about, "words": self.words, "characters": self.characters,
            "mean": self.mean.to_json(), "mean_share": self.mean_share, "slope": self.slope.to_json(),
            "verdict": self.verdict, "own": self.own, "uniform": self.uniform, "read_right": self.right.to_json(),
            "mean_of_words_read_right": finite(self.mean_right), "mean_of_words_misread": finite(self.mean_wrong),
            "positions": [one.to_json("position") for one in self.positions],
            "lengths": [one.to_json("length") for one in self.lengths],
        }  # fmt: skip

    def summary(self) -> str:
        """For the terminal."""
        mean, slope = (f"{one.number():<9}(95 %: {one.number_interval()})" for one in (self.mean, self.slope))
        of_words = f"mean {signed(self.mean_right, 3)}; of those misread {signed(self.mean_wrong, 3)}"
        lines = [
            f"Drift of {self.characters:,} characters in {self.words:,} rendered words ({self.about}):",
            "how far the centre of a character's map lies from the character, in character widths.",
            "",
            f"  mean                 {mean}; {100 * self.mean_share:.1f} % of the picture's width",
            f"  same map everywhere  {signed(self.uniform, 3)}",
            f"  within half a width  {100 * self.own:.1f} % of the characters",
            f"  with each character  {slope} more: {self.verdict}",
            f"  words read right     {self.right.percent():<9}{of_words}",
            "",
            "      ".join(f"{name:>8} {'words':>7} {'mean':>7} {'signed':>8}" for name in ("position", "length")),
        ]
        for row in range(max(len(self.positions), len(self.lengths))):
            cells = [_line(side[row]) if row < len(side) else "" for side in (self.positions, self.lengths)]
            lines.append(f"{cells[0]:<33}      {cells[1]}".rstrip())
        lines += ["", "signed: above 0 to the right of the character, below 0 to the left."]
        return "\n".join(lines) + "\n"


def _line(group: Group) -> str:
    return f"{group.number:>8} {group.words:>7,} {signed(group.mean, 3):>7} {signed(group.signed, 3):>8}"


class Placed(NamedTuple):
    """Pictures of words whose characters' places are known."""

    images: Tensor  # (B, C, H, W)
    ids: Tensor  # (B, T), `y_1 … y_n <eos> <pad> …`
    lengths: Tensor  # (B,)
    centres: Tensor  # (B, L, 2): x and y of each character, from 0 to 1


def drift_on_rendered(
    model: Recognizer,
    recipe: Recipe,
    count: int,
    seed: int,
    *,
    layer: int | None = None,
    head: int | None = None,
    split: Split = "test",
    say: Callable[[str], None] = lambda _: None,
) -> Drift:
    """Over so many words as the recipe renders them. Each is given to the model, right or not as it reads it: what it
    writes instead has no place."""
    check(model, layer, head)
    section = model.section
    words = RenderedWords(recipe.render, model.charset, section.max_length, split, say)
    renderer = Renderer(words.atlas, recipe.render, section.image, section.channels)
    return measured(model, placed_words(words, renderer, count, seed), layer, head)


def placed_words(words: RenderedWords, renderer: Renderer, count: int, seed: int) -> Iterator[Placed]:
    """The pictures of `data.rendering.pictures.batches`, with the places of the letters."""
    for start in range(0, count, ROWS):
        batch = words.batch(np.arange(start, start + ROWS), seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((seed * 1_000_003 + start) % 2**63)
            pictures = renderer(batch.glyphs)
        rows = slice(0, min(ROWS, count - start))
        yield Placed(pictures.images[rows], batch.ids[rows], batch.lengths[rows], pictures.centres[rows])


def measured(model: Recognizer, batches: Iterable[Placed], layer: int | None = None, head: int | None = None) -> Drift:
    """The drift of the maps that these texts have on their pictures."""
    drifts: list[WordDrift] = []
    right: list[bool] = []
    device = next(model.parameters()).device
    for batch in batches:
        maps = looked_given(model, batch.images, batch.ids, batch.lengths, layer, head).maps.numpy()
        model.eval()
        with torch.no_grad():
            read = same(model.read(batch.images.to(device)).ids, batch.ids.to(device)).tolist()
        columns = middles(maps.shape[3], 0, 1)
        for map_LHW, centres_L2, length, is_right in zip(
            maps, batch.centres.double().cpu().numpy(), batch.lengths.tolist(), read, strict=True
        ):
            across_LW = map_LHW[:length].sum(axis=1)
            if not length or not across_LW.any(axis=1).all():  # nothing to look for, or no way to write it
                continue
            drifts.append(WordDrift((across_LW @ columns).astype(np.float64), centres_L2[:length, 0]))
            right.append(is_right)
    if not drifts:
        raise BadInput("none of the words has a character whose place could be compared: render more of them")
    return _summed(drifts, np.array(right), about(model, layer, head))


def _summed(drifts: Sequence[WordDrift], right: NDArray[np.bool_], named: str) -> Drift:
    away = [abs(one.widths) for one in drifts]
    rows = np.array([[each.sum(), len(each), *slope_sums(each)] for each in away])
    sums, drawn = rows.sum(axis=0), drawn_sums(rows)
    every, toward = np.concatenate(away), np.concatenate([one.widths for one in drifts])
    lengths = np.array([len(each) for each in away])
    position, length = np.concatenate([np.arange(1, count + 1) for count in lengths]), np.repeat(lengths, lengths)
    of_right = np.repeat(right, lengths)
    return Drift(
        about=named,
        words=len(drifts),
        characters=len(every),
        mean=estimate(sums[0] / sums[1], drawn[:, 0] / drawn[:, 1]),
        mean_share=float(np.concatenate([abs(one.shares) for one in drifts]).mean()),
        slope=estimate(float(ratio(sums[2], sums[3])), ratio(drawn[:, 2], drawn[:, 3])),
        own=float((every < OWN).mean()),
        uniform=float(np.concatenate([abs(0.5 - one.places) / one.width for one in drifts]).mean()),
        right=wilson(int(right.sum()), len(right)),
        mean_right=_mean(every[of_right]),
        mean_wrong=_mean(every[~of_right]),
        positions=_groups(position, np.ones(len(every)), every, toward),
        lengths=_groups(length, 1 / length, every, toward),
    )


def _groups(numbers: NDArray[np.int64], words: Numbers, every: Numbers, toward: Numbers) -> tuple[Group, ...]:
    """`words`: what each character counts of one."""
    found = []
    for number in np.unique(numbers):
        of = numbers == number
        found.append(Group(int(number), round(words[of].sum()), _mean(every[of]), _mean(toward[of])))
    return tuple(found)


def _mean(values: Numbers) -> float:
    return float(values.mean()) if len(values) else math.nan
