"""Two readers of texts that guess hidden words, tag words or find answers, on one text.

Both read it as the page "Attention" lets them (attention_jobs.py). What is compared are the probabilities of what the
first one finds likeliest: the other one is asked how likely it finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from jumok.errors import BadInput
from jumok.inspect.forced import Side
from jumok.inspect.record import record
from jumok.studio.attention_jobs import Event, Job, Text, job_of
from jumok.tasks.filler import MASK
from jumok.tasks.tagger import Tagger

TASKS = ("pretraining", "tagging", "answering")


@torch.inference_mode()
def compared(task: str, a: Any, b: Any, text: Text) -> dict[str, Any]:
    """As of classifiers: what both say (`sides`), and the probabilities of the same `labels`."""
    if task == "pretraining" and MASK not in text.text:
        raise BadInput(f"there is no {MASK} in the text: write it where a word should be guessed")
    if isinstance(a, Tagger) and set(a.labels) != set(b.labels):
        raise BadInput("the two runs have learned other tags: there is nothing to compare")
    jobs = [job_of(model, text) for model in (a, b)]
    hidden = [job.forward() for job in jobs]
    own = [job.outcome(states, None) for job, states in zip(jobs, hidden, strict=True)]
    if task == "tagging" and len(own[0].events) != len(own[1].events):
        raise BadInput("the text is longer than one of the two reads at once: take a part of it")
    asked = own[0].events
    found = jobs[1].outcome(hidden[1], own[0]).events
    known = [event.probability is not None for event in found]
    only = [name for name, here in zip(_named(asked), known, strict=True) if not here]
    return {
        "sides": [{"label": own[0].text, "only": only}, {"label": own[1].text, "only": []}],
        "labels": [name for name, here in zip(_named(asked), known, strict=True) if here],
        "a": [event.probability for event, here in zip(asked, known, strict=True) if here],
        "b": [event.probability for event, here in zip(found, known, strict=True) if here],
    }


def _named(events: Sequence[Event]) -> list[str]:
    """A tag of a word is "word/tag"; a guess is itself, with its [MASK] where there are several."""
    several = len({event.group for event in events}) > 1
    return [
        f"{event.name}/{event.group}" if event.group and not event.group.startswith(MASK)
        else f"{event.group}: {event.name}" if event.group and several
        else event.name
        for event in events
    ]  # fmt: skip


@torch.inference_mode()
def seen(model: Any, text: Text, layers: Sequence[int]) -> tuple[Side, list[torch.Tensor]]:
    """The text as the model reads it, and what it looked at in each of these layers, (1, heads, T, T)."""
    job: Job = job_of(model, text)
    side = job.sides["self"].queries
    with record(job.network, layers=list(layers), kinds=["self"]) as kept:
        job.forward()
    return side, [kept.weights(name) for name in kept.names()]
