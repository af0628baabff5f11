"""AdamW and the learning rate, both as pure functions of where the run is."""

from __future__ import annotations

import math

import torch
from torch import nn

from jumok.recipe import Training


def build_optimizer(model: nn.Module, training: Training) -> torch.optim.AdamW:
    """AdamW with decoupled weight decay on matrices only: biases and gains have nothing to shrink."""
    matrices = [p for p in model.parameters() if p.requires_grad and p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.requires_grad and p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": training.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    device = next(model.parameters()).device.type
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
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
