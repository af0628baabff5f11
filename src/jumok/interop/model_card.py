"""README.md of an exported model: what it is, what it learned from, how well it does, and how to know that it is whole.

What stands there is what the run itself has written down; nothing is claimed that it does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

import jumok
from jumok.recipe import Recipe
from jumok.training.run import RunFolder

CARD = "README.md"
NO_METRICS = ("event", "step", "best", "averaged")


def model_card(
    run: RunFolder,
    recipe: Recipe,
    *,
    architecture: str,
    purpose: str,
    usage: str,
    step: int,
    signatures: dict[str, str],
    notes: Sequence[str],
    library: str = "transformers",
) -> str:
    """Markdown, with the header that Hugging Face reads. `signatures`: what was hashed → its SHA-256."""
    chosen = {"task": recipe.task, **recipe.model_dump(mode="json", exclude_defaults=True)}
    if recipe.imported is None:
        chosen["data"] = {**chosen.get("data", {}), "train": _corpora(recipe)}
    chosen["model"] = {"kind": recipe.model.kind, **chosen.get("model", {})}
    header = {"library_name": library, "pipeline_tag": purpose, "tags": ["jumok", recipe.model.kind]}
    parts = [
        f"---\n{yaml.safe_dump(header, sort_keys=False)}---",
        f"# {run.path.absolute().name}",
        f"A model of kind {recipe.model.kind} (`{architecture}`), task {recipe.task}, written by jumok "
        f"{jumok.__version__} from the checkpoint of update {step}.",
        f"```python\n{usage}\n```",
        f"## What it learned from\n\n{_learned_from(recipe)}",
        f"## How well it does\n\n{_measured(run, step)}",
        "## What to know\n\n" + "\n".join(f"- {note}" for note in notes),
        "## Signatures (SHA-256)\n\n" + "\n".join(f"- {what}: `{found}`" for what, found in signatures.items()),
        f"## Recipe\n\nWhat is not as by default.\n\n```yaml\n{_listed(chosen)}```",
    ]
    return "\n\n".join(parts) + "\n"


def _learned_from(recipe: Recipe) -> str:
    if recipe.imported is not None:
        return f"It was not trained by jumok, but imported: {recipe.imported}. What it learned from, its authors know."
    return f"`data.train` of the recipe:\n\n```yaml\n{_listed(_corpora(recipe))}```"


def _corpora(recipe: Recipe) -> list[dict[str, Any]]:
    """What was made has a number of pairs; files have as many as are in them, whatever the recipe began with."""
    found = []
    for corpus in recipe.data.train:
        about = corpus.model_dump(mode="json", exclude_defaults=True)
        about.pop("pairs", None)
        found.append(about | ({"pairs": corpus.pairs} if corpus.grammar or corpus.drawn or corpus.rendered else {}))
    return found


def _listed(content: Any) -> str:
    return yaml.safe_dump(_named(content), sort_keys=False, allow_unicode=True, width=100)


def _named(content: Any) -> Any:
    """Files by their names alone: where they lie is nobody's business who reads the card."""
    if isinstance(content, dict):
        return {key: _named(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_named(value) for value in content]
    return Path(content).name if isinstance(content, str) and Path(content).is_absolute() else content


def _measured(run: RunFolder, step: int) -> str:
    """The validation of this checkpoint; the last one, where it has none of its own."""
    known = [event for event in run.events() if event.get("event") in ("valid", "evaluation")]
    if not known:
        return "The run has no validation."
    own = [event for event in known if event.get("step") == step]
    event = (own or known)[-1]
    rows = [f"| {name} | {_number(value)} |" for name, value in event.items() if _is_metric(name, value)]
    table = "\n".join(["| metric | value |", "|---|---|", *rows])
    return f"On the run's validation data, at update {event.get('step')}:\n\n{table}"


def _is_metric(name: str, value: Any) -> bool:
    return name not in NO_METRICS and isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: float) -> str:
    return f"{value:.6g}"
