"""Runs side by side: what each is, how far it came and how good it is, and in which keys of their recipes they differ.

Everything is read from the run folders' small files (of the weights only the header), so that a hundred runs are listed
in a moment, without PyTorch. What cannot be read is said of that run; it does not keep the others from being listed.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from jumok.errors import BadInput, JumokError, did_you_mean
from jumok.recipe import (
    BertSection,
    ForecasterSection,
    Recipe,
    RecognizerSection,
    RecurrentReaderSection,
    Seq2SeqSection,
    TransformerSection,
    VitSection,
)
from jumok.recipe.recognition import NAMED
from jumok.training.run import RunFolder

LOWER_IS_BETTER = ("loss", "perplexity", "mae", "nll")
COUNTED = {  # by task: what a loss is summed over, where it is not tokens
    "forecasting": "values", "pretraining": "guesses", "classification": "examples", "regression": "examples",
    "tagging": "words", "answering": "windows", "vision": "images",
    "recognition": "words",
}  # fmt: skip
DEPTH = 3  # folders below a named one in which runs are looked for
SORTS = ("name", "state", "parameters", "updates", "best", "speed", "minutes", "changed")
LARGEST_HEADER = 1 << 27
SIGNS = ("recipe.yaml", "checkpoints", "last.json", "metrics.jsonl")  # of a folder that is, or was, a run

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Summary:
    """A run in one line. `state`: done, stopped, running, damaged, or none where the folder holds no run."""

    path: Path
    state: str
    problem: str = ""
    task: str = ""
    model: str = ""
    parameters: int | None = None
    updates: int = 0
    planned: int | None = None
    metric: str = ""
    best: float | None = None
    best_update: int | None = None
    tokens_per_second: float | None = None
    counted: str = "tokens"  # what that is, in truth
    minutes: float | None = None
    changed: float | None = None  # seconds since 1970
    keys: dict[str, Any] = field(default_factory=dict)  # the recipe, flat: "model.width": 512
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def speed(self) -> str:
        """As in "8,771", which are tokens, or "8,771 examples"."""
        if self.tokens_per_second is None:
            return ""
        return f"{self.tokens_per_second:,.0f}{'' if self.counted == 'tokens' else f' {self.counted}'}"

    def to_json(self) -> dict[str, Any]:
        """Everything but the curves and the recipe, which the folder has."""
        left_out = ("keys", "events")
        return {
            name: str(value) if name == "path" else value for name, value in vars(self).items() if name not in left_out
        }


def find(folders: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The run folders in and below these, and the folders directly below them that hold none."""
    found: dict[Path, None] = {}
    others: dict[Path, None] = {}
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"there is no folder {folder}: name run folders, or a folder that holds some")
        if _is_run(folder):
            found[folder] = None
            continue
        below = list(_below(folder, DEPTH))
        found |= dict.fromkeys(below or [folder])  # one that was named gets its line, whatever it is
        if below:
            others |= dict.fromkeys(
                child for child in _folders(folder) if not any(child in (run, *run.parents) for run in below)
            )
    return list(found), list(others)


def _is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in SIGNS)


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return []


def _below(folder: Path, depth: int) -> Iterator[Path]:
    for child in _folders(folder):
        if _is_run(child):
            yield child
        elif depth > 1:
            yield from _below(child, depth - 1)


