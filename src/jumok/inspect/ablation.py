"""What a model loses without one of its heads.

Attention shows where a head looks, not whether anything depends on it. So take the head away, and see loss and BLEU
move (Michel et al. 2019, "Are Sixteen Heads Really Better than One?"; Voita et al. 2019):

    zero:  head(x) ← 0
    mean:  head(x) ← E[head(x)], its mean output over the data: what it says about this x is gone, what it always says
           (which later layers may count on, like a bias) is left

The change is made at the model's taps (layers/tap.py), by hooks that are gone when the block ends. An attention without
heads (Bahdanau's, Luong's) is taken away as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from jumok.data.batch import PairBatch
from jumok.data.readers import read_pairs
from jumok.errors import BadInput, did_you_mean
from jumok.inspect.entropy import head_entropies
from jumok.inspect.healthy import require_numbers
from jumok.inspect.twin import compiled_parts
from jumok.layers.tap import Tap
from jumok.recipe import Corpus
from jumok.tasks.metrics import corpus_scores
from jumok.tasks.translator import Translator

BATCH = 64
WAYS = ("zero", "mean")


class Head(NamedTuple):
    """`head` is None for an attention that has none: the whole of it."""

    tap: str
    head: int | None = None


def heads_of(model: nn.Module, kinds: Collection[str] | None = None) -> list[Head]:
    """All heads of a model, or those of some kinds ("self", "causal", "cross"), from the first layer to the last."""
    taps = [module for module in model.modules() if isinstance(module, Tap)]
    known = sorted({tap.kind for tap in taps})
    for kind in kinds or ():
        if kind not in known:
            has = did_you_mean(kind, known) if known else " It has none at all."
            raise BadInput(f'kind "{kind}": this model has no such attention.{has}')
    if not taps:
        raise BadInput("this model has no attention to take away: train lstm-luong, lstm-bahdanau or a transformer")
    chosen = [tap for tap in taps if kinds is None or tap.kind in kinds]
    return [Head(tap.name, head) for tap in chosen for head in ([None] if tap.heads is None else range(tap.heads))]


@contextmanager
def ablated(model: nn.Module, heads: Collection[Head], means: Mapping[str, Tensor] | None = None) -> Iterator[None]:
    """Inside the block these heads say nothing (or, with `means` from `mean_outputs`, what they say on average)."""
    if compiled_parts(model):
        raise BadInput("a compiled model does not notice that a head is taken away: give the model as it was before")
    taps = {module.name: module for module in model.modules() if isinstance(module, Tap)}
    for name, head in heads:
        if name not in taps:
            raise BadInput(f'no attention "{name}" in this model.{did_you_mean(name, taps)}')
        count = taps[name].heads
        if head is not None and (count is None or not 0 <= head < count):
            has = "has no heads" if count is None else f"has heads 0 to {count - 1}"
            raise BadInput(f"head {head}: {name} {has}")
    gone = {name: [head for tap, head in heads if tap == name] for name, _ in heads}

    def after(tap: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        assert isinstance(tap, Tap)
        # (B, T, D), or (B, H, T, D) with a mean (H, D)
        instead = torch.zeros_like(output)
        if means is not None:
            mean = means[tap.name].to(output)
            instead = (mean[:, None] if output.dim() == 4 else mean).expand_as(output)
        if None in gone[tap.name]:
            return instead
        lost = torch.zeros(output.size(1), dtype=torch.bool, device=output.device)
        lost[[head for head in gone[tap.name] if head is not None]] = True
        return torch.where(lost[:, None, None], instead, output)

    handles = [taps[name].register_forward_hook(after) for name in gone]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.inference_mode()
def mean_outputs(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> dict[str, Tensor]:
    """What each attention says on average over the real positions of a corpus: (D,), or (H, D) where it has heads."""
    model = translator.model.eval()
    taps = [module for module in model.modules() if isinstance(module, Tap)]
    seen: dict[str, list[Tensor]] = {}

    def after(tap: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        assert isinstance(tap, Tap)
        seen.setdefault(tap.name, []).append(output)

    sums: dict[str, Tensor] = {}
    counts: dict[str, int] = {}
    rows, written = _encoded(translator, sources, targets)
    handles = [tap.register_forward_hook(after) for tap in taps]
    try:
        for start in range(0, len(rows), BATCH):
            batch = PairBatch.of(rows[start : start + BATCH], written[start : start + BATCH]).to(translator.device)
            seen.clear()
            model(batch.source, batch.target.ids[:, :-1])
            for tap in taps:
                said = torch.cat(seen[tap.name], dim=-2).double()  # some decoders go step by step
                real_BT = batch.source.mask if tap.kind == "self" else batch.target.mask[:, 1:]
                real = real_BT[:, None, :, None] if said.dim() == 4 else real_BT[..., None]
                total = (said * real).sum(dim=(0, -2))
                sums[tap.name] = sums[tap.name] + total if tap.name in sums else total
                counts[tap.name] = counts.get(tap.name, 0) + int(real_BT.sum())
    finally:
        for handle in handles:
            handle.remove()
    return {name: (total / max(1, counts[name])).float() for name, total in sums.items()}


def _encoded(
    translator: Translator, sources: Sequence[str], targets: Sequence[str]
) -> tuple[list[list[int]], list[list[int]]]:
    read = translator.source.encode([one.strip() for one in sources])
    return [[*translator.before, *row] for row in read], translator.target.encode(list(targets))


# ---------------------------------------------------------------- how much each head matters


@dataclass(frozen=True)
class Importance:
    """The model without one head."""

    tap: str
    kind: str
    layer: int
    head: int | None
    loss: float
    loss_change: float  # above 0: the head helps
    bleu: float | None
    bleu_change: float | None  # below 0: the head helps
    spread: float  # how widely it looks: inspect/entropy.py

    @property
    def name(self) -> str:
        return self.tap if self.head is None else f"{self.tap}, head {self.head}"


@dataclass(frozen=True)
class Ablation:
    """What the model has with all heads, and without each of them, the most important first."""

    way: str
    sentences: int  # that the loss is over
    loss: float  # − log p of a target token, on average
    bleu_sentences: int
    bleu: float | None
    heads: tuple[Importance, ...]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "heads": [asdict(head) for head in self.heads]}


def usable_pairs(translator: Translator, source: Path, target: Path, most: int) -> tuple[list[str], list[str], int]:
    """The first pairs of two files that the model can read whole, and how many before and among them it cannot."""
    sources: list[str] = []
    targets: list[str] = []
    left_out = 0
    limit = translator.max_length - len(translator.before)
    for left, right in read_pairs(Corpus(source=[str(source)], target=[str(target)])):
        if len(sources) == most:
            break
        read, written = translator.source.encode([left.strip()])[0], translator.target.encode([right])[0]
        if read and written and len(read) <= limit and len(written) < translator.model.longest:
            sources.append(left)
            targets.append(right)
        else:
            left_out += 1
    if not sources:
        raise BadInput(f"{source}, {target}: no pair fits the model ({left_out} are blank or too long)")
    return sources, targets, left_out


class Ablating:
    """One after another, so that who calls can show how far it is: `steps` of them, each a head."""

    def __init__(
        self,
        translator: Translator,
        sources: Sequence[str],
        targets: Sequence[str],
        kinds: Collection[str] | None = None,
        way: str = "zero",
        bleu_sentences: int = 200,
        beam: int = 1,
    ) -> None:
        if way not in WAYS:
            raise BadInput(f'"{way}" is no way to take a head away.{did_you_mean(way, WAYS)}')
        if not sources:
            raise BadInput("there is no sentence pair to measure on")
        self.translator, self.sources, self.targets = translator, list(sources), list(targets)
        self.heads, self.way, self.beam = heads_of(translator.model, kinds), way, beam
        require_numbers(translator.model)
        self.judged = min(len(self.sources), max(0, bleu_sentences))

    def steps(self) -> Iterator[Importance]:
        """The whole model first, then without each head in the model's order."""
        self.loss, self.bleu = self._measured()
        means = mean_outputs(self.translator, self.sources, self.targets) if self.way == "mean" else None
        spreads = {Head(one.name, one.head): one for one in head_entropies(self.translator, self.sources, self.targets)}
        for head in self.heads:
            with ablated(self.translator.model, [head], means):
                loss, bleu = self._measured()
            known = spreads[head]
            changes = loss - self.loss, None if bleu is None or self.bleu is None else bleu - self.bleu
            yield Importance(
                head.tap, known.kind, known.layer, head.head, loss, changes[0], bleu, changes[1], known.spread
            )

    def result(self, heads: Sequence[Importance]) -> Ablation:
        order = sorted(heads, key=lambda one: -one.loss_change)
        return Ablation(self.way, len(self.sources), self.loss, self.judged, self.bleu, tuple(order))

    def _measured(self) -> tuple[float, float | None]:
        scored = self.translator.score(self.sources, self.targets)
        loss = -sum(one.log_probability for one in scored) / sum(len(one.log_probabilities) for one in scored)
        if not self.judged:
            return loss, None
        outputs = self.translator.translate(self.sources[: self.judged], beam=self.beam)
        return loss, corpus_scores(outputs, self.targets[: self.judged])[0].score


def head_importance(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    kinds: Collection[str] | None = None,
    way: str = "zero",
    bleu_sentences: int = 200,
    beam: int = 1,
) -> Ablation:
    """Loss and BLEU of the model without each of its heads. BLEU is that of the first `bleu_sentences`; 0: none."""
    ablating = Ablating(translator, sources, targets, kinds, way, bleu_sentences, beam)
    return ablating.result(list(ablating.steps()))
