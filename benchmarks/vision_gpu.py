"""Training speed of a Vision Transformer on one GPU: jumok beside timm's in a plain compiled loop, in turns.

    python benchmarks/vision_gpu.py [--size small|base] [--engines "jumok compiled" "timm compiled" …] [--out results]

small: 32×32 images, patches of 4, 384 wide, 12 layers, batches of 1,024. base: ViT-B/16 at 224×224, batches of 256.
cct: as the recipe of that name, which timm has no model for (`--engines "jumok compiled"`).
bfloat16, AdamW, clipping, the class token. The augmentation is the same in both: ours (crop, flip, RandAugment), run on
the GPU within the step. jumok trains through its store, plan, `Step`, graphs and optimiser, from images that lie in a
memory map; timm gets batches that are on the GPU already. Figures: images a second, the median of the rounds.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from gpu_turns import Trains, in_turns, kernels_of, memory, synchronize, table, turn_off, without_kernels, write  # noqa: E402
from jumok.data.images.augment import Augment  # noqa: E402
from jumok.data.images.order import Order  # noqa: E402
from jumok.data.images.sources import RawImage  # noqa: E402
from jumok.data.images.store import open_store  # noqa: E402
from jumok.data.plan import LayoutPlan  # noqa: E402
from jumok.models.vit import ImageLabeller  # noqa: E402
from jumok.recipe import Augmentation, Training, VitSection  # noqa: E402
from jumok.tasks.vision import VisionObjective  # noqa: E402
from jumok.training.ahead import Ahead  # noqa: E402
from jumok.training.flops import flops_of  # noqa: E402
from jumok.training.optimizer import build_optimizer  # noqa: E402
from jumok.training.peak import matmul_peak  # noqa: E402
from jumok.training.precision import Precision  # noqa: E402
from jumok.training.step import Step  # noqa: E402

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"image": 16, "patch": 4, "width": 64, "heads": 2, "layers": 2, "feed_forward": 128, "batch": 16,
             "images": 64},
    "small": {"image": 32, "patch": 4, "width": 384, "heads": 6, "layers": 12, "feed_forward": 1536, "batch": 1024,
              "images": 20_000},
    "base": {"image": 224, "patch": 16, "width": 768, "heads": 12, "layers": 12, "feed_forward": 3072, "batch": 256,
             "images": 2_000},
    "cct": {"image": 32, "stem": "convolution", "pooling": "sequence", "width": 256, "heads": 4, "layers": 7,
            "feed_forward": 512, "batch": 1024, "images": 20_000},
}  # fmt: skip
AUGMENTATION = Augmentation(crop=4, flip=True, rand_augment=2, magnitude=9)
CLASSES = {"tiny": 10, "small": 10, "base": 1000, "cct": 10}


class Noise:
    """Images to read: what is on them does not matter here."""

    def __init__(self, count: int, side: int, classes: int) -> None:
        self.count, self.side, self.classes = count, side, classes
        self.key = f"noise {count} {side} {classes}"

    def __iter__(self) -> Any:
        generator = np.random.default_rng(1)
        for number in range(self.count):
            pixels = generator.integers(0, 256, (self.side, self.side, 3), dtype=np.uint8)
            yield RawImage(f"noise {number}", str(number % self.classes), pixels)


class Ours(Trains):
    def __init__(self, size: str, device: torch.device, name: str, cache: Path) -> None:
        about, classes = dict(SIZES[size]), CLASSES[size]
        batch, images = about.pop("batch"), about.pop("images")
        section, fast = VitSection(**about), name != "jumok eager"
        training = Training(
            batch_images=batch, compile=name == "jumok compiled", graphs="auto" if fast else False, clip=1.0
        )
        store = open_store(Noise(images, about["image"], classes), section.image, 3, "crop", print, cache)
        self.store, self.labels = store, store.labels.astype(np.int64)
        self.plan = LayoutPlan([Order(np.arange(len(store)), batch)], [1], 1)
        torch.manual_seed(0)
        self.objective = VisionObjective(ImageLabeller(section, classes), AUGMENTATION, None, 0.1).to(device)
        optimizer, precision = build_optimizer(self.objective, training), Precision(torch.bfloat16, device)
        self.step = Step(self.objective, optimizer, training, 1, precision, lambda text: print(f"  {name}: {text}"))
        self.ahead = Ahead(self._batches, thread=device.type == "cuda")
        self.flops = flops_of(self.objective)

    def _batches(self, update: int) -> list[Any]:
        return [self.store.batch(micro.indices, self.labels) for micro in self.plan.at(update)]


class Peer:
    """timm's VisionTransformer with the same sizes, in the loop that its users write."""

    def __init__(self, size: str, device: torch.device, name: str, cache: Path) -> None:
        from timm.models.vision_transformer import VisionTransformer

        about, classes = SIZES[size], CLASSES[size]
        torch.manual_seed(0)
        self.model = VisionTransformer(
            img_size=about["image"], patch_size=about["patch"], num_classes=classes, embed_dim=about["width"],
            depth=about["layers"], num_heads=about["heads"], mlp_ratio=about["feed_forward"] / about["width"],
        ).to(device).train()  # fmt: skip
        self.augment = Augment(AUGMENTATION).to(device).train()
        compiled = "compiled" in name
        self.compute = torch.compile(self.model) if compiled else self.model
        self.vary = torch.compile(self.augment) if compiled else self.augment
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=device.type == "cuda")
        self.device, self.update, self.batches = device, 0, []
        for _ in range(4):
            shape = (about["batch"], 3, about["image"], about["image"])
            images = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
            self.batches.append((images, torch.randint(0, classes, (about["batch"],), device=device)))

    def __call__(self, updates: int) -> tuple[int, int]:
        count = 0
        for _ in range(updates):
            images, labels = self.batches[self.update % len(self.batches)]
            self.optimizer.zero_grad(set_to_none=True)
            pictures = (self.vary(images).float() - 127.5) / 127.5
            with torch.autocast(self.device.type, torch.bfloat16):
                scores = self.compute(pictures)
            loss = F.cross_entropy(scores.float(), labels, label_smoothing=0.1)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            count += len(labels)
            self.update += 1
        return count, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--engines", nargs="*", default=["jumok compiled", "timm compiled"])
    parser.add_argument("--updates", type=int, default=20, help="of a round")
    parser.add_argument("--warm", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="the kernels of a step of the first engine")
    parser.add_argument("--out", type=Path)
    without_kernels(parser)
    chosen = parser.parse_args()
    turn_off(chosen.without)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    peak = matmul_peak(device, torch.bfloat16)
    where = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    lines = [f"{where}, torch {torch.__version__}; {chosen.size}; a bfloat16 product: {(peak or 0) / 1e12:.0f} TFLOP/s"]
    with tempfile.TemporaryDirectory() as cache:
        engines: dict[str, Ours | Peer] = {}
        rows: dict[str, dict[str, Any]] = {}
        for name in chosen.engines:
            gc.collect()
            before, _ = memory(device)
            began = time.perf_counter()
            engine = engines[name] = (Ours if name.startswith("jumok") else Peer)(
                chosen.size, device, name, Path(cache)
            )
            engine(chosen.warm)
            synchronize(device)
            rows[name] = {
                "peak_gib": (memory(device)[1] - before) / 2**30,
                "start_seconds": time.perf_counter() - began,
            }
            print(f"{name}: ready after {rows[name]['start_seconds']:.0f} s", flush=True)
        if chosen.profile:
            print("\n".join(kernels_of(engines[chosen.engines[0]], 5, device)))
        in_turns(engines, rows, chosen.rounds, chosen.updates, device, "images")
    write(chosen.out, [*lines, "", *table(rows, "timm compiled", "images", peak)], chosen, peak, rows)


if __name__ == "__main__":
    main()
