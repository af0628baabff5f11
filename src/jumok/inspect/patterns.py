"""What the heads of a model that reads look at (Clark et al. 2019, "What Does BERT Look At?", section 3).

For every head: how much of its attention, on average, goes from a token to

    next        the token behind it                    separators  [SEP], wherever it stands
    previous    the token before it                    same        other places with the same word
    self        itself                                 rest        none of these
    first       the first token, [CLS]

A mean is over the tokens that have such a place at all (the last one has no next, most words stand in a text only
once), so that a head which always looks there has 1. A place may be of two kinds (the next token may be [SEP]) and
counts for both; `rest` is what no kind covers. Beside each mean stands what a uniform head would have, one that looks
everywhere alike, on the same tokens: 1 / n for the next one in a text of n tokens, and more for [SEP] where there are
two. Their ratio is the lift.

A head is named after the pattern that is most above that, if it has at least `SHARE` of the attention and `LIFT` times
as much as a uniform head; else it is "broad" (its spread, inspect/entropy.py, is `BROAD` or more) or
"mixed".

The weights are computed again from the queries and keys that the layers had (inspect/record.py); `max_difference` says
how far they are from explaining what the layers really returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.inspect.entropy import entropy
from jumok.inspect.healthy import require_numbers
from jumok.inspect.record import record
from jumok.models.bert import Bert
from jumok.models.transformer import Transformer

PATTERNS = ("next", "previous", "self", "first", "separators", "same", "rest")
SHARE, LIFT, BROAD = 0.4, 2.0, 0.8
CELLS = 2**19  # of a map (B, T, S) that are recorded at once, for each head of each layer


@dataclass(frozen=True)
class HeadPattern:
    """One head: the mean weight on each kind of place (None: no token had such a place), and how widely it looks."""

    layer: int
    head: int
    weights: dict[str, float | None]
    entropy: float  # in nats
    spread: float  # as a share of the most there could be
    name: str  # of PATTERNS, "broad" or "mixed"


@dataclass(frozen=True)
class Patterns:
    """All heads, from the first layer to the last; and what they were measured on."""

    texts: int
    tokens: int
    asked: dict[str, int]  # tokens that have such a place
    uniform: dict[str, float | None]  # what a head would have that looks everywhere alike
    max_difference: float  # between what the layers returned and the weights applied to their values
    heads: tuple[HeadPattern, ...]

    def lift(self, head: HeadPattern, pattern: str) -> float | None:
        """How many times as much as a uniform head has."""
        weight, uniform = head.weights[pattern], self.uniform[pattern]
        return None if weight is None or not uniform else weight / uniform

    def to_json(self) -> dict[str, Any]:
        heads = [
            {**asdict(one), "lift": {pattern: self.lift(one, pattern) for pattern in PATTERNS}} for one in self.heads
        ]
        return {"format": 1, **asdict(self), "thresholds": thresholds(), "heads": heads}

    def summary(self) -> str:
        """A table for the terminal: a line for each head, and above them what a uniform one would have."""
        lines = [
            f"What {len(self.heads)} heads look at: mean weights over {self.texts:,} texts of {self.tokens:,} tokens "
            f"(max|Δ| {self.max_difference:.1e}).",
            "",
            "layer  head " + "".join(f"{pattern:>11}" for pattern in PATTERNS) + "   spread  looks at",
            "    uniform " + "".join(_cell(self.uniform[pattern]) for pattern in PATTERNS) + "     1.00",
        ]
        lines += [
            f"{one.layer:>5}{one.head:>6} "
            + "".join(_cell(one.weights[pattern], one.name == pattern) for pattern in PATTERNS)
            + f"{one.spread:>9.2f}  {one.name}"
            for one in self.heads
        ]
        names = [one.name for one in self.heads]
        counts = ", ".join(
            f"{names.count(name)} {name}" for name in dict.fromkeys(sorted(names, key=names.count)[::-1])
        )
        rare = [f"{pattern} {self.asked[pattern]:,}" for pattern in PATTERNS if self.asked[pattern] < self.tokens]
        lines += [
            "",
            f"{counts}.  *: at least {SHARE:g} of the attention and {LIFT:g} times as much as a uniform head.",
        ]
        lines += [f"Not all tokens have such a place: {', '.join(rare)} of {self.tokens:,}."] if rare else []
        return "\n".join(lines) + "\n"


def thresholds() -> dict[str, float]:
    return {"share": SHARE, "lift": LIFT, "broad": BROAD}


def _cell(weight: float | None, marked: bool = False) -> str:
    return f"{'-' if weight is None else f'{weight:.2f}':>10}{'*' if marked else ' '}"


# ---------------------------------------------------------------- measuring


def head_patterns(
    model: nn.Module,
    rows: Sequence[Sequence[int]],
    start: int,
    end: int,
    device: torch.device | str = "cpu",
    segments: Sequence[Sequence[int]] | None = None,
) -> Patterns:
    """The patterns of a BERT's heads (or of a Transformer's encoder) over rows of token ids, as the model reads them:
    with their special tokens, of which `start` stands first and `end` is the separator. `segments` says of each token
    which text of its row it belongs to; without it, the first."""
    reader = _reader(model)
    if not rows:
        raise BadInput("there is no text to look at: give one at least")
    for number, row in enumerate(rows, 1):
        if not len(row):
            raise BadInput(f"text {number} of {len(rows)} has no token: leave it out")
        if segments is not None and (len(segments) != len(rows) or len(segments[number - 1]) != len(row)):
            raise BadInput(f"text {number} of {len(rows)} has {len(row)} tokens, and not as many segments")
    require_numbers(reader)
    sums = _Sums()
    was_training = reader.training
    reader.eval()
    try:
        with torch.inference_mode():
            for chosen in _batches(rows):
                words = Sequences.pad([rows[number] for number in chosen])
                parts = None if segments is None else Sequences.pad([segments[number] for number in chosen])
                with record(reader, kinds=("self",)) as seen:
                    _read(reader, words.to(device), None if parts is None else parts.ids.to(device))
                sums.add(words, start, end, {one.layer: one.weights for one in seen.records}, seen.max_difference)
    finally:
        reader.train(was_training)
    return sums.result()


def _reader(model: nn.Module) -> Bert | Transformer:
    """What reads: a BERT under whatever stands on it, or a Transformer, whose encoder it is."""
    for module in model.modules():
        if isinstance(module, Bert | Transformer):
            return module
    raise BadInput(f"patterns are those of a BERT or of a Transformer's encoder; {type(model).__name__} has neither")


def _read(reader: Bert | Transformer, words: Sequences, segments: Tensor | None) -> None:
    if isinstance(reader, Bert):
        reader(words, segments)
    else:
        reader.encode(words)


def _batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Texts of like lengths together, as many as their maps have room."""
    waiting: list[int] = []
    for number in sorted(range(len(rows)), key=lambda number: len(rows[number])):
        if waiting and (len(waiting) + 1) * len(rows[number]) ** 2 > CELLS:
            yield waiting
            waiting = []
        waiting.append(number)
    yield waiting


