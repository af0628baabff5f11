"""What the weights of a Vision Transformer show by themselves, without any image (Dosovitskiy et al. 2021, figure 7).

filters     the rows of the patch embedding E, each as large as a patch: their principal components. Trained ones
            look like a basis for the fine structure of a patch, as the first filters of a CNN do.
positions   cos(P_i, P_j) of any two places. Trained ones know rows and columns, though nobody told them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.inspect.attention import Weights
from jumok.inspect.healthy import require_numbers
from jumok.layers.embedding import Patches
from jumok.layers.position import Grid
from jumok.models.vit import Looker

COMPONENTS = 28  # as many as the paper shows


@dataclass(frozen=True, eq=False)
class Filters:
    """Small pictures that a layer looks for: (K, C, h, w)."""

    pictures: NDArray[np.float32]
    name: str
    shares: tuple[float, ...] = ()  # of principal components: how much of the variance each explains

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "shares": list(self.shares), "filters": self.pictures.round(6).tolist()}


def embedding_filters(model: Looker) -> Tensor:
    """(D, C, h, w): what each channel looks for in a patch; of a convolutional stem, its first layer."""
    stem = model.reader.stem
    if isinstance(stem, Patches):
        return stem.map.weight.detach().float().cpu().reshape(-1, model.section.channels, *stem.patch)
    return first_filters(stem)


def first_filters(network: nn.Module | Tensor) -> Tensor:
    """(N, C, h, w) of the first convolution of a network, or as they are given."""
    if isinstance(network, Tensor):
        found = network
    else:
        layer = next((module for module in network.modules() if isinstance(module, nn.Conv2d)), None)
        if layer is None:
            raise BadInput(f"{type(network).__name__} has no convolution (nn.Conv2d) whose filters could be shown")
        found = layer.weight
    if found.dim() != 4 or found.size(1) not in (1, 3) or not found.numel():
        raise BadInput(f"filters are (N, C, h, w) with 1 or 3 channels, as images have; not {tuple(found.shape)}")
    return found.detach().float().cpu()


def principal_filters(model: Looker, components: int = COMPONENTS) -> Filters:
    """The principal components of the embedding's filters, the strongest first."""
    require_numbers(model)
    filters = embedding_filters(model)
    what = "patch embedding" if isinstance(model.reader.stem, Patches) else "first convolution of the stem"
    return principal(filters, components, what)


def principal(filters_NCHW: Tensor, components: int, name: str) -> Filters:
    """Of N filters as N points with C·h·w coordinates. A component and its opposite are the same: the largest number
    of each is made positive."""
    if components < 1:
        raise BadInput(f"{components} components: ask for one at least")
    rows_NP = filters_NCHW.flatten(1).double()
    _, sizes_K, basis_KP = torch.linalg.svd(rows_NP - rows_NP.mean(dim=0), full_matrices=False)
    variance_K = sizes_K.square()
    rank = int((variance_K > variance_K.sum() * 1e-12).sum())
    if not rank:
        raise BadInput(f"{name}: all filters are the same, so there are no components to show")
    kept = min(components, rank)
    basis_KP = basis_KP[:kept]
    signs_K = basis_KP.gather(1, basis_KP.abs().argmax(dim=1, keepdim=True)).sign()
    pictures = (basis_KP * signs_K).reshape(kept, *filters_NCHW.shape[1:]).float().numpy()
    return Filters(pictures, name, tuple((variance_K / variance_K.sum())[:kept].tolist()))


def network_filters(network: nn.Module | Tensor, most: int = COMPONENTS, name: str = "CNN") -> Filters:
    """The first filters of a CNN as they are, those with the largest weights first."""
    filters = first_filters(network)
    order = filters.flatten(1).norm(dim=1).argsort(descending=True, stable=True)[:most]
    return Filters(filters[order].numpy(), name)


def position_similarity(model: Looker, grid: tuple[int, int] | None = None) -> Weights:
    """(h, w, h, w): the cosine of each place's position with all others."""
    positions = model.reader.positions
    if positions is None:
        raise BadInput("this model has no positions (model.position: none): its patches are a set, and none to compare")
    require_numbers(model)
    with torch.no_grad():
        table_HWD = positions(grid or model.section.grid).detach().float().cpu()
    rows, columns, _ = table_HWD.shape
    unit_ND = F.normalize(table_HWD.flatten(0, 1).double(), dim=-1)
    found: Weights = (unit_ND @ unit_ND.T).float().reshape(rows, columns, rows, columns).numpy()
    return found


def position_kind(model: Looker) -> str:
    return "learned" if isinstance(model.reader.positions, Grid) else "sinusoidal"
