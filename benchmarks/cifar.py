"""Images from scratch: CIFAR-10 with an honest ViT (patches that do not overlap) and a CCT, Fashion-MNIST with a CCT.

    python benchmarks/cifar.py vit|cct|fashion [--minutes 8] [--choose] [--out FILE] [KEY=VALUE …]

No outside data, a single crop, no augmentation when tested. Settings were chosen with `--choose`: 2,500 of the training
images are kept back and scored; the test set is scored once, by the last checkpoint of a run that kept back 100, on
which nothing depends. Then it is measured how far its heads look, beside what a CNN of the same depth can see.

The archive has CIFAR-10 as JPEG (quality 75, colours at half the size), from which every model here learns and on which
it is tested: there is less in it than in the original files, on which others report.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from gpu_turns import turn_off, without_kernels  # noqa: E402
from jumok import api  # noqa: E402
from jumok import recipe as recipes  # noqa: E402
from jumok.data.images.sources import open_images  # noqa: E402
from jumok.inspect.vision_distance import attention_distances  # noqa: E402
from jumok.tasks.label_scores import label_scores  # noqa: E402

CIFAR = ROOT.parent / "shared" / "data" / "cifar10" / "cifar10-jpeg.tar.xz"
FASHION = Path("/usr/share/datasets/fashion-mnist")
ONCE = ("validate_every", "checkpoint_every")  # in so many updates: at the end
LOOKED_AT = 512  # test images on which it is measured how far heads look
SETTINGS: dict[str, dict[str, Any]] = {
    "vit": {"recipe": "vit-cifar", "keys": []},
    "cct": {"recipe": "cct", "keys": []},
    "fashion": {
        "recipe": "cct",
        "keys": [
            "model.image=28",
            "model.channels=1",
            "model.mean=[0.286,0.286,0.286]",
            "model.deviation=[0.353,0.353,0.353]",
            "augment.rand_augment=0",
            "augment.beyond=black",
            "augment.erase=0.25",
            "augment.crop=2",
            "augment.mix=0.5",
        ],
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=SETTINGS)
    parser.add_argument("keys", nargs="*", help="other keys of the recipe: for a try")
    parser.add_argument("--data", type=Path, help="the archive, or the folder of idx files")
    parser.add_argument("--minutes", type=float, default=8.0, help="0: as many updates as the recipe says")
    parser.add_argument("--choose", action="store_true", help="keep 2,500 of the training images back and score these")
    parser.add_argument("--work", type=Path, default=Path("/tmp/cifar"))
    parser.add_argument("--out", type=Path)
    without_kernels(parser)
    chosen = parser.parse_intermixed_args()
    turn_off(chosen.without)
    settings, work = SETTINGS[chosen.which], chosen.work / chosen.which
    shutil.rmtree(work, ignore_errors=True)
    if chosen.which == "fashion":
        place = chosen.data or FASHION
        train, test = place / "train-images-idx3-ubyte.gz", place / "t10k-images-idx3-ubyte.gz"
    else:
        place = chosen.data or CIFAR
        train, test = place / "train", place / "test"
    keys = [f'data.train.images=["{train}"]', *settings["keys"], *chosen.keys]
    # what is kept back decides nothing but which settings are taken: the last checkpoint is the one that is tested
    keys += (
        ["data.hold_out=2500"] if chosen.choose else ["data.hold_out=100", *(f"training.{key}=1000000" for key in ONCE)]
    )
    began = time.perf_counter()
    model = api.train(recipes.read(settings["recipe"], keys), work, minutes=chosen.minutes or None, report=False)
    results: dict[str, Any] = {
        "options": {k: str(v) for k, v in vars(chosen).items()},
        "recipe": model.recipe.model_dump(mode="json"),
        "minutes": (time.perf_counter() - began) / 60,
        "valid": [[event["step"], event["accuracy"]] for event in model.run.events() if event["event"] == "valid"],
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
    print(f"{results['minutes']:.2f} minutes; validation {results['valid'][-1]}", flush=True)
    if not chosen.choose:
        gold, images = [], []
        for image, pixels in model.prepared(open_images([test])):
            gold.append(str(image.label))
            images.append(np.asarray(pixels))
        shown = np.ascontiguousarray(np.stack(images).transpose(0, 3, 1, 2))
        scores = label_scores(gold, model.probabilities(shown), model.labels)
        print(scores.summary(), flush=True)
        results["scores"] = scores.to_json()
        distances = attention_distances(model.model, torch.from_numpy(shown[:LOOKED_AT]).to(model.device))
        print(distances.summary(), flush=True)
        results["distances"] = distances.to_json()
    if chosen.out:
        chosen.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
