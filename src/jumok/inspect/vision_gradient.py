"""Which patches a label's score hangs on: attention weighted by its gradient (Chefer et al. 2021, equations 5 and 6).

    Ā_l = E_h[(∂y_c / ∂A_lh ⊙ A_lh)^+]        R ← R + Ā_l R,   R = I before the first layer

Attention alone says where a layer looked; its gradient says whether the score y_c of label c would have been lower
without that look. The map is q (R − I): what came to the tokens that are pooled (q, see inspect/vision.py). I is what
every token has of itself, of which nothing came from elsewhere. It is relevance, not a share: its rows sum to nothing
in particular.

A fused kernel never forms the weights, so nothing could be asked about them. Inside `written_out` each tap answers with
softmax(scores) times the values instead, which is the same function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.inspect.record import ARGUMENTS
from jumok.inspect.vision import Map, check_place, looking, on_device, pooled_share, pooling, room
from jumok.layers.attention import attention_weights
from jumok.layers.tap import Tap
from jumok.models.vit import ImageLabeller


@dataclass(frozen=True, eq=False)
class Relevance:
    """What the labels' scores hang on, of images side by side."""

    values: Tensor  # (B, T, T) R − I
    pooled: Tensor  # (B, T) how much each token counts in what stands for the image
    scores: Tensor  # (B, L) as the model gave them while its attention was written out
    labels: tuple[int, ...]


def gradient_maps(
    model: ImageLabeller,
    images_BCHW: Tensor,
    labels: Sequence[int | None] | None = None,
    names: Sequence[str] | None = None,
) -> list[Map]:
    """For each image what its label's score hangs on; None: the label that the model finds most likely. `names` are
    those of all labels."""
    grid, added = check_place(model, images_BCHW, None), model.reader.added
    asked = [None] * len(images_BCHW) if labels is None else list(labels)
    if len(asked) != len(images_BCHW):
        raise BadInput(f"{len(asked)} labels for {len(images_BCHW)} images: one for each is needed")
    found: list[Map] = []
    size = room(model, images_BCHW, layers=2 * model.section.layers)  # weights and their gradients, of all layers
    for first in range(0, len(asked), size):
        seen = relevance(model, images_BCHW[first : first + size], asked[first : first + size])
        for pooled_T, values_TT, label in zip(seen.pooled, seen.values, seen.labels, strict=True):
            row_T = pooled_T @ values_TT
            values = row_T[added:].reshape(grid).numpy().copy()
            name = f"for label {label}" if names is None else f"for {names[label]}"
            found.append(Map(values, name, float(row_T[:added].sum())))
    return found


def relevance(model: ImageLabeller, images_BCHW: Tensor, labels: Sequence[int | None]) -> Relevance:
    """R − I of each image for its label."""
    count = model.scores.out_features
    for label in labels:
        if label is not None and not 0 <= label < count:
            raise BadInput(f"label {label}: this model tells {count} labels apart, counted from 0")
    kept: list[Tensor] = []
    learning = torch.inference_mode(False), torch.enable_grad()
    with learning[0], learning[1], looking(model), pooling(model, kept), written_out(model) as weights:
        scores_BL: Tensor = model(on_device(model, images_BCHW)).float()
        best = scores_BL.argmax(dim=-1).tolist()
        chosen = [best[row] if label is None else label for row, label in enumerate(labels)]
        total = scores_BL[range(len(chosen)), chosen].sum()  # rows do not touch each other
        layers = [weights[layer] for layer in sorted(weights)]
        gradients = torch.autograd.grad(total, layers)
    with torch.no_grad():
        moved = [relevant.detach().float().cpu() for relevant in layers]
        steps = [
            (slope.float().cpu() * one).clamp(min=0).mean(dim=1) for slope, one in zip(gradients, moved, strict=True)
        ]
        start_BTT = torch.eye(steps[0].size(-1)).expand_as(steps[0])
        whole_BTT = start_BTT
        for step_BTT in steps:
            whole_BTT = whole_BTT + step_BTT @ whole_BTT
        pooled_BT = pooled_share(model, start_BTT.size(-1), len(chosen), kept)
        return Relevance(whole_BTT - start_BTT, pooled_BT, scores_BL.detach().cpu(), tuple(chosen))


@contextmanager
def written_out(model: nn.Module) -> Iterator[dict[int, Tensor]]:
    """Inside the block attention is weights times values, with weights that a gradient reaches: they are kept by layer.
    Dropout on the weights is left out, so the model should not be learning."""
    kept: dict[int, Tensor] = {}

    def after(tap: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], _output: Tensor) -> Tensor:
        assert isinstance(tap, Tap)
        given = dict(zip(ARGUMENTS, inputs, strict=False)) | named
        weights = attention_weights(
            given["query"], given["key"], given["mask"], given["scorer"], given.get("bias"), given.get("causal", False)
        )
        if not weights.requires_grad:  # parameters that are frozen: the gradient begins here
            weights.requires_grad_()
        kept[tap.layer] = weights
        return torch.matmul(weights, given["value"])

    taps = [module for module in model.modules() if isinstance(module, Tap)]
    handles = [tap.register_forward_hook(after, with_kwargs=True) for tap in taps]
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()
