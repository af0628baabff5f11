"""Make the small trained run that the package carries: English→French on the embedded grammar.

    python scripts/make_pretrained.py [--updates 4000]

Trains from scratch (about ten minutes on one core), keeps what translating needs (weights in half precision,
tokenizers, recipe), scores the result on 1,000 held-out sentences, and puts it into src/jumok/pretrained/en-fr.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from jumok import api
from jumok import recipe as recipes
from jumok.data import grammar
from jumok.demo import attention_error
from jumok.files import sha256
from jumok.tasks.metrics import corpus_scores
from jumok.training import checkpoint
from jumok.training.run import RunFolder

HOME = Path(__file__).resolve().parents[1] / "src" / "jumok" / "pretrained" / "en-fr"
LIMIT = 3_000_000
KEYS = [
    "data.train.pairs=200000", "model.embedding=96", "model.width=192", "model.tie_embeddings=true",
    "training.validate_every=1000", "training.checkpoint_every=1000", "device=cpu", "threads=1",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=4000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        api.train(recipes.read("demo", [*KEYS, f"training.updates={options.updates}"]), run, report=False)
        pack(RunFolder.open(run))
    size = sum(path.stat().st_size for path in HOME.rglob("*") if path.is_file())
    print(f"{HOME}: {size:,} bytes (limit {LIMIT:,})")
    assert size <= LIMIT
    model = api.load()
    pairs = list(grammar.pairs("en", "fr", "test", 1000))
    outputs = model.translate([pair.source for pair in pairs])
    for score in corpus_scores(outputs, [pair.target for pair in pairs]):
        print(score)
    print(attention_error(model, pairs))


def pack(run: RunFolder) -> None:
    """The best checkpoint without its optimiser, weights in float16 (they are widened again when loaded)."""
    best = checkpoint.newest_good(run, print, prefer="best")
    assert best is not None
    shutil.rmtree(HOME, ignore_errors=True)
    target = RunFolder.create(HOME, run.recipe())
    shutil.copytree(run.tokenizer, target.tokenizer)
    folder = target.checkpoints / best.name
    folder.mkdir()
    weights = {name: tensor.to(torch.float16) for name, tensor in load_file(best / checkpoint.MODEL).items()}
    save_file(weights, folder / checkpoint.MODEL)
    shutil.copy(best / checkpoint.STATE, folder)
    sums = {name: sha256(folder / name) for name in (checkpoint.MODEL, checkpoint.STATE)}
    (folder / checkpoint.CHECKSUMS).write_text(json.dumps(sums) + "\n")
    step = int(best.name.removeprefix("step-"))
    target.point("best", step)
    target.point("last", step)


if __name__ == "__main__":
    main()