def summarise(path: Path, metric: str | None = None) -> Summary:
    """A run folder in one line; `metric` instead of the one its recipe chooses checkpoints by."""
    if not _is_run(path):
        return Summary(path, "none", "not a run folder: it has no recipe.yaml", changed=_changed(path))
    run = RunFolder(path)
    try:
        recipe = run.recipe()
        events = run.events()
        state, problem = _newest_state(run)
    except JumokError as error:
        lines = str(error).removeprefix(f"{run.recipe_file}").lstrip(": ").splitlines()
        return Summary(path, "damaged", f"recipe.yaml: {lines[0]}", changed=_changed(path))
    except OSError as error:
        return Summary(path, "damaged", f"{error.strerror or error}", changed=_changed(path))
    running = is_running(run)
    shown = metric or recipe.training.metric
    best, best_update = best_of(events, shown)
    if best is None and shown == recipe.training.metric and isinstance(state.get("best"), float):
        best, best_update = state["best"] * (-1 if shown in LOWER_IS_BETTER else 1), state.get("best_update")
    speeds = [event["tokens_per_second"] for event in _numbers(events, "train", "tokens_per_second")]
    steps = [int(event["step"]) for event in _numbers(events, "train", "step")] if running else []
    planned = state.get("total", recipe.training.updates)
    # the mean of several checkpoints is stored as one step more, and was no update
    updates = int(state.get("update", 0)) - bool(state.get("averaged"))
    kind = (
        "running" if running else "damaged" if problem and not state else "done" if state.get("stopped") else "stopped"
    )
    return Summary(
        path,
        kind,
        problem,
        recipe.task,
        describe_model(recipe),
        parameters_of(run, state),
        max([updates, *steps]),
        planned if isinstance(planned, int) else None,
        shown,
        best,
        best_update,
        statistics.median(speeds) if speeds else None,
        COUNTED.get(recipe.task, "tokens"),
        state["seconds"] / 60 if isinstance(state.get("seconds"), int | float) else None,
        _changed(path),
        flat(recipe.model_dump(mode="json")),
        events,
    )


def describe_model(recipe: Recipe) -> str:
    """The network in a few characters: what it is, how wide and how deep."""
    model = recipe.model
    if isinstance(model, TransformerSection):
        read = model.encoder_layers if model.reader is None else f"{model.reader.layers} (bert)"
        return f"transformer {model.width}×{read}+{model.decoder_layers}"
    if isinstance(model, Seq2SeqSection):
        attention = "" if model.attention == "none" else f" {model.attention}"
        return f"{model.cell}{attention} {model.width}×{model.layers}"
    if isinstance(model, BertSection):
        return f"bert {model.width}×{model.layers}"
    if isinstance(model, VitSection):
        name = "vit" if model.stem == "patch" else "cct"
        return f"{name} {model.width}×{model.layers}"
    if isinstance(model, RecognizerSection):
        return f"{NAMED[model.encoder, model.decoder]} {model.width}×{model.layers}"
    cell = getattr(model, "cell", "transformer")
    if isinstance(model, RecurrentReaderSection):
        return f"{cell} reader {model.width}×{model.layers}"
    use = "forecaster" if isinstance(model, ForecasterSection) else "lm"
    return f"{cell} {use} {model.width}×{model.layers}"


