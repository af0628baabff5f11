"""What a run becomes for `transformers`: a folder that is not yet written, and how its model is held against ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.training import checkpoint
from jumok.training.run import RunFolder

ROWS = 4  # of random input that is compared

Compared = tuple[Tensor, Tensor, str]  # here, there, and what it is


@dataclass(frozen=True)
class Outgoing:
    """A folder for `transformers`."""

    architecture: str  # their class
    config: dict[str, Any]  # config.json
    weights: dict[str, Tensor]  # model.safetensors
    files: dict[str, str]  # all others: name → content
    compare: Callable[[Any], Compared]  # given their model, what both say of one random input
    purpose: str  # the task, as their model cards call it
    usage: str  # Python that uses it, for the card
    step: int  # of the checkpoint that this is
    notes: list[str] = field(default_factory=list)  # what its user should know, in sentences
    same_words: Callable[[Any], str | None] | None = None  # given their tokenizer, a text that it cuts otherwise


def refuse(section: BaseModel, allowed: Mapping[str, tuple[Any, ...]], theirs: str) -> None:
    """What their model cannot compute is named by the recipe's keys: all of them, since it takes a training to mend."""
    problems = []
    for key, values in allowed.items():
        found = getattr(section, key)
        if found not in values:
            told = " or ".join(dict.fromkeys(_word(value) for value in values if value is not None))
            shown = "something" if isinstance(found, BaseModel) else _word(found)
            problems.append(f"model.{key}: {shown} (there: {told or 'nothing'})")
    if problems:
        raise BadInput(
            f"{', '.join(problems)} cannot be written for transformers' {theirs}. Only a run that was trained with "
            "what it has there can be"
        )


def load_run(run: RunFolder, model: nn.Module) -> tuple[int, list[str]]:
    """The best (or newest good) checkpoint into a model. Gives its update, and what had to be said on the way."""
    said: list[str] = []
    found = checkpoint.newest_good(run, said.append, prefer="best")
    if found is None:
        raise BadInput(checkpoint.why_none(run))
    try:
        weights = {name: tensor.float() for name, tensor in load_file(found / checkpoint.MODEL).items()}
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError, KeyError) as error:
        raise BadInput(f"{found / checkpoint.MODEL}: damaged ({error})") from None
    checkpoint.load_weights(model, weights, str(found))
    model.eval()
    return int(found.name.removeprefix("step-")), said


def labels(names: tuple[str, ...]) -> dict[str, Any]:
    """Of config.json. A name that stands there twice would be one label."""
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
