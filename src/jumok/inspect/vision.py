"""What a Vision Transformer looks at: which patches of an image, from any of them or from what stands for the image.

    attention   m = q A_lh                      head h of layer l, or the mean over its heads
    rollout     m = q R_L,   R_l = (½ A_l + ½ I) R_(l−1)        all layers followed (inspect/rollout.py)

q says who looks, a share for each token. From a patch it is 1 there. What stands for the image is what the model pools:
the class token; with mean pooling all patches alike; with sequence pooling the model's own weights of this image.
A row of m sums to 1: over the patches, and over tokens that belong to no patch (the class token, registers), whose
share is `elsewhere`. Weights are computed again from the queries and keys that the layers had (inspect/record.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from jumok.errors import BadInput, Failure
from jumok.inspect.attention import Weights
from jumok.inspect.healthy import require_numbers
from jumok.inspect.record import record
from jumok.inspect.rollout import rolled_encoder
from jumok.inspect.view import View
from jumok.models.vit import ImageLabeller, Looker

CELLS = 2**26  # weights that are kept at once: 256 MB
WHOLE = {"class": "class token", "mean": "mean of all patches", "sequence": "patches as they are pooled"}


@dataclass(frozen=True, eq=False)
class Map:
    """How much of one thing goes to each patch of an image."""

    values: Weights  # (h, w)
    name: str  # as in "head 3"
    elsewhere: float = 0.0  # to tokens of no patch
    place: int | None = None  # the patch it is seen from; None: from what stands for the image

    @property
    def uniform(self) -> float:
        """What each patch would have if all had the same."""
        return float(self.values.mean())

    def to_json(self) -> dict[str, Any]:
        values = [[round(float(value), 7) for value in row] for row in self.values]
        return {"name": self.name, "place": self.place, "elsewhere": round(self.elsewhere, 7), "values": values}


def attention_maps(
    model: Looker,
    images_BCHW: Tensor,
    layer: int | None = None,
    heads: Sequence[int | None] | None = None,
    place: int | None = None,
) -> list[list[Map]]:
    """For each image the maps of these heads of a layer (None: the mean over all). Without `heads` all of them, the
    mean first; without a layer the last; without a place from what stands for the image."""
    layer = last_layer(model) if layer is None else layer
    chosen: Sequence[int | None] = [None, *range(model.section.heads)] if heads is None else heads
    for head in chosen:
        check_view(model, layer, head)
    grid = check_place(model, images_BCHW, place)
    found: list[list[Map]] = []
    for some in torch.split(images_BCHW, room(model, images_BCHW)):
        seen = looked(model, some, [layer])
        seen_BHS = torch.einsum("bt,bhts->bhs", start_of(model, seen.pooled, place), seen.layers[0])
        every_BHS = torch.cat([seen_BHS.mean(dim=1, keepdim=True), seen_BHS], dim=1)
        for row_HS in every_BHS:
            picked = [(head, row_HS[0 if head is None else head + 1]) for head in chosen]
            found.append([_map(model, row_S, grid, head_name(head), place) for head, row_S in picked])
    return found


def rollout_maps(model: Looker, images_BCHW: Tensor, place: int | None = None) -> list[Map]:
    """For each image: what arrives from its patches, through all layers."""
    grid = check_place(model, images_BCHW, place)
    found: list[Map] = []
    for some in torch.split(images_BCHW, room(model, images_BCHW)):
        pooled_BT, means = torch.empty(0), []
        for part in every_layer(model, some):
            pooled_BT = part.pooled
            means += [weights_BHTS.mean(dim=1).numpy() for weights_BHTS in part.layers]
        for number, start_T in enumerate(start_of(model, pooled_BT, place)):
            rolled = torch.from_numpy(rolled_encoder([mean_BTT[number] for mean_BTT in means]))
            found.append(_map(model, start_T @ rolled, grid, "rollout", place))
    return found


def predictions(model: ImageLabeller, images_BCHW: Tensor) -> Weights:
    """(B, L): the probability of each label."""
    with looking(model), torch.inference_mode():
        scores_BL: Tensor = model(on_device(model, images_BCHW)).float()
        found: Weights = torch.softmax(scores_BL, dim=-1).cpu().numpy()
        return found


# ---------------------------------------------------------------- weights by layer


@dataclass(frozen=True, eq=False)
class Looked:
    """What some layers looked at, of images side by side."""

    pooled: Tensor  # (B, T) how much each token counts in what stands for the image
    layers: tuple[Tensor, ...]  # (B, H, T, S) each
    max_difference: float  # between what the layers returned and the weights applied to their values


def looked(model: Looker, images_BCHW: Tensor, layers: Sequence[int]) -> Looked:
    kept: list[Tensor] = []
    with looking(model), pooling(model, kept), torch.inference_mode(), record(model, layers=layers) as seen:
        model(on_device(model, images_BCHW))
    weights = {one.layer: one.weights for one in seen.records}
    for layer, weights_BHTS in weights.items():
        if not bool(torch.isfinite(weights_BHTS).all()):
            raise Failure(f"layer {layer}: its attention weights are not numbers. The model may have diverged")
    pooled_BT = pooled_share(model, weights[layers[0]].size(-1), len(images_BCHW), kept)
    return Looked(pooled_BT, tuple(weights[layer] for layer in layers), seen.max_difference)


def every_layer(model: Looker, images_BCHW: Tensor) -> Iterator[Looked]:
    """All layers from the first to the last, as many at once as there is room for: each part is a forward by itself."""
    every = range(model.section.layers)
    together = max(1, room(model, images_BCHW) // len(images_BCHW))
    for first in every[::together]:
        yield looked(model, images_BCHW, every[first : first + together])


def room(model: Looker, images_BCHW: Tensor, layers: int = 1) -> int:
    """How many images can be looked at together, where the weights of so many layers are kept."""
    rows, columns = model.reader.grid(images_BCHW)
    tokens = model.reader.added + rows * columns
    return max(1, CELLS // (layers * model.section.heads * tokens**2))


@contextmanager
def looking(model: Looker) -> Iterator[None]:
    """Inside the block the model does not learn: no dropout, all layers."""
    require_numbers(model)
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def on_device(model: Looker, images_BCHW: Tensor) -> Tensor:
    return images_BCHW.to(next(model.parameters()).device)


# ---------------------------------------------------------------- who looks


@contextmanager
def pooling(model: Looker, kept: list[Tensor]) -> Iterator[None]:
    """Inside the block what sequence pooling weighs patches with is kept, (B, N)."""
    if model.weigh is None:
        yield
        return

    def after(_module: Any, _inputs: Any, output_BN1: Tensor) -> None:
        kept.append(torch.softmax(output_BN1.detach().float(), dim=1)[..., 0].cpu())

    handle = model.weigh.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


def pooled_share(model: Looker, tokens: int, images: int, kept: Sequence[Tensor]) -> Tensor:
    """(B, T): how much each token counts in what stands for the image."""
    start_BT = torch.zeros(images, tokens)
    added = model.reader.added
    if model.section.pooling == "class":
        start_BT[:, 0] = 1.0
    else:
        start_BT[:, added:] = kept[-1] if kept else 1 / (tokens - added)
    return start_BT


def start_of(model: Looker, pooled_BT: Tensor, place: int | None) -> Tensor:
    """q: who looks, (B, T)."""
    if place is None:
        return pooled_BT
    start_BT = torch.zeros_like(pooled_BT)
    start_BT[:, model.reader.added + place] = 1.0
    return start_BT


def from_name(model: Looker, place: int | None, grid: tuple[int, int]) -> str:
    """In words, as in "patch 12 (row 1, column 4)"."""
    if place is None:
        return WHOLE[model.section.pooling]
    return f"patch {place} (row {place // grid[1]}, column {place % grid[1]})"


def head_name(head: int | None) -> str:
    return "mean of heads" if head is None else f"head {head}"


def _map(model: Looker, row_S: Tensor, grid: tuple[int, int], name: str, place: int | None) -> Map:
    added = model.reader.added
    return Map(row_S[added:].reshape(grid).numpy().copy(), name, float(row_S[:added].sum()), place)


# ---------------------------------------------------------------- what there is


def last_layer(model: Looker) -> int:
    return model.section.layers - 1


def check_view(model: Looker, layer: int | None, head: int | None) -> None:
    View(layer, head, "self").tap(model)


def check_place(model: Looker, images_BCHW: Tensor, place: int | None) -> tuple[int, int]:
    """The grid of patches; a patch that is not in it is refused."""
    if images_BCHW.dim() != 4 or not len(images_BCHW):
        raise BadInput(f"images are (B, C, H, W) and one at least, not {tuple(images_BCHW.shape)}")
    grid = model.reader.grid(images_BCHW)
    if place is not None and not 0 <= place < grid[0] * grid[1]:
        raise BadInput(f"patch {place}: {_patches(grid)}")
    return grid


def read_place(text: str, grid: tuple[int, int]) -> int | None:
    """A patch as it is typed: its number by rows from 0, or "row,column"; "class" is what stands for the image."""
    if text.strip().lower() == "class":
        return None
    found = re.fullmatch(r"\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?", text)
    if found is None:
        raise BadInput(f'"{text}" is no patch: {_patches(grid)}, or row,column as in 0,{grid[1] - 1}; or write class')
    if found[2] is None:
        place, inside = int(found[1]), int(found[1]) < grid[0] * grid[1]
    else:
        row, column = int(found[1]), int(found[2])
        place, inside = row * grid[1] + column, row < grid[0] and column < grid[1]
    if not inside:
        raise BadInput(f"patch {text.strip()}: {_patches(grid)}")
    return place


def _patches(grid: tuple[int, int]) -> str:
    rows, columns = grid
    return f"there are {rows} rows of {columns} patches, counted by rows from 0 to {rows * columns - 1}"
