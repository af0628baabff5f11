"""What was seen of one text, kept for a while, so that to choose another head is to send one map and nothing else.

A `Sight` has all weights of one pass (inspect/record.py), what went through the taps (for the steps), and what the
model said; of the model as it is, or without some of its heads (inspect/ablation.py).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from jumok.errors import BadInput
from jumok.inspect.ablation import Head, ablated
from jumok.inspect.attention import Weights, merged
from jumok.inspect.forced import Side
from jumok.inspect.record import record
from jumok.inspect.rollout import rolled_decoder, rolled_encoder
from jumok.inspect.steps import Call, Step, head_steps, kept, steps_of
from jumok.inspect.view import View
from jumok.layers.tap import Tap
from jumok.studio.attention_jobs import Job, Outcome

MOST, MOST_BYTES = 8, 640 << 20  # sights that are kept
STAMP = 32  # pixels of a small map's side
COMBINED = ("head", "mean", "max", "rollout")


@dataclass(frozen=True, eq=False)
class Group:
    """All maps that share their queries and keys."""

    kind: str  # of the taps
    taps: tuple[Tap, ...]  # by layer
    queries: Side
    keys: Side
    weights: Weights  # (layers, heads, queries, keys); an attention without heads has one
    row: int
    skipped: int  # what a pretrained reader puts before every text
    small: NDArray[np.uint8]  # (layers, heads, rows, columns): `stamps` of the weights

    @property
    def heads(self) -> int | None:
        return self.taps[0].heads

    def layer(self, number: int) -> int:
        """Where among the layers it is, by its number."""
        numbers = [tap.layer for tap in self.taps]
        if number not in numbers:
            raise BadInput(f"layer {number}: there are layers {', '.join(map(str, numbers))}")
        return numbers.index(number)


@dataclass(frozen=True, eq=False)
class Sight:
    job: Job
    groups: dict[str, Group]
    calls: dict[str, Call]  # by the name of the tap; of attention without heads there are none
    outcome: Outcome
    difference: float  # max|Δ| between what the layers returned and the recorded weights applied to their values
    notes: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        tensors = [part for inputs, output in self.calls.values() for part in (*inputs[:3], output)]
        weights = sum(group.weights.nbytes for group in self.groups.values())
        return weights + sum(tensor.nelement() * tensor.element_size() for tensor in tensors)

    def map(self, name: str, combined: str, layer: int, head: int, words: bool) -> Weights:
        """(queries, keys) of one head, of a layer's mean or largest weights, or rolled out through all layers."""
        group = self.group(name)
        if combined == "rollout":
            chosen = self._rolled(name)
        else:
            heads = group.weights[group.layer(layer)]
            if combined == "head" and not 0 <= head < len(heads):
                raise BadInput(f"head {head}: there are {len(heads)}, counted from 0")
            ways = {"head": lambda: heads[head], "mean": lambda: heads.mean(axis=0), "max": lambda: heads.max(axis=0)}
            chosen = ways[combined]()
        return merged(chosen, group.keys.words, group.queries.words) if words else chosen

    def group(self, name: str) -> Group:
        if name not in self.groups:
            raise BadInput(f'no attention of kind "{name[:20]}" here: there is {", ".join(self.groups)}')
        return self.groups[name]

    @property
    def rolls(self) -> bool:
        """Whether there are layers to follow: those of readers, and of Transformers on both sides."""
        return all(group.heads is not None for group in self.groups.values()) and (
            self.job.translator is None or {"self", "causal", "cross"} <= set(self.groups)
        )

    def _rolled(self, name: str) -> Weights:
        if not self.rolls:
            raise BadInput(
                "attention rollout follows attention through the layers of a Transformer; this model is none"
            )
        means = {one: list(group.weights.mean(axis=1)) for one, group in self.groups.items()}
        if self.job.translator is None or name == "self":
            return rolled_encoder(means[name])
        own, flow = rolled_decoder(means["causal"], means["cross"], rolled_encoder(means["self"]))
        weights = own if name == "causal" else flow
        return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)

    @torch.inference_mode()
    def steps(self, name: str, layer: int, head: int, place: int, without: Sequence[Head]) -> tuple[Step, ...]:
        """From the scores to the value, for one query of one head."""
        group = self.group(name)
        if not 0 <= place < len(group.queries.tokens):
            raise BadInput(f"query {place}: there are {len(group.queries.tokens)}, counted from 0")
        tap = group.taps[group.layer(layer)]
        if tap.heads is not None:
            if not 0 <= head < tap.heads:
                raise BadInput(f"head {head}: {tap.name} has {tap.heads}, counted from 0")
            labels = ["<s>"] * group.skipped + list(group.keys.tokens)
            place += group.skipped
            return tuple(head_steps(tap, self.calls[tap.name], head, place, labels, self.job.rotary, group.row))
        assert self.job.translator is not None
        with ablated(self.job.network, [one for one in without if one.tap != tap.name]):
            return steps_of(
                self.job.translator, self.job.sentence, str(place + 1), self.job.written,
                View(layer=layer, kind=group.kind), tokens=True, ended=self.job.ended,
            ).steps  # fmt: skip


