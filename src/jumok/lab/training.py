"""What experiments that train something share: a seed, a short training, and writing without a teacher.

Short on purpose: `training/loop.py` is for runs that live on disk, these are models that live for some seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from jumok.data.batch import START, Sequences
from jumok.models.encoder_decoder import EncoderDecoder


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Everything random inside comes from the seed; outside nothing is changed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def train(
    model: nn.Module,
    loss_of: Callable[[int], Tensor],
    updates: int,
    learning_rate: float,
    warmup: float = 0.1,
    clip: float = 1.0,
) -> list[float]:
    """Adam on `loss_of(update)`, the mean loss of that update's batch; returns the losses.

    The learning rate rises over the first `warmup` of the updates and falls in a line to nothing at the end: so a short
    training ends at rest, and models are not compared in the middle of a jump.
    """
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    rising = warmup * updates
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda update: min((update + 1) / (rising + 1), (updates - update) / max(1.0, updates - rising))
    )
    losses: list[float] = []
    for update in range(updates):
        loss = loss_of(update)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    model.eval()
    return losses


@torch.inference_mode()
def written(model: EncoderDecoder, source: Sequences, steps: int) -> Tensor:
    """(B, steps): what the model writes when it reads its own best word at every step (greedy search, all rows at once,
    without stopping at `<eos>`)."""
    memory = model.encode(source)
    cache = model.start(memory, len(source), steps)
    tokens_B = torch.full((len(source),), START)
    words: list[Tensor] = []
    for position in range(steps):
        log_probs_BV, cache = model.step(tokens_B, torch.full_like(tokens_B, position), memory, cache)
        tokens_B = log_probs_BV.argmax(dim=-1)
        words.append(tokens_B)
    return torch.stack(words, dim=1)
