"""The optimiser (AdamW, or Muon beside it) and the learning rate, a pure function of where the run is."""

from __future__ import annotations

import math

import torch
from torch import nn

from jumok.models.bert import depth_of
from jumok.recipe import Training
from jumok.training.muon import Muon, matrices_of


def build_optimizer(model: nn.Module, training: Training, layers: int = 0) -> torch.optim.Optimizer:
    """AdamW with decoupled weight decay on matrices only: biases and gains have nothing to shrink. With `optimizer:
    muon` the matrices of blocks and of stems learn by that instead.

    With `layer_decay` (Howard and Ruder 2018) what is n steps below the top of a BERT of so many `layers` learns at
    decay^n of the rate: `group["share"]`.
    """
    groups: dict[tuple[float, bool, bool], list[nn.Parameter]] = {}
    turned = matrices_of(model) if training.optimizer == "muon" else set()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            below = layers + 1 - depth_of(name.removeprefix("model."), layers) if training.layer_decay < 1 else 0
            kind = (training.layer_decay**below, parameter.dim() >= 2, parameter in turned)
            groups.setdefault(kind, []).append(parameter)
    ordered = sorted(groups.items(), key=lambda item: item[0], reverse=True)  # matrices first, as ever
    device = next(model.parameters()).device.type
    build = Muon if turned else torch.optim.AdamW
    return build(
        [
            {"params": found, "weight_decay": training.weight_decay if decays else 0.0}
            | {"share": share * (training.matrices_rate if orthogonal else 1)}
            | ({"orthogonal": orthogonal} if turned else {})
            for (share, decays, orthogonal), found in ordered
        ],
        lr=training.learning_rate,
        betas=training.betas,
        eps=training.epsilon,
        fused=device in ("cpu", "cuda"),
    )


def learning_rate(
    training: Training, update: int, total: int | None, plateau_scale: float = 1.0, width: int = 512
) -> float:
    """The rate for the update with number `update` (from 0).

    A linear rise over `warmup` updates (at most a quarter of the run) to the peak, then
        constant      peak
        inverse-sqrt  peak · √(warmup / t)
        cosine        peak · ½ (1 + cos(π · progress))
        linear        peak · (1 − progress)
        plateau       peak · factor^cuts
        paper         width^-½ · min(t^-½, t · warmup^-1½)       (Vaswani et al. 2017, equation 3)
    The last one is the paper's to the letter: its peak (width · warmup)^-½ follows from the width of the model, so
    `learning_rate` plays no part, and a short run does not shorten its warm-up.
    While `--minutes` has not fixed `total` yet, the rate stays at the peak after the warm-up.
    """
    peak, warmup = training.learning_rate, training.warmup
    if training.schedule == "paper":
        return float(width**-0.5 * min((update + 1) ** -0.5, (update + 1) * max(warmup, 1) ** -1.5))
    if total is not None:
        warmup = min(warmup, total // 4)  # a short run (`--minutes 1`) must not spend itself on rising
    time = update + 1
    if time <= warmup:
        return peak * time / warmup
    if training.schedule == "plateau":
        return peak * plateau_scale
    if training.schedule == "inverse-sqrt":
        return peak * math.sqrt(max(warmup, 1) / time)
    if training.schedule == "constant" or total is None:
        return peak
    progress = min(1.0, (time - warmup) / max(1, total - warmup + 1))
    if training.schedule == "cosine":
        return peak * 0.5 * (1.0 + math.cos(math.pi * progress))
    return peak * (1.0 - progress)
