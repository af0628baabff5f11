"""Peak anonymous memory of training on a large corpus beside a small one: it must stay flat.

    python benchmarks/memory.py [--large 5000000] [--small 50000] [--threads 1] [--texts DIR] [--out FILE]

Writes two corpora from the embedded grammar as plain text, trains the same small model on each for the same number of
updates through `jumok train` (tokenizers, token store and validation included), and samples RssAnon from /proc, of the
process and of the helpers that encode with it (`--threads`: as many processes).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jumok.data import grammar

KEYS = [
    "model.width=128", "model.embedding=64", "model.layers=1", "tokenizer.vocabulary=4000",
    "training.updates=200", "training.validate_every=100", "training.validate_sentences=50",
]  # fmt: skip


def write(folder: Path, count: int) -> tuple[Path, Path]:
    """The two sides as plain text; as `resume.py` writes them, and not twice."""
    files = folder / f"{count}.en", folder / f"{count}.fr"
    if not all(file.exists() for file in files):
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = [file.with_name(f"{file.name}.unfinished") for file in files]
        with unfinished[0].open("w", encoding="utf-8") as english, unfinished[1].open("w", encoding="utf-8") as french:
            for pair in grammar.pairs("en", "fr", "train", count):
                english.write(pair.source + "\n")
                french.write(pair.target + "\n")
        for one, other in zip(unfinished, files, strict=True):
            one.rename(other)
    return files


def anonymous(process: int) -> int:
    """Bytes of memory that is neither a file's nor shared, of a process and its children: what the corpus must not make
    grow."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # it ended
            continue
        if process in (int(fields["Pid"]), int(fields["PPid"])):
            total += int(fields.get("RssAnon", "0").split()[0]) * 1024
    return total


def measure(folder: Path, texts: Path, count: int, threads: int) -> dict[str, float]:
    source, target = write(texts, count)
    print(f"{count:,} lines: {(source.stat().st_size + target.stat().st_size) / 1e6:,.0f} MB of text", flush=True)
    command = [sys.executable, "-m", "jumok", "train", "lstm-luong", f"threads={threads}", *KEYS]
    command += ["--source", str(source), "--target", str(target), "--run", str(folder / f"run-{count}")]
    began, peak = time.monotonic(), 0
    process = subprocess.Popen(command, env={**os.environ, "JUMOK_CACHE": str(folder / f"cache-{count}")})
    while process.poll() is None:
        peak = max(peak, anonymous(process.pid))
        time.sleep(0.2)
    assert process.returncode == 0
    seconds = time.monotonic() - began
    print(f"{count:,} lines: peak anonymous memory {peak / 2**20:,.0f} MiB in {seconds:,.0f} s", flush=True)
    return {"lines": count, "peak_mib": peak / 2**20, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", type=int, default=5_000_000)
    parser.add_argument("--small", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--texts", type=Path, default=Path.home() / ".cache" / "jumok-benchmarks" / "resume")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        counts = (options.small, options.large)
        results = [measure(Path(place), options.texts, count, options.threads) for count in counts]
    more = results[1]["peak_mib"] - results[0]["peak_mib"]
    print(f"{options.large:,} lines need {more:,.0f} MiB more than {options.small:,} (bar: 1,024 MiB)")
    if options.out:
        options.out.write_text(
            json.dumps({"runs": results, "more_mib": more, "threads": options.threads}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