def is_running(run: RunFolder) -> bool:
    """Whether a process is training there: it holds the lock."""
    file = run.path / ".lock"
    if not file.exists():
        return False
    try:
        with FileLock(file, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # somebody else's folder
        return False


def best_of(events: Sequence[Event], metric: str) -> tuple[float | None, int | None]:
    """The best validation by a metric, and its update."""
    known = _numbers(events, "valid", metric)
    if not known:
        return None, None
    choose = min if metric in LOWER_IS_BETTER else max
    event = choose(known, key=lambda event: event[metric])
    return float(event[metric]), int(event["step"])


def metrics_of(summaries: Sequence[Summary]) -> list[str]:
    """All that was measured at validations."""
    names = (
        name
        for summary in summaries
        for event in summary.events
        if event.get("event") == "valid"
        for name, value in event.items()
        if _is_number(value) and name not in ("step", "averaged")
    )
    return list(dict.fromkeys(names))


def check_metric(metric: str, summaries: Sequence[Summary]) -> None:
    known = metrics_of(summaries)
    if known and metric not in known:
        raise BadInput(f"--metric {metric}: no run has it.{did_you_mean(metric, known)}")


def _numbers(events: Sequence[Event], kind: str, name: str) -> list[Event]:
    return [
        event
        for event in events
        if event.get("event") == kind and _is_number(event.get(name)) and _is_number(event.get("step"))
    ]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ---------------------------------------------------------------- what the files say


def _newest_state(run: RunFolder) -> tuple[dict[str, Any], str]:
    """What the newest checkpoint that looks whole says, and what is wrong with newer ones."""
    folders = sorted(
        (path for path in run.checkpoints.glob("step-*") if path.name[5:].isdecimal()),
        key=lambda path: int(path.name[5:]),
        reverse=True,
    )
    wrong: list[str] = []
    for folder in folders:
        try:
            state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
            header(folder / "model.safetensors")
            if not isinstance(state, dict) or not isinstance(state.get("update", 0), int):
                raise ValueError("state.json does not say which update it was written after")
            return state, "; ".join(wrong)
        except (OSError, ValueError) as error:
            reason = f"{Path(str(error.filename)).name} is missing" if isinstance(error, FileNotFoundError) else error
            wrong.append(f"{folder.name}: {reason}")
    return {}, "; ".join(wrong)


def header(file: Path) -> dict[str, Any]:
    """What a safetensors file says it holds. One that ends too early is an error."""
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if not 0 < size <= LARGEST_HEADER:
            raise ValueError(f"{file.name} is damaged")
        try:
            found = json.loads(stream.read(size))
            entries = {name: entry for name, entry in found.items() if name != "__metadata__"}
            end = max((int(entry["data_offsets"][1]) for entry in entries.values()), default=0)
        except (ValueError, AttributeError, KeyError, TypeError, IndexError):
            raise ValueError(f"{file.name} is damaged") from None
        if file.stat().st_size != 8 + size + end:
            raise ValueError(f"{file.name} is cut short")
    return entries


def parameters_of(run: RunFolder, state: Mapping[str, Any]) -> int | None:
    """Numbers in the weights of the checkpoint with this state."""
    try:
        entries = header(run.checkpoints / f"step-{state['update']}" / "model.safetensors")
    except (OSError, ValueError, KeyError):
        return None
    total = 0
    for entry in entries.values():
        count = 1
        for size in entry.get("shape", []):
            count *= int(size)
        total += count
    return total


def _changed(path: Path) -> float | None:
    times = []
    for name in ("", *SIGNS):
        try:
            times.append((path / name).stat().st_mtime)
        except OSError:
            continue
    return max(times, default=None)


# ---------------------------------------------------------------- side by side


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """A recipe as one level of keys; of lists of corpora each has its number."""
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        parts = [(str(number), item) for number, item in enumerate(value)]
    else:
        return {path.lstrip("."): value}
    return {key: leaf for name, part in parts for key, leaf in flat(part, f"{path}.{name}").items()}


def differences(summaries: Sequence[Summary]) -> dict[str, list[Any]]:
    """The keys that the recipes do not agree on, with each run's value; None where it has no such key.

    A key that only some kinds of models have is told where those differ in it: `model.kind` says the rest.
    """
    readable = [summary for summary in summaries if summary.keys]
    found: dict[str, list[Any]] = {}
    for key in dict.fromkeys(key for summary in readable for key in summary.keys):
        having = [summary.keys[key] for summary in readable if key in summary.keys]
        if any(value != having[0] for value in having) or (
            len(having) < len(readable) and not key.startswith("model.")
        ):
            values = [summary.keys.get(key) for summary in readable]
            if any(value not in (None, [], "") for value in values):  # not only absent here and empty there
                found[key] = values
    return found


def ordered(summaries: Sequence[Summary], key: str) -> list[Summary]:
    """By name; or the best, newest, largest, fastest, longest first, and what is not known last."""
    if key not in SORTS:
        raise BadInput(f"--sort {key}: no such column.{did_you_mean(key, SORTS)}")
    by_name = sorted(summaries, key=lambda summary: str(summary.path))
    if key == "name":
        return by_name
    if key == "state":
        return sorted(by_name, key=lambda summary: summary.state)

    def place(summary: Summary) -> tuple[bool, str, float]:
        value = getattr(summary, {"speed": "tokens_per_second"}.get(key, key))
        lower = key == "best" and summary.metric in LOWER_IS_BETTER
        measure = summary.metric if key == "best" else ""  # a loss is not compared with a BLEU
        return value is None, measure, 0.0 if value is None else value if lower else -value

    return sorted(by_name, key=place)


def short_names(paths: Sequence[Path]) -> list[str]:
    """Names that tell the folders apart: what they have in common in front is left out."""
    resolved = [path.absolute() for path in paths]
    if len(set(resolved)) < 2:
        return [path.name or str(path) for path in resolved]
    parents = [path.parts[:-1] for path in resolved]
    common = 0
    while all(len(parts) > common and parts[common] == parents[0][common] for parts in parents):
        common += 1
    return ["/".join(path.parts[common:]) for path in resolved]
