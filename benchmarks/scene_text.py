"""Readers trained on rendered words (scene_text_train.py), judged on IIIT5K's 3,000 real crops, beside what Tesseract
and PP-OCRv4 read of the same crops (scene_text_peers.py): accuracy, parameters, words a second on two threads.

    python benchmarks/scene_text.py NAME.tar … [--data FOLDER] [--words FILE] [--precision float32 int8] [--speed]

Each reader stands beside the peers on the same crops (their readings are kept, with the sum of the labels): how many
points it is ahead, and how likely so many crops that only one of both reads would fall so unevenly by chance (McNemar's
exact test).

--words reads in each way once more with that list of words at hand, which must be one that the reader was trained with:
where that was made, the test set could not be opened (scene_text_words.py).

Speed is from decoded pixels to text, as the peers': bringing crops to size is in, reading files is not; 300 crops,
median of five rounds. In each round every way of reading is timed, and with the first reader so are the peers, as many
processes of theirs as there are threads here, which is how they are fastest. Beside a reader stands the fastest that
Tesseract was in these rounds, in any of three page modes, as Debian's program or in a process of Python. The report is
OUT.json, and a table OUT.md.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from jumok import api  # noqa: E402
from jumok.data.images.picture import pixels_of  # noqa: E402
from jumok.data.images.raw import RawImage  # noqa: E402
from jumok.tasks.known_words import KnownWords  # noqa: E402
from jumok.tasks.text_reader import Read, TextReader, Way  # noqa: E402
from packed_run import unpack  # noqa: E402
from scene_text_data import (  # noqa: E402
    PICTURES,
    SCENE_TEXT,
    Crop,
    labels_digest,
    read_crops,
    right,
    right_as_written,
    sample,
    wilson,
)
from scene_text_peers import START, THREADS, Peers, ready, variants  # noqa: E402
from scene_text_train import sum_of  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
PEERS = RESULTS / "scene-text-peers.json"
TIMED, ROUNDS = 300, 5
BATCHES_TIMED = (1, 6)  # of PP-OCRv4: larger ones are slower on a CPU (results/scene-text-peers.md)
SURE = (0.8, 0.9)


def ways(reader: TextReader, precisions: list[str], words: KnownWords | None) -> dict[str, Way]:
    """How a reader can be asked."""
    found: dict[str, Way] = {}
    for precision in precisions:
        if precision == "int8" and not reader.has_int8:
            continue
        found[precision] = Way(precision=precision)
        if reader.has_fast:
            found[f"{precision}, --fast"] = Way(precision=precision, fast=True)
            for sure in SURE:
                found[f"{precision}, --sure {sure}"] = Way(precision=precision, sure=sure)
    if words is not None:
        found |= {
            f"{name}{' ' if ',' in name else ', '}--words": replace(way, words=words) for name, way in found.items()
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="packed runs, or run folders")
    parser.add_argument("--data", type=Path, default=SCENE_TEXT)
    parser.add_argument("--precision", nargs="+", default=["float32", "int8"])
    parser.add_argument("--words", type=Path, help="also read with this list of words at hand")
    parser.add_argument("--speed", action="store_true", help="also measure words a second (a quiet machine)")
    parser.add_argument("--peers-python", type=Path, help="with --speed: time the peers too (scene_text_peers.py)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "scene-text", help="without .json and .md")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    crops = read_crops(arguments.data)
    labels = [crop.label for crop in crops]
    raw = [RawImage(crop.name, None, crop.encoded) for crop in crops]
    read = known_peers(arguments.data)
    timed = PeersInTurn(arguments, sample(crops, TIMED), read) if arguments.speed else None
    words = None if arguments.words is None else KnownWords.of_files([arguments.words])
    rows: list[dict[str, Any]] = []
    training: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        for path in arguments.runs:
            folder = path if path.is_dir() else unpack(path, Path(place) / path.stem)
            reader = api.load(folder, device="cpu")
            trained = path.with_suffix(".json")
            about = json.loads(trained.read_text(encoding="utf-8")) if trained.exists() else {}
            training[path.stem] = about
            if arguments.words is not None:
                check_words(path, about, arguments.words)
            asked = ways(reader, arguments.precision, words)
            for name, way in asked.items():
                texts = [seen.read.text if isinstance(seen.read, Read) else "" for seen in reader.stream(raw, way)]
                count = right(texts, labels)
                low, high = wilson(count, len(labels))
                row = {
                    "run": path.stem,
                    "way": name,
                    "accuracy": round(100 * count / len(labels), 2),
                    "interval": [round(100 * low, 1), round(100 * high, 1)],
                    "cased": round(100 * right_as_written(texts, labels) / len(labels), 2),
                    "parameters": sum(parameter.numel() for parameter in reader.model.parameters()),
                    "minutes": round(about.get("seconds", 0) / 60, 1),
                }
                row["beside"] = {name: beside(texts, peer["readings"], labels) for name, peer in read.items()}
                rows.append(row)
                print(row, flush=True)
            if timed is not None:
                found = speeds(reader, timed, asked)
                for row in rows:
                    if row["run"] == path.stem:
                        row["words_per_second"] = found[row["way"]]
                        print(row["run"], row["way"], row["words_per_second"], "words/s", flush=True)
    result = {
        "crops": len(crops),
        "labels": labels_digest(arguments.data),
        "pictures": PICTURES,
        "threads": arguments.threads,
        "words": None if arguments.words is None else sum_of(arguments.words),
        "peers": {name: round(100 * peer["accuracy"], 2) for name, peer in read.items()},
        "peers_words_per_second": timed.found if timed is not None else {},
        "readers": rows,
        "training": training,
    }
    Path(f"{arguments.out}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    told = as_markdown(result)
    Path(f"{arguments.out}.md").write_text(told, encoding="utf-8")
    print(told)
    print(f"{arguments.out}.json; peers: {', '.join(read) or 'not measured (scene_text_peers.py)'}")


def check_words(run: Path, about: dict[str, Any], words: Path) -> None:
    """Refuse a list that a reader was not trained with: nobody has made sure that no answer of the test is in it."""
    if sum_of(words) not in about.get("words", {}).values():
        sys.exit(f"{words}: not a list that {run} was trained with ({run.with_suffix('.json').name} has their sums)")


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


class PeersInTurn:
    """The peers, ready to be timed between our own readings."""

    def __init__(self, arguments: argparse.Namespace, crops: list[Crop], read: dict[str, Any]) -> None:
        self.encoded = [crop.encoded for crop in crops]
        self.asked: dict[str, dict[str, Any]] = {}
        self.found: dict[str, float] = {}  # words a second, in the end
        self.peers: Peers | None = None
        if arguments.peers_python is None:
            return
        if arguments.threads != THREADS:
            sys.exit(
                f"--threads {arguments.threads}: the peers are timed as {THREADS} processes; leave one of both out"
            )
        versions = ready(arguments.peers_python)
        settings = {key: read["tesseract"]["settings"][key] for key in START} if "tesseract" in read else START
        kinds = variants(settings, versions)
        self.asked = {
            one.name: one.asked
            for one in kinds
            if one.threads == 1 and (one.name.startswith("tesseract") or one.asked["batch"] in BATCHES_TIMED)
        }
        self.peers = Peers(arguments.peers_python, arguments.threads, 1)
        self.peers.show(arguments.data, crops)

    def seconds(self, name: str) -> float:
        assert self.peers is not None
        time.sleep(0.3)  # threads of the one before stop spinning
        started = time.perf_counter()
        self.peers.read(**self.asked[name])
        return time.perf_counter() - started

    def end(self, found: dict[str, float]) -> None:
        self.found |= {name: found[name] for name in self.asked}
        self.asked = {}
        if self.peers is not None:
            self.peers.end()
            self.peers = None


def speeds(reader: TextReader, peers: PeersInTurn, asked: dict[str, Way]) -> dict[str, float]:
    """Words a second of each way, and of each peer, where that has not been measured yet."""
    raw = [RawImage(str(number), None, data) for number, data in enumerate(peers.encoded)]
    decoded = [RawImage(one.name, None, pixels_of(one, 3)) for one in raw]
    times: dict[str, list[float]] = {name: [] for name in (*asked, *peers.asked)}
    for turn in range(ROUNDS + 1):
        for name, way in asked.items():
            time.sleep(0.3)
            started = time.perf_counter()
            for _ in reader.stream(decoded, way):
                pass
            times[name].append(time.perf_counter() - started)
        for name in peers.asked:
            times[name].append(peers.seconds(name))
        if not turn:  # the first is for getting warm
            times = {name: [] for name in times}
    found = {name: round(len(peers.encoded) / statistics.median(each), 1) for name, each in times.items()}
    peers.end(found)
    return found


def as_markdown(result: dict[str, Any]) -> str:
    peers = ", ".join(f"{name} {accuracy:.1f} %" for name, accuracy in result["peers"].items())
    lines = [
        "# Readers of words on IIIT5K", "",
        f"Words that are right, of {result['crops']:,} (36 characters); {result['threads']} threads. Beside them: "
        f"{peers or 'no peer'}.", "",
        "| reader | way | right | 95 % | as written | parameters | minutes of training | words/s | beside Tesseract | "
        "beside PP-OCRv4 |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for row in result["readers"]:
        speed, theirs = row.get("words_per_second"), result["peers_words_per_second"]
        ratios = []
        for name in ("tesseract", "rapidocr"):
            fastest = max((each for peer, each in theirs.items() if peer.startswith(name)), default=0.0)
            ratios.append(f"{speed / fastest:.2f}×" if speed and fastest else "–")
        interval, told = " – ".join(map(str, row["interval"])), f"{speed:,.0f}" if speed else "–"
        cells = [
            row["run"], row["way"], f"{row['accuracy']:.1f} %", interval, f"{row['cased']:.1f} %",
            f"{row['parameters']:,}", f"{row['minutes']:.1f}", told, *ratios,
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
