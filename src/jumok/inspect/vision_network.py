"""A small CNN whose first filters stand beside those of a Vision Transformer: it learns the same images, for a minute.

    y = W mean_places(relu(conv_2(maxpool(relu(conv_1(x)))))) + b        conv_1: N filters, as large as a patch

A Vision Transformer's first layer cuts images into patches that do not overlap; a CNN slides its filters over them.
Whether both come to look for the same things (Dosovitskiy et al. 2021, figure 7, left) is seen side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.inspect.vision_weights import COMPONENTS, Filters, embedding_filters, network_filters
from jumok.models.vit import Looker

LEAST, LARGEST = 3, 11  # pixels of a filter: smaller ones show nothing, larger ones no CNN has
INNER = 64  # filters of the second layer
UPDATES, BATCH, LEARNING_RATE, DECAY = 1500, 64, 0.004, 0.05
START = 0.1  # of a filter's usual size
KEPT_BACK = 0.1  # of the images, for saying how well it has learned
SEED = 0


class Labelled(NamedTuple):
    """Images as the model sees them, (N, C, H, W) of uint8, and the number of each one's class."""

    images: Tensor
    labels: Tensor


class SmallNetwork(nn.Module):
    def __init__(self, channels: int, size: int, labels: int) -> None:
        super().__init__()
        # a filter is moved by a third of its size at most, as AlexNet's of 11 by 4
        self.first = nn.Conv2d(channels, COMPONENTS, size, stride=max(1, size // 3), padding=size // 2)
        with torch.no_grad():
            self.first.weight *= START  # so that what is seen in the end was learned
        self.second = nn.Conv2d(COMPONENTS, INNER, 3, padding=1)
        self.scores = nn.Linear(INNER, labels)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        x = F.max_pool2d(torch.relu(self.first(images_BCHW)), 3, stride=2, padding=1)
        scores: Tensor = self.scores(torch.relu(self.second(x)).mean(dim=(2, 3)))
        return scores


def filter_size(model: Looker) -> int:
    """An odd number of pixels, about as large as what the model's own filters see."""
    return min(LARGEST, max(LEAST, min(embedding_filters(model).shape[2:]) // 2 * 2 + 1))


def learned_filters(model: Looker, given: Labelled, updates: int = UPDATES) -> Filters:
    """The first filters of a small CNN that has learned these images, with how it did in their name."""
    classes = int(given.labels.max()) + 1 if len(given.labels) else 0
    if classes < 2:
        raise BadInput(
            "--images: a CNN learns to tell classes apart, and these images have "
            f"{'only one' if classes else 'none'}. Give a folder with a folder for each class, or leave it out"
        )
    device = next(model.parameters()).device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        network = SmallNetwork(model.section.channels, filter_size(model), classes).to(device)
        order = torch.randperm(len(given.images))
    held = max(1, round(KEPT_BACK * len(order)))
    right = _learn(model, network, given, order[held:], order[:held], updates)
    share = f"{100 * right:.0f} % of {held:,} others right"
    return network_filters(network.first, name=f"a small CNN after {updates:,} updates ({share})")


def _learn(model: Looker, network: SmallNetwork, given: Labelled, rows: Tensor, held: Tensor, updates: int) -> float:
    """Which share of the images kept back it has right in the end."""
    device, draws = next(network.parameters()).device, torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, max(2, updates))

    def scores(chosen: Tensor) -> Tensor:
        found: Tensor = network(model.reader.normalised(given.images[chosen].to(device)))
        return found

    with torch.enable_grad():
        for _ in range(updates):
            chosen = rows[torch.randint(len(rows), (BATCH,), generator=draws)]
            loss = F.cross_entropy(scores(chosen), given.labels[chosen].to(device))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        found = torch.cat([scores(part).argmax(dim=1).cpu() for part in torch.split(held, BATCH)])
    return float((found == given.labels[held]).float().mean())
