"""Vision Transformers of other people: what all of their checkpoints have in common.

Their weights are those of `models.vit.ImageLabeller` but for a few things that are worked out here. The convolution
that cuts an image into patches is one matrix, so its weights lie flat. They may have positions for the class token and
registers too; there is one of each, so that position and token can be added up once and for all:

    [c; r_1 … r_R] + P_0 … P_R → tokens        P_(R+1) … → a grid of places
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from jumok.errors import BadInput, shortly
from jumok.interop.bert import COUNTED
from jumok.recipe import VitSection

STEM, TOKENS, PLACES = "reader.stem.map", "reader.tokens", "reader.positions.weight"
BLOCK, LAST_NORM, POOLED_NORM, SCORES = "reader.encoder.blocks.{}", "reader.encoder.norm", "norm", "scores"
NO_NAMES = 2  # classes of a model that has no classifier and does not say how many there will be

Size = tuple[str, int]  # what it is called there, and how large it is
ONE: Size = ("", 1)


@dataclass(frozen=True)
class ImportedVit:
    """What a checkpoint holds. All weights are float32, under the names that `models.vit.ImageLabeller` has."""

    section: VitSection
    weights: dict[str, Tensor]  # those of the classifier only where there is one
    classes: tuple[str, ...]  # in the order of the classifier
    resize: str  # how images of other sizes are brought to the model's there
    notes: list[str]  # what its reader should know, in sentences
    origin: dict[str, Any] = field(default_factory=dict)  # what the weights no longer tell (see origin.py)

    @property
    def has_classifier(self) -> bool:
        return f"{SCORES}.weight" in self.weights


def with_kinds(modules: Mapping[str, str]) -> dict[str, str]:
    """Names of weight and bias, of names of modules."""
    return {f"{theirs}.{kind}": f"{ours}.{kind}" for theirs, ours in modules.items() for kind in ("weight", "bias")}


def place_of(name: str, names: Mapping[str, str]) -> str | None:
    """What we call their tensor; {} in `names` is the number of a layer."""
    ours = names.get(COUNTED.sub(".{}.", name))
    return None if ours is None else ours.format(*COUNTED.findall(name))


def expected_sizes(ours: str, width: Size, inner: Size) -> tuple[Size, ...]:
    """Of what a block has, and of norms."""
    rows, columns = (inner if ".inner." in ours else width), (inner if ".outer." in ours else width)
    return (rows, columns) if ours.endswith("weight") and "norm" not in ours else (rows,)


def check_shape(tensor: Tensor, expected: Sequence[Size], where: str, told_by: str) -> None:
    """`where` is the file and the tensor's name, `told_by` the file that says how large it must be."""
    found, wanted = tuple(tensor.shape), tuple(size for _, size in expected)
    if found == wanted:
        return
    named = [(name, size, size != have) for have, (name, size) in zip(found, expected, strict=False) if name]
    keys = [(name, size) for name, size, unequal in named if unequal] or [one for one in expected if one[0]]
    told = " and ".join(dict.fromkeys(f"{name} {size}" for name, size in keys))
    raise BadInput(
        f"{where} is {product(found)}, but {told_by} asks for {product(wanted)} ({told}); "
        "one of the two is of another model"
    )


def product(shape: Iterable[int]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def flat(convolution_DCHW: Tensor) -> Tensor:
    """The matrix that a convolution over patches is."""
    return convolution_DCHW.flatten(1).contiguous()


def placed(tokens_TD: Tensor, positions_PD: Tensor, grid: tuple[int, int]) -> dict[str, Tensor]:
    """Tokens that belong to no patch with their positions, where they have some, and the positions of patches."""
    before = len(positions_PD) - grid[0] * grid[1]
    assert before in (0, len(tokens_TD))
    found = {PLACES: positions_PD[before:].reshape(*grid, -1).clone()}
    if len(tokens_TD):
        found[TOKENS] = tokens_TD + positions_PD[:before] if before else tokens_TD.clone()
    return found


def without_biases(weights: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Zeros for queries, keys and values that have no bias there."""
    found = {}
    for layer in range(layers):
        for part in ("query", "key", "value"):
            module = f"{BLOCK.format(layer)}.attention.{part}"
            if f"{module}.bias" not in weights:
                found[f"{module}.bias"] = torch.zeros(len(weights[f"{module}.weight"]))
    return found


def class_names(told: Any, count: int | None, where: str) -> tuple[str, ...]:
    """Names in the order of the classifier, from a list or a table {number: name}. Without any: the numbers.

    `count` is how many the classifier has. Two classes of one name (ImageNet has two cranes) get their numbers.
    """
    if not told:
        return tuple(map(str, range(NO_NAMES if count is None else count)))
    names: list[str] | None = None
    if isinstance(told, dict) and {str(key) for key in told} == set(map(str, range(len(told)))):
        by_number = {str(key): str(name) for key, name in told.items()}
        names = [by_number[str(number)] for number in range(len(told))]
    elif isinstance(told, list):
        names = list(map(str, told))
    if names is None:
        raise BadInput(f"{where}: not a name for each class from 0 on")
    if count is not None and len(names) != count:
        raise BadInput(
            f"{where}: {len(names)} names, but the classifier has {count} classes; they do not belong together"
        )
    counted = Counter(names)
    return tuple(f"{name} ({number})" if counted[name] > 1 else name for number, name in enumerate(names))


def three(value: Any, where: str) -> tuple[float, float, float]:
    """What is taken off or divided by, for each channel: one number or three are given."""
    listed = list(value) if isinstance(value, list | tuple) else [value]
    numbers = [one for one in listed if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(numbers) != len(listed) or len(listed) not in (1, 3):
        raise BadInput(f"{where} is {shortly(value)}; it must be a number for each channel")
    try:
        first, second, third = map(float, (numbers * 3)[:3])
    except OverflowError:
        raise BadInput(f"{where} is too large a number") from None
    return first, second, third


def sides(value: Any, where: str) -> tuple[int, int]:
    """Height and width: two numbers, or one for a square."""
    both = [value, value] if type(value) is int else value
    if not isinstance(both, list | tuple) or len(both) != 2 or any(type(side) is not int or side < 1 for side in both):
        raise BadInput(f"{where} is {shortly(value)}; it must be a number of pixels, or height and width")
    return both[0], both[1]


def made_section(values: Mapping[str, Any], keys: Mapping[str, str], where: str) -> VitSection:
    """The section, or what is wrong with it by the names that things have there (`keys`: ours → theirs)."""
    try:
        section = VitSection(**values)
        section.must_be_cut()
        return section
    except ValidationError as error:
        first = error.errors()[0]
        ours = str(first["loc"][0]) if first["loc"] else ""
        key = f"{keys.get(ours, ours)}: " if ours else ""
        raise BadInput(f"{where}: {key}{first['msg'].removeprefix('Value error, ')}") from None
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None
