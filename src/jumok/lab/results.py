"""What was measured, as it is kept: one JSON file for each experiment.

NAME.json          seeds and verdicts; replaced only by what is complete
NAME.partial.json  seeds of a run that goes on or was stopped, written anew after every seed
"""

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
from jumok.errors import BadInput
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
    judged: list[int] = field(default_factory=list)  # the seeds that the verdicts are about; others are kept beside

    @property
    def judged_seeds(self) -> list[Seed]:
        return [each for each in self.seeds if each.seed in self.judged]

    @property
    def numbers(self) -> list[Numbers]:
        """What the verdicts rest on and the figure shows."""
        return [each.numbers for each in self.judged_seeds]

    @property
    def first_look(self) -> str:
        return "" if self.effort == 1 else f"a first look (effort {self.effort:g})"

    def add(self, seed: Seed) -> None:
        self.seeds = sorted([*self.seeds, seed], key=lambda each: each.seed)

    def has(self, seed: int) -> bool:
        return any(each.seed == seed for each in self.seeds)


def result_file(folder: Path, name: str, partial: bool = False) -> Path:
    return folder / f"{name}{'.partial' if partial else ''}.json"


def write_result(folder: Path, result: Result, experiment: Experiment, partial: bool = False) -> None:
    document = {
        "format": FORMAT,
        "number": experiment.number,
        "name": result.name,
        "title": experiment.title,
        "source": experiment.source,
        "verdicts": [vars(verdict) for verdict in result.verdicts],
        "judged": result.judged,
        "effort": result.effort,
        "code": result.code,
        "seeds": [vars(seed) for seed in result.seeds],
    }
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    replace_file(result_file(folder, result.name, partial), text)


def read_result(folder: Path, name: str, partial: bool = False) -> Result | None:
    """None where there is nothing, or nothing that this version can read."""
    try:
        document: Any = json.loads(result_file(folder, name, partial).read_text(encoding="utf-8"))
        if document["format"] != FORMAT or document["name"] != name:
            return None
        seeds = [Seed(int(each["seed"]), float(each["seconds"]), dict(each["numbers"])) for each in document["seeds"]]
        verdicts = [Verdict(**{**each, "alone": tuple(each.get("alone", ()))}) for each in document["verdicts"]]
        judged = document.get("judged", [each.seed for each in seeds])  # before it was written, all were
        return Result(name, float(document["effort"]), str(document["code"]), seeds, verdicts, judged)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def code_of(module: str) -> str:
    """A hash of what decides an experiment's numbers: its own file, and the package with its torch. Seeds that were
    measured with other code are measured again."""
    spec = find_spec(module)
    own = Path(spec.origin).read_bytes() if spec is not None and spec.origin else b""
    return hashlib.sha256(package_code() + own).hexdigest()[:16]


@functools.cache
def package_code() -> bytes:
    """A hash of the package, of its Python, its C and its pretrained models; the command line and the experiments,
    each of which stands for itself, aside."""
    package = Path(jumok.__file__).parent
    files = {path for kind in ("*.py", "*.c", "*.h") for path in package.rglob(kind)}
    files |= {path for path in (package / "pretrained").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    files -= {package / "lab" / f"{name}.py" for name in MODULES} | set((package / "cli").glob("*.py"))
    digest = hashlib.sha256(version("torch").encode())
    for path in sorted(files):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()


def started(folder: Path, module: str, wanted: Sequence[int], effort: float, again: bool) -> Result:
    """What to begin with: all seeds that are there and were measured with this code and effort. `again`: of the wanted
    ones none, they are measured anew."""
    result = Result(name_of(module), effort, code_of(module))
    for partial in (True, False):  # what was measured last goes first
        kept = read_result(folder, result.name, partial)
        if kept is None or kept.code != result.code:
            continue
        if kept.effort > effort:
            raise BadInput(
                f"{folder} holds {result.name} as measured with effort {kept.effort:g}, which {effort:g} would "
                "replace: choose another --out"
            )
        for each in kept.seeds if kept.effort == effort else ():
            if not result.has(each.seed) and not (again and each.seed in wanted):
                result.add(each)
    return result
