"""Train several recipes side by side as processes on one machine, score them, and write one table.

All choices are made on val: of the runs that share a `group`, only the best on val is scored on the test sets.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """`arguments` follow `jumok train`; `tests` name (source, reference) files that are scored, the first is val."""

    name: str
    arguments: list[str]
    tests: dict[str, tuple[Path, Path]]
    group: str = ""
    minutes: float = 7.5  # after which it is stopped; it saves, and the best checkpoint so far is scored
    evaluate: list[str] = field(default_factory=list)  # further arguments of `jumok evaluate`
    penalties: list[float] = field(default_factory=list)  # length penalties to choose from, on val


class Failed(Exception):
    """One run went wrong; the others go on."""


def train(run: Run, place: Path) -> dict[str, Any]:
    """One run in a process of its own; what it took, and what it says of itself."""
    folder = place / run.name
    command = [sys.executable, "-m", "jumok", "train", *run.arguments, "--run", str(folder)]
    began = time.monotonic()
    log = place / f"{run.name}.log"
    with log.open("wb") as out:
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
        try:
            process.wait(60 * run.minutes)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
    minutes = (time.monotonic() - began) / 60
    metrics = folder / "metrics.jsonl"
    events = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
    if not any(event["event"] == "valid" for event in events):
        raise Failed(f"{run.name} ended with code {process.returncode}:\n{log.read_text(errors='replace')[-2000:]}")
    speeds = [event["tokens_per_second"] for event in events if event["event"] == "train"]
    return {
        "command": command[1:],
        "minutes": round(minutes, 2),
        "updates": events[-1]["step"],
        "best_update": json.loads((folder / "best.json").read_text())["step"],
        "target_tokens_per_second": round(statistics.median(speeds or [0.0])),
        "greedy_val_bleu": {event["step"]: round(event["bleu"], 2) for event in events if "bleu" in event},
    }


def score(run: Run, test: str, place: Path, penalty: float | None = None) -> dict[str, Any]:
    source, reference = run.tests[test]
    command = [sys.executable, "-m", "jumok", "evaluate", "--run", str(place / run.name), "--json", *run.evaluate]
    command += ["--source", str(source), "--reference", str(reference)]
    command += [] if penalty is None else ["--length-penalty", str(penalty)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Failed(f"{run.name} on {test}: {result.stderr[-2000:]}")
    found: dict[str, Any] = {**json.loads(result.stdout), "length_penalty": penalty}
    scores = [f"{item['name']} {item['score']:.2f} ({item['signature']})" for item in found["scores"]]
    scores += [f"lower-cased, tokenised BLEU {item['score']:.2f}" for item in found.get("tutorial", [])]
    chosen = "" if penalty is None else f" (length penalty {penalty:g})"
    print(f"{run.name:18} {test:17} {'   '.join(scores)}{chosen}", flush=True)
    return found


def bleu(found: dict[str, Any]) -> float:
    return float(found["scores"][0]["score"])


def best_on_val(run: Run, val: str, place: Path) -> dict[str, Any]:
    return max((score(run, val, place, penalty) for penalty in run.penalties or [None]), key=bleu)


def machine() -> dict[str, str]:
    import torch

    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return {"gpu": where, "torch": torch.__version__, "python": sys.version.split()[0]}


def compare(runs: list[Run], place: Path, out: Path | None) -> dict[str, dict[str, Any]]:
    """Train all at once; score each on val, and the best of each group on its test sets."""
    place.mkdir(parents=True, exist_ok=True)
    table: dict[str, dict[str, Any]] = {}

    def write() -> None:
        if out is not None:
            out.write_text(json.dumps({"machine": machine(), "runs": table}, indent=1) + "\n")

    def trained(run: Run) -> None:
        try:
            result = train(run, place)
            print(f"{run.name:18} {result['minutes']} minutes, {result['updates']} updates", flush=True)
            val = next(iter(run.tests))
            table[run.name] = {**result, val: best_on_val(run, val, place)}
            write()
        except Failed as error:
            print(error, flush=True)

    def tested(run: Run) -> None:
        val, *others = run.tests
        for test in others:
            table[run.name][test] = score(run, test, place, table[run.name][val]["length_penalty"])
        write()

    with ThreadPoolExecutor(len(runs)) as pool:
        list(pool.map(trained, runs))
        best: dict[str, Run] = {}
        done = [run for run in runs if run.name in table]
        for run in sorted(done, key=lambda run: bleu(table[run.name][next(iter(run.tests))])):
            best[run.group or run.name] = run
        list(pool.map(tested, best.values()))
    return table


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="which runs; without names, all")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared/data")
    parser.add_argument("--runs", type=Path, default=Path("runs/quality"))
    parser.add_argument("--set", action="append", default=[], help="a further key=value for every run")
    parser.add_argument("--out", type=Path)
    return parser
