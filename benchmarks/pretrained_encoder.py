"""Translation from a pretrained encoder: 5,000 pairs of Multi30k (de→en), beside the same network from scratch.

    python benchmarks/pretrained_encoder.py [--pretrain 2] [--out FILE]

The encoder is pretrained on the German side of all 29,000 training captions: text without translations, which is what
one has more of. Both translators have the same network, vocabularies, recipe and number of updates; the checkpoint is
chosen by BLEU on val, and test_2016_flickr is scored once (detokenised, cased sacreBLEU).
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from jumok import api  # noqa: E402
from jumok import recipe as recipes  # noqa: E402
from jumok.tasks.metrics import corpus_scores  # noqa: E402

DATA = ROOT.parent / "shared" / "data" / "multi30k"
READER: dict[str, Any] = {
    "kind": "bert", "width": 256, "heads": 4, "layers": 4, "feed_forward": 682, "norm": "pre", "norm_epsilon": 1e-5,
    "position": "rotary", "activation": "swiglu", "attention_dropout": 0.0, "dropout": 0.1,
}  # fmt: skip


def lines(file: Path) -> list[str]:
    with gzip.open(file, "rt", encoding="utf-8") as text:
        return [line.rstrip("\n") for line in text]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path("/tmp/pretrained-encoder"))
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--pretrain", type=float, default=2.0, help="minutes")
    parser.add_argument("--pretrain-updates", type=int, default=0, help="instead of minutes")
    parser.add_argument("--updates", type=int, default=2500)
    parser.add_argument("--dropout", type=float, default=0.3, help="of the translator")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    work: Path = chosen.work
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    began = time.perf_counter()
    german = lines(chosen.data / "train.de.gz")
    (work / "text.de").write_text("\n".join(german) + "\n", encoding="utf-8")
    for side in ("de", "en"):
        some = lines(chosen.data / f"train.{side}.gz")[: chosen.pairs]
        (work / f"train.{side}").write_text("\n".join(some) + "\n", encoding="utf-8")
    pretraining = {
        "task": "pretraining",
        "data": {"train": {"text": [str(work / "text.de")]}, "window": 128, "documents": "lines"},
        "tokenizer": {"kind": "wordpiece", "vocabulary": 6000}, "model": READER,
        "masking": {"rate": 0.3, "whole_words": True},
        "training": {
            "batch_tokens": 16384, "learning_rate": 2e-3, "warmup": 500, "schedule": "cosine", "weight_decay": 0.01,
            "label_smoothing": 0.0, "validate_every": 2000, "checkpoint_every": 2000, "keep": 1,
            "updates": chosen.pretrain_updates or 1,
        },
    }  # fmt: skip
    minutes = None if chosen.pretrain_updates else chosen.pretrain
    api.train(recipes.check(pretraining, "pretraining"), work / "pretrained", minutes=minutes, report=False)
    results: dict[str, Any] = {"options": {k: str(v) for k, v in vars(chosen).items()}}
    results["pretraining_seconds"] = round(time.perf_counter() - began, 1)
    sources, references = (lines(chosen.data / f"test_2016_flickr.{side}.gz") for side in ("de", "en"))
    for name in ("scratch", "pretrained"):
        raw: dict[str, Any] = {
            "task": "translation",
            "data": {
                "train": {"source": [str(work / "train.de")], "target": [str(work / "train.en")]},
                "valid": {"source": [str(chosen.data / "val.de.gz")], "target": [str(chosen.data / "val.en.gz")]},
            },
            "tokenizer": {"kind": "bpe", "vocabulary": 4000, "source": str(work / "pretrained" / "tokenizer" / "text")},
            "model": {
                "kind": "transformer", "width": 256, "heads": 4, "decoder_layers": 2, "feed_forward": 1024,
                "position": "rotary", "dropout": chosen.dropout, "reader": {**READER, "dropout": chosen.dropout},
            },
            "training": {
                "batch_tokens": 4096, "learning_rate": 1e-3, "warmup": 400, "schedule": "inverse-sqrt",
                "metric": "bleu", "updates": chosen.updates, "validate_every": 250, "checkpoint_every": 250, "keep": 1,
                "validate_sentences": 500,
            },
        }  # fmt: skip
        if name == "pretrained":
            raw["start"] = str(work / "pretrained")
        model = api.train(recipes.check(raw, name), work / f"{name}-translator", report=False)
        scores = corpus_scores(model.translate(sources), references)
        results[name] = {score.name: score.score for score in scores} | {"signature": scores[0].signature}
        events = [event for event in model.run.events() if event["event"] == "valid"]
        results[name]["valid"] = [[event["step"], round(event["bleu"], 2)] for event in events]
        print(f"{name}: {', '.join(map(str, scores))}", flush=True)
        results["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        results["seconds"] = round(time.perf_counter() - began, 1)
        if chosen.out:
            chosen.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
