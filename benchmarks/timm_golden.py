"""Tiny Vision Transformers of timm with random weights, and what they compute: files that tests/interop reads.

    python benchmarks/timm_golden.py tests/interop/golden

It runs where timm is installed (on a CPU, in seconds) and needs nothing of jumok. Each file is a model by itself: its
weights and config.json as timm saves them for its repositories, two images of its own size and two of another one, and
the scores and hidden states (forward_features) of both. All together they are less than 500 KB.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import timm
import torch
from safetensors.torch import load_file, save_file
from timm.models import save_for_hf
from torch import Tensor

ARCHITECTURE = "vit_tiny_patch16_224"  # whose sizes are all replaced
SIZES = {
    "img_size": [16, 16], "patch_size": 4, "embed_dim": 32, "depth": 2, "num_heads": 4, "mlp_ratio": 0.75,
    "num_classes": 5,
}  # fmt: skip
# beside the sizes, the arguments of timm's VisionTransformer; and the other size of images
CASES: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "class_token": ({}, (24, 8)),
    "mean": ({"class_token": False, "global_pool": "avg"}, (20, 28)),
    "registers": ({"reg_tokens": 3}, (8, 24)),
    "registers_without_positions": ({"reg_tokens": 4, "no_embed_class": True}, (24, 8)),
    "factors_without_bias": ({"init_values": 0.1, "qkv_bias": False, "no_embed_class": True}, (32, 12)),
    "rectangle": (
        {"img_size": [12, 30], "patch_size": [4, 6], "in_chans": 1, "global_pool": "avg", "fc_norm": False,
         "reg_tokens": 1},
        (20, 18),
    ),
}  # fmt: skip
LARGEST = 500_000  # bytes of all files


def made(number: int, arguments: dict[str, Any], other: tuple[int, int]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, and what is written beside them."""
    torch.manual_seed(number)
    model = timm.create_model(ARCHITECTURE, pretrained=False, dynamic_img_size=True, **arguments).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # norms, biases and tokens are not ones and zeros
            parameter.add_(0.2 * torch.randn_like(parameter))
    with tempfile.TemporaryDirectory() as folder:
        save_for_hf(model, folder, model_args=arguments, safe_serialization=True)
        tensors = {f"weights.{name}": one for name, one in load_file(Path(folder) / "model.safetensors").items()}
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    fixed = timm.create_model(ARCHITECTURE, pretrained=False, **arguments).eval()
    fixed.load_state_dict(model.state_dict())
    channels = arguments.get("in_chans", 3)
    mean, deviation = (torch.tensor(config["pretrained_cfg"][key][:channels]) for key in ("mean", "std"))
    for name, (height, width) in (("own", arguments["img_size"]), ("other", other)):
        images = torch.randint(256, (2, channels, height, width), dtype=torch.uint8)
        pixels = (images / 255 - mean[:, None, None]) / deviation[:, None, None]
        with torch.no_grad():
            scores, features = model(pixels), model.forward_features(pixels)
            if name == "own":
                torch.testing.assert_close(fixed(pixels), scores, atol=1e-6, rtol=1e-6)
        tensors |= {f"{name}.images": images, f"{name}.scores": scores, f"{name}.features": features}
    metadata = {
        "arguments": json.dumps(arguments), "config": json.dumps(config), "timm": timm.__version__,
        "torch": torch.__version__, "seed": str(number),
    }  # fmt: skip
    return {name: one.contiguous() for name, one in tensors.items()}, metadata


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    sizes = []
    for number, (name, (arguments, other)) in enumerate(CASES.items(), start=1):
        tensors, metadata = made(number, {**SIZES, **arguments}, other)
        file = folder / f"{name}.safetensors"
        save_file(tensors, file, metadata)
        sizes.append(file.stat().st_size)
        print(f"{file}: {sizes[-1]:,} bytes; scores {tensors['own.scores'][0].tolist()}")
    print(f"{len(sizes)} files, {sum(sizes):,} bytes, timm {timm.__version__}, torch {torch.__version__}")
    assert sum(sizes) < LARGEST, f"{sum(sizes):,} bytes are too many"


if __name__ == "__main__":
    main()
