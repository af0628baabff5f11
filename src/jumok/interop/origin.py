"""What a run keeps of the checkpoint that it was imported from and that its own weights do not tell: so that it can be
written again as it was, bit for bit.

A Vision Transformer's class token and that token's position are one vector here, their sum; queries without a bias have
one of zeros; a pooler or a classifier that was not there is a fresh one. `origin.json` in the run says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from jumok.files import replace_file
from jumok.interop.json_file import read_object_if_there
from jumok.training.run import RunFolder

ORIGIN = "origin.json"
CLASS_TOKEN, CLASS_POSITION = "class_token", "class_position"


def write_origin(run: RunFolder, facts: Mapping[str, Any]) -> None:
    """Tensors become lists: a float32 is the same again after JSON."""
    plain = {key: value.tolist() if isinstance(value, Tensor) else value for key, value in facts.items()}
    replace_file(run.path / ORIGIN, json.dumps(plain) + "\n")


def has(run: RunFolder, what: str) -> bool:
    """Whether something was there; it was, where nobody says otherwise."""
    return read_object_if_there(run.path / ORIGIN).get(what, True) is not False


def was_there(run: RunFolder, what: str) -> bool:
    """Whether something is known to have been there."""
    return read_object_if_there(run.path / ORIGIN).get(what) is True


def class_token(run: RunFolder, sum_D: Tensor) -> tuple[Tensor, Tensor]:
    """The class token and its position, apart; where they are not known, or have learned since, all is the token's."""
    kept = read_object_if_there(run.path / ORIGIN)
    try:
        token_D, position_D = (
            torch.tensor(kept.get(key), dtype=torch.float32) for key in (CLASS_TOKEN, CLASS_POSITION)
        )
    except (TypeError, ValueError, RuntimeError):
        return sum_D, torch.zeros_like(sum_D)
    if token_D.shape == position_D.shape == sum_D.shape and torch.equal(token_D + position_D, sum_D):
        return token_D, position_D
    return sum_D, torch.zeros_like(sum_D)
