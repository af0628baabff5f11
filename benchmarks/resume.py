"""How long `jumok train --resume` takes from the start of the process to its first update, at update 100 and 100,000.

    python benchmarks/resume.py [--pairs 5000000] [--times 3] [--folder DIR] [--out benchmarks/results/resume.json]

The first time this makes a corpus of five million pairs from the embedded grammar, two tokenizers, the token store and
a tiny model trained for 100 updates, and keeps all of it in the folder (about 1 GB; ten minutes or so of one core). The
checkpoint of update 100,000 is that of update 100 with another number: the place of a run is one number.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from memory import write

BAR = 5.0  # seconds
UPDATES = (100, 100_000)
KEYS = [
    "threads=1", "model.width=128", "model.embedding=64", "model.layers=1", "data.valid=null", "training.compile=false",
    "training.updates=1000000", "training.validate_every=1000000", "training.checkpoint_every=100",
    "training.log_every=1",
]  # fmt: skip


def tokenizers(folder: Path, files: tuple[Path, Path]) -> list[str]:
    from jumok.text.tokenizer import train_tokenizer

    places = [folder / f"tok{file.suffix.replace('.', '-')}" for file in files]
    for place, file in zip(places, files, strict=True):
        if not place.exists():
            with file.open(encoding="utf-8") as lines:
                sample = (line.rstrip("\n") for line in islice(lines, 0, None, 50))
                train_tokenizer(sample, "bpe", 4000).save(place)
    return [f"tokenizer.source={places[0]}", f"tokenizer.target={places[1]}"]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "JUMOK_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "jumok", "train", *arguments]


def trained(folder: Path, pairs: int) -> Path:
    """A run with a checkpoint of update 100."""
    run = folder / f"run-{pairs}"
    reached = run / "checkpoints" / "step-100" / "checksums.json"
    if not reached.exists():
        shutil.rmtree(run, ignore_errors=True)
        files = write(folder, pairs)
        named = [*KEYS, *tokenizers(folder, files), "--source", str(files[0]), "--target", str(files[1])]
        process = subprocess.Popen(command("lstm-luong", *named, "--run", str(run)), env=environment(folder))
        while not reached.exists():
            if process.poll() is not None:
                raise SystemExit(f"training ended with code {process.returncode}")
            time.sleep(0.01)
        process.kill()
        process.wait()
    return run


def at_update(run: Path, update: int, place: Path) -> Path:
    """A copy of the run whose only checkpoint says that it is of this update."""
    from safetensors.torch import load_file

    from jumok.training import checkpoint
    from jumok.training.state import TrainState

    shutil.copytree(run, place, ignore=shutil.ignore_patterns("checkpoints", ".lock"))
    saved = run / "checkpoints" / "step-100"
    state = TrainState.from_json(json.loads((saved / checkpoint.STATE).read_text()))
    tensors = [load_file(saved / name) for name in (checkpoint.MODEL, checkpoint.OPTIMIZER)]
    final = place / "checkpoints" / f"step-{update}"
    checkpoint.write(final, tensors[0], tensors[1], dataclasses.replace(state, update=update))
    (place / "last.json").write_text(json.dumps({"step": update}) + "\n")
    return place


def resumed(run: Path, update: int, folder: Path) -> dict[str, float]:
    """Seconds from the start of the process until metrics.jsonl tells of the next update; and of computing, where the
    system says so: the clock also counts what else the machine does."""
    wanted = f'{{"event": "train", "step": {update + 1},'
    metrics, began = run / "metrics.jsonl", time.perf_counter()
    process = subprocess.Popen(
        command("--resume", "--run", str(run)),
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while wanted not in metrics.read_text():
        if process.poll() is not None:
            raise SystemExit(f"resuming ended with code {process.returncode}")
        time.sleep(0.005)
    result = {"seconds": time.perf_counter() - began}
    if Path("/proc").is_dir():
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        result["computing"] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    process.kill()
    process.wait()
    return result


def machine() -> dict[str, Any]:
    import torch

    processor = platform.processor()
    if Path("/proc/cpuinfo").exists():
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":")[1].strip() if names else processor
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {"system": platform.platform(), "processor": processor, "cores": os.cpu_count(), "load": load, **versions}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "jumok-benchmarks" / "resume")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "resume.json")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    run = trained(options.folder, options.pairs)
    at_start = machine()
    found: dict[int, list[dict[str, float]]] = {update: [] for update in UPDATES}
    for _ in range(options.times):
        for update in UPDATES:  # in turn: what else the machine does meets both
            place = options.folder / "resumed"
            shutil.rmtree(place, ignore_errors=True)
            found[update].append(resumed(at_update(run, update, place), update, options.folder))
            shutil.rmtree(place, ignore_errors=True)
    medians = {update: statistics.median(one["seconds"] for one in runs) for update, runs in found.items()}
    for update, runs in found.items():
        times = ", ".join(f"{one['seconds']:.2f}" for one in runs)
        computing = ", ".join(f"{one['computing']:.2f}" for one in runs if "computing" in one)
        print(f"resume at update {update:,}: {times} s to the first step (of it computing: {computing} s)")
    ratio = medians[UPDATES[1]] / medians[UPDATES[0]]
    print(f"medians {', '.join(f'{value:.2f} s' for value in medians.values())} (bar: {BAR:g} s), ratio {ratio:.2f}")
    print(f"load of the machine: {at_start['load']} on {at_start['cores']} cores")
    result = {"pairs": options.pairs, "bar_seconds": BAR, "runs": found, "medians": medians, "ratio": ratio}
    options.out.write_text(json.dumps({**result, "machine": at_start}, indent=1) + "\n")


if __name__ == "__main__":
    main()