def places(words: Sequences, start: int, end: int) -> dict[str, Tensor]:
    """(B, T, S) for each pattern: which places are of its kind, seen from each token."""
    ids_BT, real_BT = words.ids, words.mask
    column_T = torch.arange(ids_BT.size(1))
    ahead_TS = column_T[None, :] - column_T[:, None]
    seen_BTS = real_BT[:, None, :] & real_BT[:, :, None]
    plain_BT = (ids_BT != start) & (ids_BT != end)
    same_BTS = (ids_BT[:, None, :] == ids_BT[:, :, None]) & plain_BT[:, :, None] & (ahead_TS != 0)
    first_BS = (column_T == 0) & (ids_BT == start)
    found = {
        "next": (ahead_TS == 1) & seen_BTS,
        "previous": (ahead_TS == -1) & seen_BTS,
        "self": (ahead_TS == 0) & seen_BTS,
        "first": first_BS[:, None, :] & seen_BTS,
        "separators": (ids_BT == end)[:, None, :] & seen_BTS,
        "same": same_BTS & seen_BTS,
    }
    covered_BTS = torch.stack(list(found.values())).any(dim=0)
    return {**found, "rest": seen_BTS & ~covered_BTS}


class _Sums:
    """Over batches: of weights by layer, head and pattern, and of the tokens that they are over."""

    def __init__(self) -> None:
        self.texts = self.tokens = self.open = 0
        self.asked = dict.fromkeys(PATTERNS, 0)
        self.uniform = dict.fromkeys(PATTERNS, 0.0)
        self.weights: dict[int, dict[str, Tensor]] = {}  # by layer: (H,) for each pattern
        self.spreads: dict[int, Tensor] = {}  # (2, H): of entropies, and of their shares of the most there could be
        self.max_difference = 0.0

    def add(self, words: Sequences, start: int, end: int, maps: dict[int, Tensor], difference: float) -> None:
        kinds, real_BT = places(words, start, end), words.mask
        length_B1 = words.lengths[:, None].double()
        self.texts += len(words)
        self.tokens += words.tokens
        self.open += int(words.lengths[words.lengths > 1].sum())  # tokens that have a choice
        self.max_difference = max(self.max_difference, difference)
        has = {pattern: kind.any(dim=-1) if pattern != "rest" else real_BT for pattern, kind in kinds.items()}
        for pattern, kind_BTS in kinds.items():
            self.asked[pattern] += int(has[pattern].sum())
            self.uniform[pattern] += float((kind_BTS.sum(dim=-1) / length_B1).sum())
        for layer, weights_BHTS in maps.items():
            sums = self.weights.setdefault(layer, {})
            for pattern, kind_BTS in kinds.items():
                on_H = (weights_BHTS * kind_BTS[:, None]).sum(dim=(0, 2, 3), dtype=torch.float64)
                sums[pattern] = sums[pattern] + on_H if pattern in sums else on_H
            found_BHT = entropy(weights_BHTS.double()) * real_BT[:, None]
            shares_BHT = found_BHT / length_B1.clamp(min=2).log()[:, None]  # alone, a token has entropy 0
            both_2H = torch.stack([found_BHT.sum(dim=(0, 2)), shares_BHT.sum(dim=(0, 2))])
            self.spreads[layer] = self.spreads[layer] + both_2H if layer in self.spreads else both_2H

    def result(self) -> Patterns:
        uniform = {pattern: self._mean(self.uniform[pattern], pattern) for pattern in PATTERNS}
        heads = []
        for layer, sums in sorted(self.weights.items()):
            for head in range(self.spreads[layer].size(1)):
                weights = {pattern: self._mean(float(sums[pattern][head]), pattern) for pattern in PATTERNS}
                nats, shares = self.spreads[layer][:, head].tolist()
                spread = shares / max(1, self.open)
                name = named(weights, uniform, spread)
                heads.append(HeadPattern(layer, head, weights, nats / self.tokens, spread, name))
        return Patterns(self.texts, self.tokens, self.asked, uniform, self.max_difference, tuple(heads))

    def _mean(self, total: float, pattern: str) -> float | None:
        return total / self.asked[pattern] if self.asked[pattern] else None


def named(weights: dict[str, float | None], uniform: dict[str, float | None], spread: float) -> str:
    """The pattern that stands out most, or how widely the head looks where none does."""
    above: dict[str, float] = {}
    for pattern in PATTERNS[:-1]:
        weight, alike = weights[pattern], uniform[pattern]
        if weight is not None and alike is not None and weight >= SHARE and weight >= LIFT * alike:
            above[pattern] = weight - alike
    if above:
        return max(above, key=lambda pattern: above[pattern])
    return "broad" if spread >= BROAD else "mixed"
