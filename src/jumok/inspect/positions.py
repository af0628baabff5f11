"""Where a word stands, as a model is told: the positions of a formula or of a trained model, as numbers to look at.

`formula("sinusoidal")` gives those of a formula, `positions_of(model)` those of a model, learned ones from its weights.
Each is a table (a row for each position) and, for each offset k, how alike position t and t + k are: cos(p_t, p_(t+k)).
What lies beyond the length of training is told apart: a formula goes on there, learned vectors were never touched, and
behind the last of them there is nothing (NaN).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jumok.errors import BadInput, did_you_mean
from jumok.layers.position import Learned, RelativeBias, Rotary, Sinusoidal, rotate
from jumok.layers.stack import Stack
from jumok.models.bert import Bert
from jumok.models.permuted import PermutedRecognizer
from jumok.models.vit import Vit
from jumok.tasks.answerer import Answerer
from jumok.tasks.classifier import Classifier
from jumok.tasks.filler import Filler
from jumok.tasks.generator import Generator
from jumok.tasks.image_classifier import ImageClassifier
from jumok.tasks.series_forecaster import SeriesForecaster
from jumok.tasks.tagger import Tagger
from jumok.tasks.text_reader import TextReader
from jumok.tasks.translator import Translator

FORMAT = 1
KINDS = ("sinusoidal", "sinusoidal-halves", "learned", "rotary")  # there before training
MOST_POSITIONS, MOST_WIDTH = 2048, 8192  # all pairs of positions are compared
Floats = NDArray[np.float32]


class Alike(NamedTuple):
    """How alike positions are that lie `offset` apart: over all such pairs the mean, the least and the most."""

    offset: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Positions:
    """`table`: a row for each position 0, 1, … (of relative ones: for each distance from `first`), NaN where there is
    none. `similarity[t, s]`: cosine of the vectors of t and s; of relative positions, what is added to the score of a
    query at t and a key at s (mean over the heads). `trained`: how many positions training can have seen, if known."""

    kind: str
    name: str
    table: Floats
    similarity: Floats
    trained: int | None = None
    first: int = 0

    @property
    def length(self) -> int:
        return len(self.similarity)

    @property
    def reach(self) -> int:
        """How many of the positions exist."""
        return int(np.isfinite(self.table[:, 0]).sum()) if self.kind == "learned" else self.length

    def by_offset(self, beyond: bool = False) -> list[Alike]:
        """Pairs that training has seen, or those of which at least one position lies beyond. Offsets that no pair has
        are left out. Relative positions tell what lies ahead from what lies behind: their offsets are signed."""
        both_ways = self.kind == "relative" and self.first < 0 and len(self.table) > self.length
        lowest = -(self.length - 1) if self.kind == "relative" else 0
        highest = 0 if self.kind == "relative" and not both_ways else self.length - 1
        within = self.length if self.trained is None else self.trained
        found = []
        for offset in range(lowest, highest + 1):
            pairs = np.diagonal(self.similarity, offset)
            last = np.arange(len(pairs)) + abs(offset)  # the farther of the two positions
            chosen = pairs[(last >= within) == beyond]
            chosen = chosen[np.isfinite(chosen)]
            if len(chosen):
                found.append(Alike(offset, float(chosen.mean()), float(chosen.min()), float(chosen.max())))
        return found

    def as_dictionary(self) -> dict[str, Any]:
        table = [[_number(value) for value in row] for row in self.table]
        alike = {
            name: [
                {"offset": a.offset, "mean": _number(a.mean), "low": _number(a.low), "high": _number(a.high)}
                for a in of
            ]
            for name, of in (("within", self.by_offset()), ("beyond", self.by_offset(beyond=True)))
        }
        facts = {"kind": self.kind, "name": self.name, "trained": self.trained, "length": self.length}
        return {**facts, "first": self.first, "table": table, "similarity_by_offset": alike}


def to_json(found: Sequence[Positions]) -> str:
    content = {"format": FORMAT, "positions": [one.as_dictionary() for one in found]}
    return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


# ---------------------------------------------------------------- from a formula


def formula(kind: str, width: int = 128, length: int = 128, trained: int | None = None) -> Positions:
    """Positions as training begins with them. `trained` (half of `length` where it is not given) marks what training
    would see; learned positions end there."""
    if kind == "relative":
        raise BadInput("kind relative: these positions are there only in a trained model: name one with --run")
    if kind == "none":
        raise BadInput("kind none: a model without positions has none to show")
    if kind not in KINDS:
        raise BadInput(f'kind: no positions "{kind}".{did_you_mean(kind, [*KINDS, "relative"])}')
    _check(length, width)
    trained = max(1, length // 2) if trained is None else trained
    if trained < 1:
        raise BadInput(f"trained {trained}: give a number of positions above zero")
    if kind != "learned" and width % 2:
        raise BadInput(f"width {width}: {kind} positions come in pairs of sine and cosine, so it must be even")
    if kind.startswith("sinusoidal"):
        return _described(Sinusoidal(width, halves=kind == "sinusoidal-halves"), kind, length, trained)
    if kind == "rotary":
        return _described(Rotary(width), "rotary", length, trained)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return _described(Learned(width, min(trained, length)), "learned, before training", length, trained)


def _check(length: int, width: int = 2) -> None:
    if not 2 <= length <= MOST_POSITIONS:
        raise BadInput(f"length {length}: from 2 to {MOST_POSITIONS} positions can be shown")
    if not 2 <= width <= MOST_WIDTH:
        raise BadInput(f"width {width}: give a width from 2 to {MOST_WIDTH}")


# ---------------------------------------------------------------- of a model


# what jumok.load() gives
Loaded = (
    Translator | Generator | SeriesForecaster | Filler | Classifier | Tagger | Answerer | ImageClassifier | TextReader
)


def positions_of(model: nn.Module | Loaded, length: int | None = None, trained: int | None = None) -> list[Positions]:
    """The positions of every stack of blocks in a model. Where all stacks have the same formula it is given once.

    `length`: how many to show (default: twice the trained ones, at most 256). `trained`: how many training can have
    seen; of a loaded run this is known."""
    if not isinstance(model, nn.Module):
        trained = _longest_in_training(model) if trained is None else trained
        model = model.model
    if trained is not None and trained < 1:
        raise BadInput(f"trained {trained}: give a number of positions above zero")
    if length is None:
        length = 128 if trained is None else min(max(2 * trained, 2), 256)
    _check(length)
    stacks = [(name, module) for name, module in model.named_modules() if isinstance(module, Stack)]
    # what is added before a stack of blocks, or instead of one: a BERT's learned positions, a permuted reader's queries
    added: list[tuple[str, Given | None]] = [
        (name, module.positions) for name, module in model.named_modules() if isinstance(module, Bert)
    ]
    if isinstance(model, PermutedRecognizer):
        added.append(("decoder", _as_learned(model.positions)))
    if not stacks and not added:
        raise BadInput(
            "this model has no positions: it is recurrent, and a recurrent network reads words one after another. "
            "Transformers have them"
        )
    found: dict[str, Positions] = {}
    for name, given in [*((name, _positions_in(stack)) for name, stack in stacks), *added]:
        if given is None:
            continue
        label = _kind_of(given) if isinstance(given, Sinusoidal | Rotary) else f"{name or 'model'}: {_kind_of(given)}"
        found.setdefault(label, _described(given, label, length, trained))
    if not found and any(isinstance(module, Vit) and module.positions is not None for module in model.modules()):
        raise BadInput(
            "the positions of this model are those of patches, which have a row and a column: they are shown by "
            "jumok look --run RUN --what positions --out positions.png"
        )
    if not found:
        raise BadInput("this model has no positions: it was trained with model.position: none")
    return list(found.values())


def _longest_in_training(loaded: Loaded) -> int | None:
    if isinstance(loaded, ImageClassifier):
        return None
    if isinstance(loaded, TextReader):
        return loaded.model.section.max_length + 1  # with <eos>
    if isinstance(loaded, Translator):
        return loaded.max_length + 1  # with <eos> behind the source, or <sos> before the target
    if isinstance(loaded, Classifier | Tagger):
        return loaded.max_length
    if isinstance(loaded, Answerer):
        return loaded.limits.max_length
    return loaded.layout.window if isinstance(loaded, SeriesForecaster) else loaded.window


def _as_learned(table_TD: nn.Parameter) -> Learned:
    places, width = table_TD.shape
    made = Learned(width, places)
    made.weight = table_TD
    return made


def _positions_in(stack: Stack) -> Given | None:
    return next((each for each in (stack.added, stack.rotary, stack.relative) if each is not None), None)


Given = Sinusoidal | Learned | Rotary | RelativeBias


def _kind_of(given: Given) -> str:
    if isinstance(given, Sinusoidal) and given.halves:
        return "sinusoidal-halves"
    kinds = {Sinusoidal: "sinusoidal", Learned: "learned", Rotary: "rotary", RelativeBias: "relative"}
    return kinds[type(given)]


@torch.no_grad()
def _described(given: Given, name: str, length: int, trained: int | None) -> Positions:
    kind = _kind_of(given)
    if isinstance(given, RelativeBias):
        return _relative(given, name, length, trained)
    if isinstance(given, Learned):
        table = torch.full((length, given.embedding_dim), torch.nan)
        known = given.weight[:length].detach().float().cpu()
        table[: len(known)] = known
    elif isinstance(given, Rotary):
        # what turning makes of (1 … 1, 0 … 0): the cosines, then the sines
        given.reach(length)
        start = torch.cat([torch.ones(given.head_width // 2), torch.zeros(given.head_width // 2)])
        turned = rotate(
            start.expand(1, length, 1, -1), given(torch.arange(length, device=given.rows.device)).float().cpu()
        )
        table = turned[0, :, 0]
    else:
        given.reach(length)
        table = given(torch.arange(length, device=given.rows.device)).float().cpu()
    unit = table.double() / table.double().norm(dim=1, keepdim=True).clamp(min=1e-12)
    return Positions(kind, name, _floats(table), _floats(unit @ unit.T), trained)


def _relative(given: RelativeBias, name: str, length: int, trained: int | None) -> Positions:
    places = torch.arange(length, device=given.weight.weight.device)
    bias_HTS = given(places, places)[0].float().cpu()
    if not given.both_ways:
        bias_HTS = bias_HTS.masked_fill(~torch.ones(length, length, dtype=torch.bool).tril(), torch.nan)
    back_TH = bias_HTS[:, -1].T  # the last query and every key: distances −(N−1) … 0
    ahead_TH = bias_HTS[:, 0, 1:].T if given.both_ways else back_TH[:0]
    table = torch.cat([back_TH, ahead_TH])
    return Positions("relative", name, _floats(table), _floats(bias_HTS.mean(dim=0)), trained, first=1 - length)


def _floats(values: Tensor) -> Floats:
    return values.float().numpy()
