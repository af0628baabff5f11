"""Quality on Multi30k de→en: recipes trained for some minutes on one GPU, scored on test_2016_flickr.

    python benchmarks/multi30k.py --data ../shared/data/multi30k --out results.json [NAME …]

The figure that counts is sacreBLEU, cased and detokenised (its signature is printed). Beside it stands BLEU lower-cased
and tokenised, the form in which the well-known tutorial ladder reports 13.8 (LSTM), 20.6 (GRU) and 28.3 (Bahdanau).
Runs go side by side, as processes on one card. All choices are made on val: of the runs that share the first word of
their names, only the best on val is scored on the test set.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

COMMON = [
    "tokenizer.kind=bpe", "tokenizer.joint=true", "tokenizer.vocabulary=8000", "data.max_length=100",
    "model.width=1024", "model.embedding=512", "model.dropout=0.5", "model.tie_embeddings=true",
    "training.batch_tokens=4096", "training.label_smoothing=0.1", "training.metric=bleu",
    "training.validate_every=400", "training.validate_sentences=1014", "training.checkpoint_every=100000",
    "training.keep=1", "search.beam=10", "search.length_penalty=0.8", "search.batch=256", "threads=1",
]  # fmt: skip
RUNS: dict[str, list[str]] = {
    # without attention: the final state is all the decoder gets
    "rnn": ["rnn", "model.layers=1", "model.dropout=0.3", "training.learning_rate=0.0005", "training.updates=4000"],
    "gru": ["gru", "model.layers=1", "training.learning_rate=0.001", "training.updates=4500"],
    "lstm-two": ["lstm", "model.layers=2", "training.learning_rate=0.001", "training.updates=4500"],
    # with attention
    "bahdanau": ["lstm-bahdanau", "model.layers=1", "training.learning_rate=0.001", "training.updates=3600"],
    "luong-separate": [
        "lstm-luong", "model.layers=2", "tokenizer.joint=false", "tokenizer.vocabulary=5000",
        "training.learning_rate=0.001", "training.updates=4500",
    ],
}  # fmt: skip


class Failed(Exception):
    """One run went wrong; the others go on."""


def train(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One run in a process of its own; what it took, and what it says of itself."""
    recipe, *keys = RUNS[name]
    run: Path = options.runs / name
    command = [sys.executable, "-m", "jumok", "train", recipe, *COMMON, *keys, *options.set, "--run", str(run)]
    for option, file in (
        ("source", "train.de"),
        ("target", "train.en"),
        ("valid-source", "val.de"),
        ("valid-target", "val.en"),
    ):
        command += [f"--{option}", str(options.data / f"{file}.gz")]
    began = time.monotonic()
    log = options.runs / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        try:
            process.wait(60 * options.limit)
        except subprocess.TimeoutExpired:
            process.terminate()  # it saves and stops; the best checkpoint so far is scored
            process.wait()
    minutes = (time.monotonic() - began) / 60
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()] if run.exists() else []
    if not any(event["event"] == "valid" for event in events):
        raise Failed(f"{name} ended with code {process.returncode}:\n{log.read_text(errors='replace')[-2000:]}")
    speeds = [event["tokens_per_second"] for event in events if event["event"] == "train"]
    return {
        "command": command[1:],
        "minutes": round(minutes, 2),
        "updates": events[-1]["step"],
        "best_update": json.loads((run / "best.json").read_text())["step"],
        "target_tokens_per_second": round(statistics.median(speeds)),
        "greedy_val_bleu": {event["step"]: round(event["bleu"], 2) for event in events if event["event"] == "valid"},
    }


def score(name: str, split: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "jumok", "evaluate", "--run", str(options.runs / name), "--json", "--tutorial"]
    command += ["--source", str(options.data / f"{split}.de.gz"), "--reference", str(options.data / f"{split}.en.gz")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Failed(f"{name} on {split}: {result.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(result.stdout)
    scores = [f"{item['name']} {item['score']:.2f} ({item['signature']})" for item in found["scores"]]
    tutorial = f"lower-cased, tokenised BLEU {found['tutorial'][0]['score']:.2f}"
    print(f"{name:15} {split:17} {'   '.join([*scores, tutorial])}", flush=True)
    return found


def machine() -> dict[str, str]:
    import torch

    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return {"gpu": where, "torch": torch.__version__, "python": sys.version.split()[0]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(RUNS))
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared/data/multi30k")
    parser.add_argument("--runs", type=Path, default=Path("runs/multi30k"))
    parser.add_argument("--limit", type=float, default=7.5, help="minutes after which a run is stopped")
    parser.add_argument("--set", action="append", default=[], help="a further key=value for every run")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    table: dict[str, dict[str, Any]] = {}

    def trained(name: str) -> None:
        try:
            result = train(name, options)
            print(f"{name:15} {result['minutes']} minutes, {result['updates']} updates", flush=True)
            table[name] = {**result, "val": score(name, "val", options)}
        except Failed as error:
            print(error, flush=True)

    def tested(name: str) -> None:
        table[name]["test_2016_flickr"] = score(name, "test_2016_flickr", options)

    with ThreadPoolExecutor(len(options.names)) as pool:
        list(pool.map(trained, options.names))
        best: dict[str, str] = {}
        for name in sorted(table, key=lambda name: table[name]["val"]["scores"][0]["score"]):
            best[name.partition("-")[0]] = name
        list(pool.map(tested, best.values()))
    if options.out:
        options.out.write_text(json.dumps({"machine": machine(), "runs": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
