"""The verdicts of the lab over five seeds, as they are committed: results/lab.json and results/lab.md.

jumok lab all --seeds 5 --out runs/lab-5          # killed, it goes on
python benchmarks/lab.py [--lab runs/lab-5] [--out benchmarks/results/lab]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import torch

from jumok.lab import catalogue

MACHINE = (
    f"{os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}; one thread each"
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lab", type=Path, default=Path("runs/lab-5"), help="folder of `jumok lab all`")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/lab"), help="written: OUT.json and OUT.md")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for module in catalogue.modules():
        file = options.lab / f"{catalogue.name_of(module)}.json"
        result = json.loads(file.read_text(encoding="utf-8"))
        if not result["verdicts"] or result["effort"] != 1:
            raise SystemExit(f"{file}: not measured whole")
        results.append(result)
    about = {"command": "jumok lab all --seeds 5", "machine": MACHINE, "experiments": results}
    options.out.with_suffix(".json").write_text(json.dumps(about, ensure_ascii=False) + "\n", encoding="utf-8")
    options.out.with_suffix(".md").write_text(_page(results), encoding="utf-8")


def _page(results: list[dict[str, Any]]) -> str:
    verdicts = [verdict for result in results for verdict in result["verdicts"]]
    held = sum(verdict["holds"] for verdict in verdicts)
    lines = ["# The lab", "", f"{MACHINE}.", f"{len(verdicts)} claims: {held} hold, {len(verdicts) - held} do not.", ""]
    lines += ["| # | claim | verdict | because | seeds | seconds a seed |", "| ---: | --- | --- | --- | ---: | ---: |"]
    for result in results:
        seconds = [seed["seconds"] for seed in result["seeds"]]
        for verdict in result["verdicts"]:
            cells = [
                str(result["number"]),
                verdict["claim"],
                "holds" if verdict["holds"] else "**does not hold**",
                verdict["because"],
                str(len(seconds)),
                f"{sum(seconds) / len(seconds):.0f}",
            ]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
