"""The lock for translators that are written in int8. Rounded weights write other words now and then, more of them the
less a model is sure of what it writes; so whole translations say little about whether it is still the same model. Its
numbers do: the translations that the run writes are given to both, and the log-probability of a token in them may move

    mean over sentences of |log p_int8(y | x) − log p(y | x)| / |y| ≤ 0.2

What is rounding stays far below that (0.005 is usual); a model whose weights have outliers, which leave nothing of the
others, goes far beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from jumok.data.batch import END, START, source_batch
from jumok.errors import Failure
from jumok.search import Hypothesis, Stepper

MOST = 0.2  # nats a token
TOGETHER = 32  # sentences


@torch.inference_mode()
def forced(stepper: Stepper, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
    """log p(y, <eos> | x) of given translations, step by step."""
    found = []
    for start in range(0, len(sources), TOGETHER):
        given = source_batch([list(row) for row in sources[start : start + TOGETHER]])
        rows = [[*row, END] for row in targets[start : start + TOGETHER]]
        count, longest = len(rows), max(map(len, rows))
        next_BT = torch.tensor([row + [END] * (longest - len(row)) for row in rows])
        lengths_B = torch.tensor([len(row) for row in rows])
        memory = stepper.encode(given)
        cache = stepper.start(memory, count, longest)
        tokens_B, total_B = torch.full((count,), START), torch.zeros(count, dtype=torch.float64)
        for position in range(longest):
            log_probs_BV, cache = stepper.step(tokens_B, torch.full((count,), position), memory, cache)
            tokens_B = next_BT[:, position]
            chosen_B = log_probs_BV.gather(1, tokens_B[:, None])[:, 0].double()
            total_B += torch.where(position < lengths_B, chosen_B, 0.0)
        found += total_B.tolist()
    return found


def drifts(found: Sequence[Hypothesis], scored: Sequence[float]) -> torch.Tensor:
    """|Δ log p| a token, of each translation."""
    each = [
        abs(theirs - ours.log_probability) / (len(ours.tokens) + 1) for ours, theirs in zip(found, scored, strict=True)
    ]
    return torch.tensor(each, dtype=torch.float64)


def check_rounded(found: Sequence[Hypothesis], scored: Sequence[float], cure: str) -> str:
    """A clause about how far rounding moves the probabilities; `Failure` with the cure where that is no rounding."""
    moved = drifts(found, scored)
    told = f"max|Δ log p| {float(moved.max()):.1e} a token, {float(moved.mean()):.1e} in the mean"
    if not float(moved.mean()) <= MOST:  # which does not pass over what is no number
        raise Failure(f"{told}: more than {MOST} in the mean is not the same model any more in int8. {cure}")
    return told
