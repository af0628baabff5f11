"""The verdicts of the lab over five seeds, as they are committed: results/lab.json and results/lab.md.

jumok lab all --seeds 5 --out runs/lab-5          # killed, it goes on
python benchmarks/lab.py [--lab runs/lab-5] [--seeds 5] [--out benchmarks/results/lab]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from jumok.lab import catalogue
from jumok.lab.results import code_of

MACHINE = (
    f"{os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}; one thread each"
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lab", type=Path, default=Path("runs/lab-5"), help="folder of `jumok lab all`")
    parser.add_argument("--seeds", type=int, default=5, help="of each experiment; others are refused")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/lab"), help="written: OUT.json and OUT.md")
    options = parser.parse_args(arguments)
    results = [_result(module, options.lab, options.seeds) for module in catalogue.modules()]
    about = {"command": f"jumok lab all --seeds {options.seeds}", "machine": MACHINE, "experiments": results}
    options.out.with_suffix(".json").write_text(json.dumps(about, ensure_ascii=False) + "\n", encoding="utf-8")
    options.out.with_suffix(".md").write_text(_page(results), encoding="utf-8")


def _result(module: str, lab: Path, seeds: int) -> dict[str, Any]:
    """What an experiment left, if it is whole: these seeds, judged, with full effort."""
    file = lab / f"{catalogue.name_of(module)}.json"
    measure = f"measure it: jumok lab all --seeds {seeds} --out {lab}"
    try:
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{file} cannot be read ({error}); {measure}") from None
    judged = result.get("judged", [])
    if judged != list(range(1, seeds + 1)) or result["effort"] != 1:
        raise SystemExit(f"{file}: seeds {judged or 'none'} judged, with effort {result['effort']:g}; {measure}")
    if result["code"] != code_of(module):
        print(f"{file}: measured with other code than this", file=sys.stderr)
    result["seeds"] = [seed for seed in result["seeds"] if seed["seed"] in judged]
    return result


def _page(results: list[dict[str, Any]]) -> str:
    verdicts = [verdict for result in results for verdict in result["verdicts"]]
    held = sum(verdict["holds"] for verdict in verdicts)
    lines = ["# The lab", "", f"{MACHINE}.", f"{len(verdicts)} claims: {held} hold, {len(verdicts) - held} do not.", ""]
    lines += ["| # | claim | verdict | because | holds in seeds alone | seconds a seed |"]
    lines += ["| ---: | --- | --- | --- | ---: | ---: |"]
    for result in results:
        seconds = [seed["seconds"] for seed in result["seeds"]]
        for verdict in result["verdicts"]:
            alone = verdict["alone"] or [verdict["holds"]]
            cells = [
                str(result["number"]),
                verdict["claim"],
                "holds" if verdict["holds"] else "**does not hold**",
                verdict["because"],
                f"{sum(alone)} of {len(alone)}",
                f"{sum(seconds) / len(seconds):.0f}",
            ]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
