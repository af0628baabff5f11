"""How widely a head looks: the entropy of its attention.

    H(α) = − Σ_s α_s log α_s        0: one word alone;  log S: all S words alike

`spread` is H / log S, between 0 and 1, so that short and long sentences can be put together; a place with nothing to
choose from (S = 1) does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jumok.data.batch import PairBatch
from jumok.inspect.record import record
from jumok.layers.tap import Tap
from jumok.tasks.translator import Translator

BATCH = 64


@dataclass(frozen=True)
class HeadEntropy:
    """The mean over all real positions of a corpus."""

    name: str  # of the tap
    kind: str
    layer: int
    head: int | None  # None: an attention without heads
    entropy: float  # in nats
    spread: float  # as a share of the most there could be


def entropy(weights: Tensor) -> Tensor:
    """(…, T) from weights (…, T, S); what has no weight adds nothing."""
    return -torch.xlogy(weights, weights).sum(dim=-1)


@torch.inference_mode()
def head_entropies(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> list[HeadEntropy]:
    """Of every attention and head, over sentences and their translations; in the order of the model's taps."""
    model = translator.model.eval()
    taps = [module for module in model.modules() if isinstance(module, Tap)]
    sums: dict[tuple[str, int], list[float]] = {}
    counts: dict[str, list[int]] = {tap.name: [0, 0] for tap in taps}
    rows = [[*translator.before, *ids] for ids in translator.source.encode([one.strip() for one in sources])]
    written = translator.target.encode(list(targets))
    for start in range(0, len(rows), BATCH):
        batch = PairBatch.of(rows[start : start + BATCH], written[start : start + BATCH]).to(translator.device)
        with record(model) as seen:
            model(batch.source, batch.target.ids[:, :-1])
        read, wrote = batch.source.mask.cpu(), batch.target.mask[:, 1:].cpu()
        for tap in taps:
            weights = seen.weights(tap.name)
            heads = weights[:, None] if weights.dim() == 3 else weights
            real_BT = read if tap.kind == "self" else wrote
            choices = _choices(tap.kind, read, wrote)
            found = entropy(heads)  # (B, H, T)
            open_BT = real_BT & (choices > 1)
            shares = found / choices.clamp(min=2).log()[:, None]
            counts[tap.name][0] += int(real_BT.sum())
            counts[tap.name][1] += int(open_BT.sum())
            for head in range(heads.size(1)):
                total = sums.setdefault((tap.name, head), [0.0, 0.0])
                total[0] += float(found[:, head][real_BT].sum())
                total[1] += float(shares[:, head][open_BT].sum())
    return [
        HeadEntropy(
            tap.name,
            tap.kind,
            tap.layer,
            None if tap.heads is None else head,
            sums[tap.name, head][0] / max(1, counts[tap.name][0]),
            sums[tap.name, head][1] / max(1, counts[tap.name][1]),
        )
        for tap in taps
        for head in range(tap.heads or 1)
        if (tap.name, head) in sums
    ]


def _choices(kind: str, read: Tensor, wrote: Tensor) -> Tensor:
    """(B, T): among how many words each query may choose."""
    if kind == "causal":
        return torch.arange(1, wrote.size(1) + 1).expand_as(wrote)
    return read.sum(dim=1, keepdim=True).expand_as(read if kind == "self" else wrote)
