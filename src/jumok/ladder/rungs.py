"""The rungs, from the bottom up: which recipe of the house each is, and what of it changes with the size asked for.

What all rungs share (data, tokenizer, search) is the same key for all of them. What is a rung's own (network, learning
rate) is what that network needs to learn well; a fair race does not put everybody into the same shoes. Batches are the
same as long as nobody changes them: under a budget in updates they are part of it, so one rung alone may not have its
own; under one in minutes it may, for it pays for larger ones with time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jumok import recipe as recipes
from jumok.errors import BadInput, did_you_mean
from jumok.recipe import Recipe

_SMALL = ("model.embedding=128", "model.width=256", "model.layers=1", "model.dropout=0.1")


@dataclass(frozen=True)
class Rung:
    name: str  # as it is typed
    title: str  # as it is shown
    recipe: str  # of the house
    small: tuple[str, ...]  # what makes it small enough for a few minutes of a CPU


RUNGS = {
    rung.name: rung
    for rung in (
        Rung("rnn", "RNN", "rnn", (*_SMALL, "training.learning_rate=0.001")),
        Rung("lstm", "LSTM", "lstm", (*_SMALL, "training.learning_rate=0.003")),
        Rung("gru", "GRU", "gru", (*_SMALL, "training.learning_rate=0.003")),
        Rung("bahdanau", "Bahdanau", "lstm-bahdanau", (*_SMALL, "training.learning_rate=0.003")),
        Rung("luong", "Luong", "lstm-luong", (*_SMALL, "training.learning_rate=0.003")),
        Rung(
            "transformer",
            "Transformer",
            "transformer-small",
            (
                "model.width=128", "model.encoder_layers=2", "model.decoder_layers=2", "model.feed_forward=256",
                "model.position=rotary", "model.dropout=0.0", "training.learning_rate=0.003",
                "training.schedule=cosine", "training.warmup=100",
            ),
        ),
    )
}  # fmt: skip
# By size, for all rungs alike: "full" is the recipes as they ship
SHARED: dict[str, tuple[str, ...]] = {
    "small": (
        "tokenizer.joint=true", "tokenizer.vocabulary=4000", "training.batch_tokens=2048", "training.warmup=100",
        "training.label_smoothing=0.0", "training.validate_every=200", "training.validate_sentences=200",
    ),
    "full": ("tokenizer.joint=true",),
}  # fmt: skip
COMMON_SECTIONS = ("data", "tokenizer", "search", "task", "format")  # one rung alone may not have its own
UPDATE_SIZE = ("training.batch_tokens", "training.accumulate")  # how much is learned from in an update
INSTEAD = {"seed": "--seeds", "training.updates": "--updates", "device": "--device", "search.beam": "--beam"}
OWN = re.compile(r"^([^.=:]+):(.*)$", re.DOTALL)


def chosen(names: Sequence[str] | None) -> tuple[Rung, ...]:
    """The rungs of these names, from the bottom up; all of them without names."""
    for name in names or ():
        if name not in RUNGS:
            raise BadInput(f'--rungs: there is no rung "{name}".{did_you_mean(name, RUNGS)}')
        if list(names or ()).count(name) > 1:
            raise BadInput(f"--rungs: {name} is named twice")
    if names is not None and not names:
        raise BadInput(f"--rungs: name some of {', '.join(RUNGS)}")
    return tuple(rung for rung in RUNGS.values() if names is None or rung.name in names)


def recipe_of(rung: Rung, size: str, shared: Sequence[str], overrides: Sequence[str]) -> Recipe:
    """A rung's recipe: that of the house, its size, what is the same for all, and what the user changes.

    `transformer:training.r_drop=1` is for that rung alone; a key without a name is for all.
    """
    if size not in SHARED:
        raise BadInput(f"--size {size}: choose {' or '.join(SHARED)}")
    keys = [*SHARED[size], *(rung.small if size == "small" else ()), *shared]
    return recipes.read(rung.recipe, [*keys, *_for_rung(rung, overrides)])


def _for_rung(rung: Rung, overrides: Sequence[str]) -> list[str]:
    """The keys for all first: what is said of one rung counts more."""
    for_all, own = [], []
    for override in overrides:
        found = OWN.match(override)
        name, key = (found[1], found[2]) if found else ("", override)
        path = key.partition("=")[0]
        if path in INSTEAD:
            raise BadInput(f"{override}: the ladder has an option for that, {INSTEAD[path]}")
        if name and name not in RUNGS:
            raise BadInput(f'{override}: there is no rung "{name}".{did_you_mean(name, RUNGS)}')
        if name and path.split(".")[0] in COMMON_SECTIONS:
            raise BadInput(f"{override}: this must be the same for all rungs, so give it without {name}:")
        if not name:
            for_all.append(key)
        elif name == rung.name:
            own.append(key)
    return [*for_all, *own]
