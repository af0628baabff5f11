"""What was measured, as it is kept: one JSON file for each experiment, written anew after every seed."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jumok
from jumok.files import replace_file
from jumok.lab.catalogue import MODULES, name_of
from jumok.lab.experiment import Experiment, Numbers, Verdict

FORMAT = 1


@dataclass(frozen=True)
class Seed:
    seed: int
    seconds: float
    numbers: Numbers


@dataclass
class Result:
    """The seeds of one experiment that are there, and the verdicts once all that were asked for are."""

    name: str
    effort: float
    code: str
    seeds: list[Seed] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def numbers(self) -> list[Numbers]:
        return [each.numbers for each in self.seeds]

    def add(self, seed: Seed) -> None:
        self.seeds = sorted([*self.seeds, seed], key=lambda each: each.seed)

    def has(self, seed: int) -> bool:
        return any(each.seed == seed for each in self.seeds)


def write_result(folder: Path, result: Result, experiment: Experiment) -> None:
    document = {
        "format": FORMAT,
        "number": experiment.number,
        "name": result.name,
        "title": experiment.title,
        "source": experiment.source,
        "verdicts": [vars(verdict) for verdict in result.verdicts],
        "effort": result.effort,
        "code": result.code,
        "seeds": [vars(seed) for seed in result.seeds],
    }
    replace_file(folder / f"{result.name}.json", json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def read_result(folder: Path, name: str) -> Result | None:
    """None where there is nothing, or nothing that this version can read."""
    try:
        document: Any = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        if document["format"] != FORMAT or document["name"] != name:
            return None
        seeds = [Seed(int(each["seed"]), float(each["seconds"]), dict(each["numbers"])) for each in document["seeds"]]
        verdicts = [Verdict(**each) for each in document["verdicts"]]
        return Result(name, float(document["effort"]), str(document["code"]), seeds, verdicts)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def code_of(module: str) -> str:
    """A hash of what decides an experiment's numbers: its own file, and the package with its torch. Seeds that were
    measured with other code are measured again."""
    spec = find_spec(module)
    own = Path(spec.origin).read_bytes() if spec is not None and spec.origin else b""
    return hashlib.sha256(package_code() + own).hexdigest()[:16]


@functools.cache
def package_code() -> bytes:
    """A hash of the package; the command line and the experiments, each of which stands for itself, aside."""
    package = Path(jumok.__file__).parent
    aside = {package / "lab" / f"{name}.py" for name in MODULES} | set((package / "cli").glob("*.py"))
    digest = hashlib.sha256(version("torch").encode())
    for path in sorted(set(package.rglob("*.py")) - aside):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


def started(folder: Path, module: str, seeds: Sequence[int], effort: float, again: bool) -> Result:
    """What to begin with: the seeds that are there, if they are wanted and were measured with this code and effort."""
    name, code = name_of(module), code_of(module)
    kept = None if again else read_result(folder, name)
    if kept is None or kept.code != code or kept.effort != effort:
        return Result(name, effort, code)
    return Result(name, effort, code, [each for each in kept.seeds if each.seed in seeds])
