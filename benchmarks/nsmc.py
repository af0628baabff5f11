"""Korean film reviews (NSMC): a BERT pretrained on the training reviews' own text, beside the same network without.

    python benchmarks/nsmc.py [--model modern] [--pretrain 6] [--out FILE] [KEY=VALUE for the network …]

The reviews' text is all that is pretrained on; no test review is seen before the end. `--pretrain` are the minutes for
it. Both classifiers have the same recipe (`FINE`), but that a network which begins at random has no layer_decay. The
checkpoint is chosen on 3,000 reviews kept back from training, and the test set (49,997 reviews; three have no text) is
scored once. The files in results/ were made with --pretrain 3.5 --updates 3500, side by side with other work.
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
sys.path[:0] = [str(ROOT / "src")]

from jumok import api  # noqa: E402
from jumok import recipe as recipes  # noqa: E402
from jumok.data.labelled import read_examples  # noqa: E402
from jumok.tasks.label_scores import label_scores  # noqa: E402

DATA = ROOT.parent / "shared" / "data" / "nsmc"
MODELS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 64, "heads": 2, "layers": 2, "feed_forward": 128},
    "classic": {"width": 512, "heads": 8, "layers": 6, "feed_forward": 2048},
    "modern": {
        "width": 512, "heads": 8, "layers": 6, "feed_forward": 1365, "norm": "pre", "norm_epsilon": 1e-5,
        "position": "rotary", "activation": "swiglu",
    },
    "wide": {
        "width": 768, "heads": 12, "layers": 8, "feed_forward": 2048, "norm": "pre", "norm_epsilon": 1e-5,
        "position": "rotary", "activation": "swiglu",
    },
}  # fmt: skip
FINE: dict[str, Any] = {
    "batch_tokens": 4096, "learning_rate": 2e-4, "warmup": 300, "schedule": "linear", "weight_decay": 0.01,
    "label_smoothing": 0.1, "metric": "accuracy", "layer_decay": 0.9, "r_drop": 1.0, "validate_every": 500,
    "checkpoint_every": 500, "keep": 1,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path("/tmp/nsmc"))
    parser.add_argument("--model", default="modern", choices=MODELS)
    parser.add_argument("--vocabulary", type=int, default=16_000)
    parser.add_argument("--pretrain", type=float, default=6.0, help="minutes")
    parser.add_argument("--pretrain-updates", type=int, default=0, help="instead of minutes")
    parser.add_argument("--rate", type=float, default=0.3, help="share of the words that are hidden")
    parser.add_argument("--batch", type=int, default=32_768, help="tokens of a batch of pretraining")
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="of pretraining")
    parser.add_argument("--dropout", type=float, default=0.1, help="of pretraining")
    parser.add_argument("--updates", type=int, default=4500, help="of fine-tuning")
    parser.add_argument("--only", choices=("both", "pretrained", "scratch"), default="both")
    parser.add_argument("--sample", type=int, default=0, help="so many reviews only: for a try")
    parser.add_argument("--fine", nargs="*", default=[], help="KEY=VALUE of the fine-tuning's recipe")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    work = chosen.work
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    began = time.perf_counter()
    train = [one for one in read_examples([chosen.data / "ratings_train.txt.gz"]) if one.text.strip()]
    test = [one for one in read_examples([chosen.data / "ratings_test.txt.gz"]) if one.text.strip()]
    if chosen.sample:
        train, test = train[: chosen.sample], test[: chosen.sample]
    text, labelled = work / "reviews.txt", work / "reviews.tsv"
    text.write_text("".join(one.text + "\n" for one in train), encoding="utf-8")
    labelled.write_text("text\tlabel\n" + "".join(f"{one.text}\t{one.label}\n" for one in train), encoding="utf-8")
    results: dict[str, Any] = {"options": {k: str(v) for k, v in vars(chosen).items()}, "seconds": {}}
    section = {"kind": "bert", **MODELS[chosen.model]}

    def spent(name: str) -> None:
        results["seconds"][name] = round(time.perf_counter() - began - sum(results["seconds"].values()), 1)
        if chosen.out:
            chosen.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    spent("reading")
    minutes = None if chosen.pretrain_updates else chosen.pretrain
    pretraining = {
        "task": "pretraining",
        "data": {"train": {"text": [str(text)]}, "window": 128, "documents": "lines"},
        "tokenizer": {"kind": "wordpiece", "vocabulary": chosen.vocabulary},
        "model": {**section, "dropout": chosen.dropout, "attention_dropout": 0.0},
        "masking": {"rate": chosen.rate, "whole_words": True},
        "training": {
            "batch_tokens": chosen.batch, "learning_rate": chosen.learning_rate, "warmup": 1000, "schedule": "cosine",
            "weight_decay": 0.01, "label_smoothing": 0.0, "validate_every": 2000, "checkpoint_every": 2000, "keep": 1,
            "updates": chosen.pretrain_updates or 1,
        },
    }  # fmt: skip
    if chosen.only != "scratch":
        api.train(recipes.check(pretraining, "pretraining"), work / "pretrained", minutes=minutes, report=False)
        spent("pretraining")
    for name in ("pretrained", "scratch"):
        if chosen.only not in ("both", name):
            continue
        fine: dict[str, Any] = {
            "task": "classification",
            "data": {"train": {"examples": [str(labelled)]}, "max_length": 128, "hold_out": 3000},
            "tokenizer": {"kind": "wordpiece", "vocabulary": chosen.vocabulary},
            "model": {**section, "dropout": 0.2, "attention_dropout": 0.1},
            "training": {**FINE, "updates": chosen.updates, **({} if name == "pretrained" else {"layer_decay": 1.0})},
        }
        for override in chosen.fine:
            key, _, value = override.partition("=")
            fine["training"][key] = json.loads(value)
        if name == "pretrained":
            fine["start"] = str(work / "pretrained")
        model = api.train(recipes.check(fine, name), work / f"{name}-labels", report=False)
        spent(f"fine-tuning {name}")
        probabilities = np.concatenate(
            [model.probabilities([one.text for one in test[at : at + 5000]]) for at in range(0, len(test), 5000)]
        )
        scores = label_scores([str(one.label) for one in test], probabilities, model.labels)
        results[name] = scores.to_json()
        events = [event for event in model.run.events() if event["event"] == "valid"]
        results[name]["valid"] = [[event["step"], event["accuracy"]] for event in events]
        print(f"{name}: {scores.accuracy.score:.4f} of {len(test):,} test reviews are right", flush=True)
        spent(f"testing {name}")
    results["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    results["minutes"] = round((time.perf_counter() - began) / 60, 2)
    spent("end")
    print(json.dumps({"seconds": results["seconds"], "minutes": results["minutes"]}))


if __name__ == "__main__":
    main()