@torch.inference_mode()
def looked(job: Job, without: Sequence[Head] = (), whole: Outcome | None = None) -> Sight:
    """The job done once, recorded. `without` these heads, beside what the `whole` model said."""
    taps = [module for module in job.network.modules() if isinstance(module, Tap)]
    with ExitStack() as stack:
        seen = stack.enter_context(record(job.network))
        # kept before a head is taken away, so that its own numbers can still be followed
        calls = {tap.name: stack.enter_context(kept(tap)) for tap in taps if tap.heads is not None}
        if without:
            stack.enter_context(ablated(job.network, without))
        hidden = job.forward()
    groups = {}
    for name, sides in job.sides.items():
        mine = sorted((tap for tap in taps if tap.kind == sides.kind), key=lambda tap: tap.layer)
        if not mine:
            continue
        maps = [_of_row(seen.weights(tap.name)[sides.row], sides.skipped) for tap in mine]
        size = len(sides.queries.tokens), len(sides.keys.tokens)
        weights = np.stack([one[:, : size[0], : size[1]] for one in maps])
        sizes = sides.row, sides.skipped
        groups[name] = Group(sides.kind, tuple(mine), sides.queries, sides.keys, weights, *sizes, stamps(weights))
    if not groups:
        raise BadInput("this model has no attention to show: train lstm-luong, lstm-bahdanau or a transformer")
    with ablated(job.network, without) if without else ExitStack():
        outcome = job.outcome(hidden, whole)
    used = {name: found[-1] for name, found in calls.items() if found}
    return Sight(job, groups, used, outcome, seen.max_difference, (*job.notes, *seen.notes))


def _of_row(weights: torch.Tensor, skipped: int) -> Weights:
    """(heads, queries, keys), without what a pretrained reader puts before every text."""
    heads = weights if weights.dim() == 3 else weights[None]
    if skipped:
        heads = heads[:, skipped:, skipped:]
        heads = heads / heads.sum(dim=-1, keepdim=True).clamp(min=1e-12)
    return heads.numpy()


def stamps(weights: Weights) -> NDArray[np.uint8]:
    """(layers, heads, rows, columns) small maps: √ of the largest weight of each patch, in bytes; so nothing strong is
    lost, and faint weights keep a shade of their own."""
    for axis in (-2, -1):
        size = weights.shape[axis]
        if size > STAMP:
            starts = np.arange(STAMP) * size // STAMP
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return np.round(255 * np.sqrt(np.clip(np.nan_to_num(weights), 0, 1))).astype(np.uint8)


def heads_named(names: Sequence[str]) -> list[Head]:
    """ "decoder.1.cross:3" is a head, "decoder.attention" an attention without heads."""
    found = []
    for name in dict.fromkeys(names):
        tap, _, head = name.partition(":")
        if head and not head.isdecimal():
            raise BadInput(f'"{name[:60]}" names no head: write one as decoder.1.cross:3')
        found.append(Head(tap, int(head) if head else None))
    return found


class Kept:
    """The newest sights, by what was asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, Any] = OrderedDict()

    def find(self, key: Hashable) -> Sight | None:
        with self._lock:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            found: Sight = self._known[key]
            return found

    def add(self, key: Hashable, sight: Sight) -> None:
        with self._lock:
            self._known[key] = sight
            self._known.move_to_end(key)
            while len(self._known) > 1 and (
                len(self._known) > MOST or sum(one.size for one in self._known.values()) > MOST_BYTES
            ):
                self._known.popitem(last=False)
