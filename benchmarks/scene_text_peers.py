"""Word reading by two peers on IIIT5K: RapidOCR's PP-OCRv4 recogniser and Tesseract 5; how many words, and how fast.

    python benchmarks/scene_text_peers.py --data ../shared/data/scene-text [--sample N] [--speed]

Needs a Python of their own: `python -m venv /tmp/peers; /tmp/peers/bin/pip install rapidocr-onnxruntime tesserocr`,
named with --peers-python, and Debian's tesseract-ocr (the program, and its English model).

Without --speed: accuracy by the 36-character protocol on all crops (or on a sample of N). How tall Tesseract's crops
are made, what is put around them, its page mode and whether only letters and digits are allowed is chosen for it on 300
crops of this very test set, by what helps it most. What each peer read is kept, so that later comparisons are exact.

With --speed: words a second on 300 crops (or N), from decoded pixels to text, with two threads or two processes of one
thread. Rounds go through all variants; the figure is the median. What other programs did to the machine meanwhile
stands beside it, and so does the time of a float32 product of 1024 × 1024 matrices in PyTorch, taken in every round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scene_text_data import SCENE_TEXT, Crop, labels_digest, read_crops, right, right_as_written, sample, wilson

HERE = Path(__file__).resolve().parent
CHOOSING = 300  # crops on which Tesseract's settings are chosen
THREADS = 2
QUIET = 0.1  # cores that others may use during a timing that counts as quiet
BATCHES = (1, 6, 16, 32)
PAGE_MODES = (7, 8, 13)  # a line, a word, a raw line
HEIGHTS, BORDERS, EDGES = (0, 24, 28, 32, 36, 40, 48, 64, 96), (0, 2, 4, 8, 16), ("edge", "white")  # height 0: as it is
START = {"psm": 8, "height": 64, "border": 16, "edge": "edge", "alphanumeric": False}


# ---------------------------------------------------------------- the peers' processes


class Peers:
    """Processes that share the crops among them, and read at the same time."""

    def __init__(self, python: Path, processes: int, threads: int) -> None:
        limits = {name: str(threads) for name in ("OMP_THREAD_LIMIT", "OMP_NUM_THREADS")}
        command = [str(python), str(HERE / "scene_text_worker.py")]
        self.processes = [
            subprocess.Popen(
                command, env={**os.environ, **limits}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(processes)
        ]
        self.versions: dict[str, str] = self._answers()[0]

    def show(self, folder: Path, crops: Sequence[Crop]) -> None:
        numbers = [crop.number for crop in crops]
        for place, process in enumerate(self.processes):
            self._ask(process, {"data": str(folder), "numbers": numbers[place :: len(self.processes)]})
        self._answers()

    def read(self, **asked: Any) -> tuple[list[str], float]:
        """What is on the crops shown, and the seconds of processor time that it took."""
        for process in self.processes:
            self._ask(process, asked)
        answers = self._answers()
        readings = [""] * sum(len(answer["readings"]) for answer in answers)
        for place, answer in enumerate(answers):
            readings[place :: len(answers)] = answer["readings"]
        return readings, sum(answer["processor"] for answer in answers)

    def end(self) -> None:
        for process in self.processes:
            assert process.stdin
            process.stdin.close()
            process.wait()

    def _ask(self, process: subprocess.Popen[str], asked: dict[str, Any]) -> None:
        assert process.stdin
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()

    def _answers(self) -> list[dict[str, Any]]:
        lines = [process.stdout.readline() for process in self.processes if process.stdout]
        if not all(lines):
            raise SystemExit("A peer's process ended; its message is above.")
        return [json.loads(line) for line in lines]


def ready(python: Path) -> dict[str, str]:
    """The versions of the peers, or a message that says what is missing."""
    advice = "python3 -m venv /tmp/peers && /tmp/peers/bin/pip install rapidocr-onnxruntime tesserocr"
    if not shutil.which(str(python)):
        raise SystemExit(f"There is no Python at {python} (--peers-python). Make one: {advice}")
    if not shutil.which("tesseract"):
        raise SystemExit("There is no program `tesseract` here. Install it: apt-get install tesseract-ocr")
    for module in ("numpy", "PIL", "rapidocr_onnxruntime"):
        if subprocess.run([str(python), "-c", f"import {module}"], capture_output=True).returncode:
            raise SystemExit(f"{python} (--peers-python) has no {module}. Install it: {advice}")
    peers = Peers(python, 1, 1)
    peers.end()
    told = subprocess.run(["tesseract", "--version"], capture_output=True, text=True, check=True)
    return {**peers.versions, "tesseract program": (told.stdout or told.stderr).split()[1]}


# ---------------------------------------------------------------- accuracy


def neighbours(settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One thing at a time: first size and room, then how the page is cut and what may stand on it."""
    for height in HEIGHTS:
        for border in BORDERS:
            yield {**settings, "height": height, "border": border}
    for edge in EDGES:
        for psm in PAGE_MODES:
            for alphanumeric in (False, True):
                yield {**settings, "edge": edge, "psm": psm, "alphanumeric": alphanumeric}


