"""Readers trained on rendered words (scene_text_train.py), judged on IIIT5K's 3,000 real crops, beside what Tesseract
and PP-OCRv4 read of the same crops (scene_text_peers.py): accuracy, parameters, words a second on two threads.

    python benchmarks/scene_text.py NAME.tar … [--data FOLDER] [--precision float32 bfloat16] [--speed]

Each reader stands beside the peers on the same crops (their readings are kept, with the sum of the labels): how many
points it is ahead, and how likely so many crops that only one of both reads would fall so unevenly by chance (McNemar's
exact test).

Speed is of reading alone: crops are decoded and brought to size beforehand, as for the peers; 300 crops, median of five
rounds, the ways of reading in turns.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from jumok import api  # noqa: E402
from jumok.data.images.raw import RawImage  # noqa: E402
from jumok.tasks.text_reader import Read, TextReader, Way  # noqa: E402
from packed_run import unpack  # noqa: E402
from scene_text_data import PICTURES, SCENE_TEXT, labels_digest, read_crops, right, sample, wilson  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
PEERS = RESULTS / "scene-text-peers.json"
TIMED, ROUNDS = 300, 5
SURE = (0.8, 0.9)


def ways(reader: TextReader, precisions: list[str]) -> dict[str, Way]:
    """How a reader can be asked."""
    found: dict[str, Way] = {}
    for precision in precisions:
        found[precision] = Way(precision=precision)
        if reader.has_fast:
            found[f"{precision}, --fast"] = Way(precision=precision, fast=True)
            for sure in SURE:
                found[f"{precision}, --sure {sure}"] = Way(precision=precision, sure=sure)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="packed runs, or run folders")
    parser.add_argument("--data", type=Path, default=SCENE_TEXT)
    parser.add_argument("--precision", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--speed", action="store_true", help="also measure words a second (a quiet machine)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "scene-text.json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    crops = read_crops(arguments.data)
    labels = [crop.label for crop in crops]
    raw = [RawImage(crop.name, None, crop.encoded) for crop in crops]
    peers = known_peers(arguments.data)
    rows: list[dict[str, Any]] = []
    training: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        for path in arguments.runs:
            folder = path if path.is_dir() else unpack(path, Path(place) / path.stem)
            reader = api.load(folder, device="cpu")
            trained = path.with_suffix(".json")
            about = json.loads(trained.read_text(encoding="utf-8")) if trained.exists() else {}
            training[path.stem] = about
            for name, way in ways(reader, arguments.precision).items():
                texts = [seen.read.text if isinstance(seen.read, Read) else "" for seen in reader.stream(raw, way)]
                count = right(texts, labels)
                low, high = wilson(count, len(labels))
                row = {
                    "run": path.stem,
                    "way": name,
                    "accuracy": round(100 * count / len(labels), 2),
                    "interval": [round(100 * low, 1), round(100 * high, 1)],
                    "cased": round(
                        100 * sum(text == label for text, label in zip(texts, labels, strict=True)) / len(labels), 2
                    ),
                    "parameters": sum(parameter.numel() for parameter in reader.model.parameters()),
                    "minutes": round(about.get("seconds", 0) / 60, 1),
                }
                row["beside"] = {name: beside(texts, peer["readings"], labels) for name, peer in peers.items()}
                rows.append(row)
                print(row, flush=True)
            if arguments.speed:
                timed = speeds(
                    reader, [crop.encoded for crop in sample(crops, TIMED)], ways(reader, arguments.precision)
                )
                for row in rows:
                    if row["run"] == path.stem:
                        row["words_per_second"] = timed[row["way"]]
                        print(row["run"], row["way"], row["words_per_second"], "words/s", flush=True)
    result = {
        "crops": len(crops),
        "labels": labels_digest(arguments.data),
        "pictures": PICTURES,
        "threads": arguments.threads,
        "peers": {name: round(100 * peer["accuracy"], 2) for name, peer in peers.items()},
        "readers": rows,
        "training": training,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{arguments.out}; peers: {', '.join(peers) or 'not measured (scene_text_peers.py)'}")


def known_peers(data: Path) -> dict[str, Any]:
    """What the peers have read of the same crops."""
    if not PEERS.exists():
        return {}
    found = json.loads(PEERS.read_text(encoding="utf-8"))["accuracy"]
    if found["labels"] != labels_digest(data):
        sys.exit(f"{PEERS}: it was measured with other labels: scene_text_peers.py measures it anew")
    peers: dict[str, Any] = found["peers"]
    return peers


def beside(ours: list[str], theirs: list[str], labels: list[str]) -> dict[str, float]:
    """Points ahead, and the probability of a split as uneven as that if both were equally good."""
    pairs = [(right([a], [label]), right([b], [label])) for a, b, label in zip(ours, theirs, labels, strict=True)]
    only_ours, only_theirs = pairs.count((1, 0)), pairs.count((0, 1))
    apart = only_ours + only_theirs
    tail = sum(math.comb(apart, number) for number in range(min(only_ours, only_theirs) + 1)) / 2**apart
    return {
        "ahead": round(100 * (only_ours - only_theirs) / len(labels), 2),
        "only ours": only_ours,
        "only theirs": only_theirs,
        "p": float(f"{min(1.0, 2 * tail):.2g}"),
    }


def speeds(reader: TextReader, encoded: list[bytes], asked: dict[str, Way]) -> dict[str, float]:
    pixels = reader.prepared([RawImage(str(number), None, data) for number, data in enumerate(encoded)])
    times: dict[str, list[float]] = {name: [] for name in asked}
    for turn in range(ROUNDS + 1):
        for name, way in asked.items():
            started = time.perf_counter()
            reader.look(pixels, way)
            if turn:  # the first is for getting warm
                times[name].append(time.perf_counter() - started)
    return {name: round(len(encoded) / statistics.median(each), 1) for name, each in times.items()}


if __name__ == "__main__":
    main()
