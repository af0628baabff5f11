"""The results that a lesson shows: those of five seeds, which are in the package, and those that were measured here.

measured.json.gz is benchmarks/results/lab.json with four digits of each number. After the lab was measured anew:

    python -m jumok.studio.lessons.measured benchmarks/results/lab.json
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jumok.lab import catalogue
from jumok.lab.experiment import Verdict
from jumok.lab.results import Result, Seed, code_of, read_result

FILE = Path(__file__).with_name("measured.json.gz")
STORED = "stored"
KEPT = 40  # pictures


@dataclass(frozen=True)
class Held:
    """A result, and where it is from: "stored" for the package's, or the name of the folder it was measured into."""

    origin: str
    result: Result
    stamp: int  # changes with the file
    other_code: bool = False
    title: str = ""  # of the experiment, known without loading it

    def told(self) -> dict[str, Any]:
        result = self.result
        return {
            "origin": self.origin,
            "stamp": str(self.stamp),
            "effort": result.effort,
            "seeds": result.judged,
            "seconds": sum(seed.seconds for seed in result.judged_seeds),
            "other_code": self.other_code,
            "verdicts": [
                {"claim": one.claim, "holds": one.holds, "because": one.because, "alone": list(one.alone)}
                for one in result.verdicts
            ],
        }


@cache
def stored() -> dict[str, Held]:
    """By name."""
    content = json.loads(gzip.decompress(FILE.read_bytes()))
    found = {}
    for each in content["experiments"]:
        seeds = [Seed(one["seed"], one["seconds"], one["numbers"]) for one in each["seeds"]]
        verdicts = [Verdict(**{**one, "alone": tuple(one["alone"])}) for one in each["verdicts"]]
        result = Result(each["name"], each["effort"], each["code"], seeds, verdicts, each["judged"])
        found[each["name"]] = Held(STORED, result, 0, title=each["title"])
    return found


def folders(runs: Path) -> list[Path]:
    """Where experiments that the page started leave their results: one folder for each effort."""
    return [path for path in sorted(runs.glob("lab*")) if path.is_dir()]


def folder_of(runs: Path, effort: float) -> Path:
    return runs / ("lab" if effort == 1 else f"lab-{effort:g}")


def held(name: str, runs: Path) -> list[Held]:
    """All results of an experiment, the newest first, and at the end what is in the package."""
    module = catalogue.find(name)
    found = []
    for folder in folders(runs):
        try:
            stamp = (folder / f"{name}.json").stat().st_mtime_ns  # first: what is written meanwhile has a newer one
            result = read_result(folder, name)
        except OSError:  # it may vanish at any time
            continue
        if result is not None and result.verdicts:
            found.append(Held(folder.name, result, stamp, result.code != code_of(module)))
    return [*sorted(found, key=lambda one: -one.stamp), stored()[name]]


_DRAWN: dict[tuple[str, str, int, bool], bytes] = {}
_DRAWING = threading.Lock()  # its style is set for a whole process


def picture(name: str, one: Held, dark: bool) -> bytes:
    """Its figure as PNG."""
    from jumok.inspect.drawing import saved, sheet, style  # matplotlib: when the first one is drawn, not before

    key = name, one.origin, one.stamp, dark
    with _DRAWING:
        if key not in _DRAWN:
            while len(_DRAWN) >= KEPT:
                _DRAWN.pop(next(iter(_DRAWN)))
            experiment = catalogue.load(catalogue.find(name))
            with style("", dark):
                figure = sheet(*experiment.size)
                experiment.draw(figure, one.result.numbers)
                _DRAWN[key] = saved(figure, "png")
        return _DRAWN[key]


# ---------------------------------------------------------------- into the package


def packed(lab: Any) -> bytes:
    """The same input gives the same bytes."""
    text = json.dumps(_short(lab), ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode(), 9, mtime=0)


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    return [_short(inner) for inner in value] if isinstance(value, list) else value


def main(arguments: Sequence[str]) -> None:
    FILE.write_bytes(packed(json.loads(Path(arguments[0]).read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main(sys.argv[1:])
