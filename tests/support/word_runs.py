"""Runs that have begun to learn to read words in pictures: of any architecture, in a second or two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from small_fonts import FONTS, PLAIN

from jumok import api
from jumok import recipe as recipes
from jumok.recipe import Recipe

TINY: dict[str, Any] = {
    "kind": "recognizer", "channels": 1, "image": [32, 48], "encoder": "vit", "decoder": "permuted", "patch": [16, 4],
    "width": 32, "heads": 2, "layers": 2, "feed_forward": 48, "decoder_heads": 2, "max_length": 3, "permutations": 3,
    "ctc": 0.5,
}  # fmt: skip
RENDER: dict[str, Any] = {
    "fonts": [str(FONTS / "DejaVuSans.ttf"), str(FONTS / "DejaVuSerif.ttf")], "size": 16, "held_out_fonts": 0.5,
    "texts": {"words": 0, "letters": 1, "numbers": 0}, **PLAIN,
}  # fmt: skip


def words_recipe(render: dict[str, Any] | None = None, **model: Any) -> Recipe:
    training = {
        "batch_images": 8, "updates": 2, "warmup": 1, "validate_every": 2, "checkpoint_every": 1, "keep": 3,
        "metric": "accuracy",
    }  # fmt: skip
    data = {
        "train": {"rendered": "words", "pairs": 100},
        "valid": {"rendered": "words", "pairs": 6},
        "resize": "squash",
    }
    raw = {
        "task": "recognition", "threads": 1, "device": "cpu", "charset": {"sets": ["digits"]},
        "render": {**RENDER, **(render or {})}, "data": data, "model": {**TINY, **model}, "training": training,
    }  # fmt: skip
    return recipes.check(raw, "test")


def train_words(run: Path, **model: Any) -> Path:
    api.train(words_recipe(**model), run, quiet=True, report=False)
    return run
