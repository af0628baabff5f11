"""Augmentation on a GPU: recorded as a CUDA graph it is what it is without, and it waits for nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from jumok.data.images.augment import Augment
from jumok.data.images.mixing import Mix
from jumok.recipe.vision import Augmentation

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")

ALL: dict[str, Any] = {"flip": True, "colour": 0.3, "rand_augment": 2, "erase": 0.5, "mixup": 0.8, "cutmix": 1.0}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "crop", [{"crop": 4}, {"resized_crop": 0.2}, {"crop": 4, "beyond": "mirror", "spread": 5.0}], ids=str
)
def test_recorded(crop: dict[str, Any], exact: bool) -> None:
    section = Augmentation(**ALL, **crop)
    augment, mix = Augment(section).cuda(), Mix(section).cuda()
    images = torch.randint(0, 256, (256, 3, 32, 32), dtype=torch.uint8, device="cuda")
    labels = torch.arange(256, device="cuda")
    torch.use_deterministic_algorithms(exact)
    try:
        torch.cuda.set_sync_debug_mode("error")
        for _ in range(2):
            mix(augment(images), labels)
        torch.cuda.set_sync_debug_mode("default")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                mix(augment(images), labels)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            recorded = mix(augment(images), labels)
        for seed in (11, 12):
            torch.cuda.manual_seed(seed)
            graph.replay()
            made = [tensor.clone() for tensor in recorded]
            torch.cuda.manual_seed(seed)
            plain = mix(augment(images), labels)
            assert all(torch.equal(one, two) for one, two in zip(made, plain, strict=True))
        graph.replay()
        assert not torch.equal(recorded.images, made[0]), "new draws each time"
    finally:
        torch.cuda.set_sync_debug_mode("default")
        torch.use_deterministic_algorithms(False)