def choose(peers: Peers, engine: str, labels: Sequence[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """What helps Tesseract most: through the neighbours of the best settings so far, three times."""
    best, tried = dict(START), dict[str, int]()
    for _ in range(3):
        for settings in list(neighbours(best)):
            name = json.dumps(settings)
            if name not in tried:
                tried[name] = right(peers.read(engine=engine, **settings)[0], labels)
        best = json.loads(max(tried, key=lambda name: tried[name]))
        print(f"  {tried[json.dumps(best)]} of {len(labels)} with {best}", flush=True)
    return best, tried


def accuracies(options: argparse.Namespace, crops: list[Crop], versions: dict[str, str]) -> dict[str, Any]:
    asked_for = sample(crops, options.sample) if options.sample else crops
    asked_for = sorted(asked_for, key=lambda crop: crop.number)
    peers = Peers(options.peers_python, options.processes, 1)
    engine = "tesseract" if "tesserocr" in versions else "tesseract program"
    few = sample(crops, CHOOSING)
    peers.show(options.data, few)
    print("Tesseract's settings:", flush=True)
    settings, tried = choose(peers, engine, [crop.label for crop in few])
    peers.show(options.data, asked_for)
    labels = [crop.label for crop in asked_for]
    found: dict[str, Any] = {"crops": len(labels), "labels": labels_digest(options.data), "peers": {}}
    if options.sample:
        found["numbers"] = [crop.number for crop in asked_for]
    ways = {"rapidocr": {"engine": "rapidocr", "batch": 1, "threads": 1}, "tesseract": {"engine": engine, **settings}}
    for name, asked in ways.items():
        readings, _ = peers.read(**asked)
        count, written = right(readings, labels), right_as_written(readings, labels)
        low, high = wilson(count, len(labels))
        print(f"{name}: {count} of {len(labels)}, {100 * count / len(labels):.2f} %", flush=True)
        found["peers"][name] = {
            "settings": asked, "right": count, "accuracy": count / len(labels), "low": low, "high": high,
            "right as written": written, "readings": readings,
        }  # fmt: skip
    found["peers"]["tesseract"]["tried"] = tried
    peers.end()
    return found


# ---------------------------------------------------------------- speed


@dataclass
class Variant:
    name: str
    processes: int
    threads: int
    asked: dict[str, Any]
    timings: list[dict[str, float]] = field(default_factory=list)

    def counted(self, rounds: int) -> list[dict[str, float]]:
        """The quiet timings, if there are enough of them; else all."""
        quiet = [timing for timing in self.timings if timing["others"] <= QUIET]
        return quiet if len(quiet) >= rounds else self.timings


def variants(settings: dict[str, Any], versions: dict[str, str]) -> list[Variant]:
    made = []
    for processes, threads in ((1, THREADS), (THREADS, 1)):
        how = f"{processes} × {threads}"
        for batch in BATCHES:
            asked = {"engine": "rapidocr", "batch": batch, "threads": threads}
            made.append(Variant(f"rapidocr, batch {batch}, {how}", processes, threads, asked))
        for psm in PAGE_MODES:
            for engine in ("tesseract", "tesseract program"):
                if engine == "tesseract" and "tesserocr" not in versions:
                    continue
                asked = {"engine": engine, **settings, "psm": psm}
                made.append(Variant(f"{engine}, psm {psm}, {how}", processes, threads, asked))
    return made


def product(size: int = 1024, times: int = 20) -> float:
    """Milliseconds of a float32 product in PyTorch, median: the machine's speed at this moment."""
    import torch

    torch.set_num_threads(THREADS)
    left, other = torch.randn(size, size), torch.randn(size, size)
    found = []
    for _ in range(times):
        began = time.perf_counter()
        torch.mm(left, other)
        found.append(time.perf_counter() - began)
    return 1000 * statistics.median(found)


def busy() -> float:
    """Seconds that all processors together have worked since the machine started."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def timing(peers: Peers, asked: dict[str, Any]) -> dict[str, float]:
    time.sleep(0.3)  # threads of the one before stop spinning
    load, worked, began = os.getloadavg()[0], busy(), time.perf_counter()
    _, processor = peers.read(**asked)
    seconds = time.perf_counter() - began
    others = max(0.0, busy() - worked - processor) / seconds
    return {"seconds": seconds, "processor": processor, "others": others, "load": load}


def speeds(options: argparse.Namespace, crops: list[Crop], versions: dict[str, str]) -> dict[str, Any]:
    some = sample(crops, options.sample or CHOOSING)
    settings = dict(START)
    stored = options.out.with_suffix(".json")
    if stored.is_file():
        kept = json.loads(stored.read_text(encoding="utf-8")).get("accuracy")
        if kept:  # the crops as they were made for the best accuracy
            settings = {key: kept["peers"]["tesseract"]["settings"][key] for key in START}
    measured = [v for v in variants(settings, versions) if any(part in v.name for part in options.only)]
    kinds = {(variant.processes, variant.threads) for variant in measured}
    peers = {kind: Peers(options.peers_python, *kind) for kind in kinds}
    products = []
    for each in peers.values():
        each.show(options.data, some)
    for variant in measured:  # warm up
        peers[variant.processes, variant.threads].read(**variant.asked, first=16)
    enough, tries = 0, 0
    while enough < options.rounds and tries < options.rounds + options.extra:
        products.append(product())
        for variant in measured:
            variant.timings.append(timing(peers[variant.processes, variant.threads], variant.asked))
        tries += 1
        enough += all(variant.timings[-1]["others"] <= QUIET for variant in measured)
        latest = [f"{v.name} {len(some) / v.timings[-1]['seconds']:.1f}" for v in measured]
        print(f"round {tries}: product {products[-1]:.1f} ms; {'; '.join(latest)}", flush=True)
    for each in peers.values():
        each.end()
    rows = {}
    for variant in measured:
        counted = variant.counted(options.rounds)
        rows[variant.name] = {
            "words per second": len(some) / statistics.median(t["seconds"] for t in counted),
            "processor ms per word": 1000 * statistics.median(t["processor"] for t in counted) / len(some),
            "others": statistics.median(t["others"] for t in counted),
            "asked": variant.asked,
            "timings": [{key: round(value, 3) for key, value in t.items()} for t in variant.timings],
        }
    return {"crops": len(some), "product ms": [round(ms, 2) for ms in products], "variants": rows}


# ---------------------------------------------------------------- report


def machine(versions: dict[str, str]) -> dict[str, Any]:
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    found = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in found.items()}
    return {
        "processor": f"{facts.get('model name', platform.processor())} "
        f"(family {facts.get('cpu family')}, model {facts.get('model')})",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **versions,
    }


def as_markdown(result: dict[str, Any]) -> str:
    about = result["machine"]
    lines = ["# Scene text: the peers on IIIT5K", "", f"{about['processor']}, {about['cores']} cores; RapidOCR "
             f"{about['rapidocr-onnxruntime']} (PP-OCRv4, ONNX Runtime {about['onnxruntime']}), Tesseract "
             f"{about.get('tesseract', about['tesseract program'])} (program: {about['tesseract program']}; Debian's "
             "English model)."]  # fmt: skip
    if found := result.get("accuracy"):
        lines += ["", f"Words that are right, of {found['crops']:,} (36 characters; as written: case told apart).", "",
                  "| peer | right | accuracy | 95 % | as written |", "| --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
        for name, row in found["peers"].items():
            written = 100 * row["right as written"] / found["crops"]
            interval = f"{100 * row['low']:.1f} – {100 * row['high']:.1f}"
            share = 100 * row["accuracy"]
            lines.append(f"| {name} | {row['right']:,} | {share:.2f} % | {interval} | {written:.2f} % |")
        chosen = {key: found["peers"]["tesseract"]["settings"][key] for key in START}
        told = ", ".join(f"{key} {value}" for key, value in chosen.items())
        lines += ["", f"Tesseract's settings, chosen on {CHOOSING} crops of this test set: {told}."]
    if found := result.get("speed"):
        first, last = min(found["product ms"]), max(found["product ms"])
        lines += ["", f"Words a second on {found['crops']} crops, from decoded pixels to text, processes × threads; "
                  f"`others`: cores that other programs used meanwhile; `on free cores`: what the processor time would "
                  f"allow without them. A 1024³ float32 product took {first:.1f} – "
                  f"{last:.1f} ms in PyTorch with {THREADS} threads.", "",
                  "| variant | words/s | processor ms a word | on free cores | others |",
                  "| --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
        for name, row in found["variants"].items():
            spent = row["processor ms per word"]
            # two threads of one process wait for each other busily, so their time says nothing
            free = f"≤ {1000 * THREADS / spent:.0f}" if name.endswith("× 1") else "–"
            lines.append(f"| {name} | {row['words per second']:.1f} | {spent:.2f} | {free} | {row['others']:.2f} |")
    return "\n".join(lines) + "\n"


def as_json(result: dict[str, Any]) -> str:
    """Indented, but for the readings, which are kept on few lines."""
    readings = {}
    for name, row in result.get("accuracy", {}).get("peers", {}).items():
        mark = f"<readings of {name}>"
        readings[json.dumps(mark)] = json.dumps(row["readings"], ensure_ascii=False, separators=(",", ":"))
        row["readings"] = mark
    text = json.dumps(result, indent=1, ensure_ascii=False)
    for mark, whole in readings.items():
        text = text.replace(mark, whole)
    return text + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SCENE_TEXT, help="the folder with iiit5k_test.zip")
    parser.add_argument("--peers-python", type=Path, default=Path("/tmp/peers/bin/python"))
    parser.add_argument("--sample", type=int, help="only so many crops")
    parser.add_argument("--speed", action="store_true", help="measure speed instead of accuracy")
    parser.add_argument("--only", nargs="*", default=[""], help="speed of variants whose name has one of these in it")
    parser.add_argument("--rounds", type=int, default=3, help="quiet ones, if possible")
    parser.add_argument("--extra", type=int, default=0, help="more rounds to try where others disturb")
    parser.add_argument("--processes", type=int, default=1, help="for accuracy")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scene-text-peers")
    options = parser.parse_args()
    versions = ready(options.peers_python)
    crops = read_crops(options.data)
    stored = options.out.with_suffix(".json")
    result: dict[str, Any] = json.loads(stored.read_text(encoding="utf-8")) if stored.is_file() else {}
    result["machine"] = machine(versions)
    if options.speed:
        result["speed"] = speeds(options, crops, versions)
    else:
        result["accuracy"] = accuracies(options, crops, versions)
    told = as_markdown(result)
    stored.write_text(as_json(result), encoding="utf-8")
    options.out.with_suffix(".md").write_text(told, encoding="utf-8")
    print(told)


if __name__ == "__main__":
    main()
