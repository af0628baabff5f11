"""Weights, gradients and optimiser split over the processes (FSDP2): for models that one GPU cannot train.

Each process keeps 1/world of every tensor. A block's weights are gathered just before it computes and let go after it;
its gradients are added up and scattered on the way back. What is split, and when, is PyTorch's `fully_shard`; here is
which parts, and the way from whole tensors to shards and back: a checkpoint always holds whole tensors, so it does not
know how many processes wrote it.

The model is built whole in each process's main memory, and validated whole by the first process: its weights alone must
fit on a GPU, what training needs besides (gradients, AdamW's two averages, activations) need not.

PyTorch's modules for this take half a second to import, so only who shards waits for them.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from jumok.layers.block import Block
from jumok.tasks.objective import Loss, Objective


class Values(nn.Module):
    """An objective that gives plain tensors: the hooks of `fully_shard` do not look into a Loss."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.objective = objective

    def forward(self, batch: Any) -> dict[str, Tensor]:
        loss: Loss = self.objective(batch)
        return {"": loss.sum, **loss.parts}


class Sharded(Objective):
    """An objective whose weights are split over `world` processes; the one it is made from stays as it is."""

    def __init__(self, objective: Objective, device: torch.device, world: int) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

        super().__init__()
        self.values = Values(copy.deepcopy(objective))
        self.model = self.values.objective.model
        mesh = init_device_mesh(device.type, (world,))
        # nobody writes over what a block returns, which is what it warns of: residual connections add out of place
        warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor", UserWarning)
        for module in [module for module in self.values.modules() if isinstance(module, Block)]:
            if module.cross is not None:
                # a decoder block's view of the source is computed before the block is
                fully_shard(module.cross, mesh=mesh)
                register_fsdp_forward_method(module.cross, "project")
            fully_shard(module, mesh=mesh)
        fully_shard(self.values, mesh=mesh)
        for part in self.values.modules():
            if isinstance(part, FSDPModule):  # a sum: the loss is divided by the count of all processes already
                part.set_gradient_divide_factor(1.0)
                part.set_force_sum_reduction_for_comms(True)

    def forward(self, batch: Any) -> Loss:
        parts = self.values(batch)
        return Loss(parts.pop(""), batch.tokens, parts)


def is_split(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, at all processes, which must ask for it together."""
    return tensor.full_tensor() if is_split(tensor) else tensor  # type: ignore[attr-defined]


def like(kept: Tensor, value: Tensor) -> Tensor:
    """A whole tensor, split as another one is. Nothing is sent: every process takes its part."""
    if not is_split(kept):
        return value
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(kept, DTensor)
    return distribute_tensor(value.to(kept.device), kept.device_mesh, kept.placements, src_data_rank=None)


@torch.no_grad()
def make_whole(model: nn.Module, shards: Iterable[tuple[str, Tensor]], is_wanted: bool) -> None:
    """Put whole tensors into a model that is not split, where they are wanted; all processes must take part."""
    own = dict(model.named_parameters())
    for name, shard in shards:
        tensor = whole(shard)
        if is_wanted:
            own[name].copy_(tensor)


@contextmanager
def on_device(module: nn.Module, device: torch.device) -> Iterator[None]:
    """A module that lies in main memory, elsewhere for a while."""
    module.to(device)
    try:
        yield
    finally:
        module.to("cpu")
