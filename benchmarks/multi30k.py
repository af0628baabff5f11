"""Quality on Multi30k de→en: each recipe trained for some minutes, scored on test_2016_flickr.

    python benchmarks/multi30k.py --data ../shared/data/multi30k --minutes 7 --out results.json [NAME …]

The figure that counts is sacreBLEU, cased and detokenised (its signature is printed). Beside it stands BLEU lower-cased and
tokenised, the form in which the well-known tutorial ladder reports 13.8 (LSTM), 20.6 (GRU) and 28.3 (Bahdanau).
All settings were chosen on val. Runs go side by side, as processes on one card.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

COMMON = [
    "tokenizer.kind=bpe", "training.batch_tokens=4096", "training.validate_every=300",
    "training.checkpoint_every=5000", "training.metric=bleu", "training.validate_sentences=1014",
    "training.label_smoothing=0.1", "data.max_length=100", "training.learning_rate=0.001",
]  # fmt: skip
RUNS: dict[str, list[str]] = {
    # the plain encoder–decoder: the final state is all the decoder gets
    "lstm": ["lstm", "model.layers=2", "model.width=512", "model.dropout=0.4", "tokenizer.vocabulary=5000"],
    "lstm-wide": ["lstm", "model.layers=2", "model.width=1024", "model.dropout=0.5", "tokenizer.vocabulary=5000"],
    "gru": ["gru", "model.layers=1", "model.width=1024", "model.dropout=0.5", "tokenizer.vocabulary=5000"],
    "luong": ["lstm-luong", "model.layers=2", "model.width=512", "model.dropout=0.4", "tokenizer.vocabulary=5000"],
    "luong-8k": [
        "lstm-luong",
        "model.layers=1",
        "model.width=512",
        "model.dropout=0.5",
        "tokenizer.vocabulary=8000",
        "tokenizer.joint=true",
    ],
    "luong-feeding": [
        "lstm-luong",
        "model.layers=1",
        "model.width=512",
        "model.input_feeding=true",
        "model.dropout=0.4",
        "tokenizer.vocabulary=5000",
    ],
    "bahdanau": ["lstm-bahdanau", "model.width=512", "model.dropout=0.4", "tokenizer.vocabulary=5000"],
}


def start(name: str, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    recipe, *keys = RUNS[name]
    files = {
        "--source": "train.de.gz", "--target": "train.en.gz", "--valid-source": "val.de.gz", "--valid-target": "val.en.gz",
    }  # fmt: skip
    command = [sys.executable, "-m", "jumok", "train", recipe, *COMMON, *keys, *options.set]
    command += ["--run", str(options.runs / name), "--minutes", str(options.minutes)]
    for option, file in files.items():
        command += [option, str(options.data / file)]
    log = (options.runs / f"{name}.log").open("wb")
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def score(name: str, options: argparse.Namespace, split: str) -> dict[str, object]:
    command = [sys.executable, "-m", "jumok", "evaluate", "--run", str(options.runs / name), "--json", "--tutorial"]
    command += ["--source", str(options.data / f"{split}.de.gz"), "--reference", str(options.data / f"{split}.en.gz")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        return {"error": result.stderr[-2000:]}
    return dict(json.loads(result.stdout))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(RUNS))
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared/data/multi30k")
    parser.add_argument("--runs", type=Path, default=Path("runs/multi30k"))
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--set", action="append", default=[], help="a further key=value for every run")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    processes = {name: start(name, options) for name in options.names}
    table: dict[str, dict[str, object]] = {}
    for name, process in processes.items():
        process.wait()
        minutes = (time.monotonic() - began) / 60
        print(f"{name}: training ended with code {process.returncode} after {minutes:.1f} minutes", flush=True)
        if process.returncode:
            print((options.runs / f"{name}.log").read_text(errors="replace")[-1500:], flush=True)
    for name in options.names:
        table[name] = {split: score(name, options, split) for split in ("val", "test_2016_flickr")}
        for split, result in table[name].items():
            scores = [f"{s['name']} {s['score']:.2f} {s['signature']}" for s in result.get("scores", [])]  # type: ignore[attr-defined]
            scores += [f"lower-cased, tokenised {s['score']:.2f}" for s in result.get("tutorial", [])]  # type: ignore[attr-defined]
            print(f"{name:14} {split:18} {'   '.join(scores) or result}", flush=True)
        if options.out:
            options.out.write_text(
                json.dumps({"minutes": options.minutes, "common": COMMON, "runs": RUNS, "scores": table}, indent=1)
            )


if __name__ == "__main__":
    main()
